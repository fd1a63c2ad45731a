"""One GPT-2 in the spellings of transformers, nanoGPT, minGPT and llm.c (B25); tied, untied and padded heads (B26)."""
import json
import math
import os
import re
import struct
import sys
import unittest

import numpy as np

from harness import FAMILIES, HERE, compiled, imported, main, random_tokens, run, same_bits
from models import Gpt2, data_of, header_of, new_folder, norm, safetensors
from package import Package

sys.path.insert(0, os.path.join(HERE, "..", "Import", "Inputs"))
from torchfile import Tensor, save  # noqa: E402

erf = np.vectorize(math.erf)


def erf_gelu(x):
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


class ErfGpt2(Gpt2):
    """With the exact GELU, as nanoGPT has it."""

    def logits(self, tokens):
        w = self.weights
        x = (w["wte.weight"][tokens] + w["wpe.weight"][:len(tokens)]).astype(np.float64)
        for i in range(self.layers):
            layer = f"h.{i}."
            x = x + self.attention(norm(x, w[layer + "ln_1.weight"], w[layer + "ln_1.bias"]), layer)
            y = norm(x, w[layer + "ln_2.weight"], w[layer + "ln_2.bias"]) @ w[layer + "mlp.c_fc.weight"] + w[layer + "mlp.c_fc.bias"]
            x = x + erf_gelu(y) @ w[layer + "mlp.c_proj.weight"] + w[layer + "mlp.c_proj.bias"]
        return norm(x, w["ln_f.weight"], w["ln_f.bias"]) @ w.get("lm_head.weight", w["wte.weight"]).T


def is_linear(name):
    return name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))


def out_in(weights):
    """Linear weights the other way round, as nn.Linear and llm.c have them."""
    return {name: np.ascontiguousarray(value.T) if is_linear(name) else value for name, value in weights.items()}


def prefixed(weights):
    return {name if name.startswith("lm_head") else "transformer." + name: value for name, value in weights.items()}


def torch_file(model, nanogpt):
    """nanoGPT's ckpt.pt, or minGPT's model.pt beside its config.json."""
    path = os.path.join(new_folder(), "model.pt")
    state = {name: Tensor(value.shape, value.tobytes()) for name, value in prefixed(out_in(model.weights)).items()}
    config = model.config
    if nanogpt:
        args = {"n_layer": config["n_layer"], "n_head": config["n_head"], "n_embd": config["n_embd"], "block_size": config["n_positions"],
                "bias": True, "vocab_size": config["vocab_size"], "dropout": 0.2}
        state.setdefault("lm_head.weight", Tensor(model.weights["wte.weight"].shape, storage=state["transformer.wte.weight"].storage))
        save(path, {"model": state, "model_args": args, "iter_num": 5})
    else:
        with open(os.path.join(os.path.dirname(path), "config.json"), "w", encoding="utf-8") as f:
            json.dump({"system": {"seed": 1}, "model": {"model_type": None, "n_head": config["n_head"]}}, f)
        save(path, state)
    return path


def llmc_file(model, padded):
    path = os.path.join(new_folder(), "model.bin")
    weights, config = out_in(model.weights), model.config
    c = config["n_embd"]
    header = [20240326, 3, config["n_positions"], config["vocab_size"], config["n_layer"], config["n_head"], c, padded]
    table = np.zeros((padded, c), np.float32)
    table[:config["vocab_size"]] = weights["wte.weight"]
    parts = [table, weights["wpe.weight"]]
    for name in ("ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight",
                 "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"):
        parts += [weights[f"h.{i}.{name}"] for i in range(config["n_layer"])]
    with open(path, "wb") as f:
        f.write(struct.pack("<8i", *header).ljust(1024, b"\0") + b"".join(p.tobytes() for p in parts + [weights["ln_f.weight"], weights["ln_f.bias"]]))
    return path


def said_to_be_tied(folder, head=None, embedding=None):
    """The checkpoint of an untied model with a config.json that ties the head; with names, a head that has the numbers of the embedding."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        text, data = f.read(size), bytearray(f.read())
    if head:
        to, source = (slice(*json.loads(text)[name]["data_offsets"]) for name in (head, embedding))
        data[to] = data[source]
    result = new_folder()
    with open(os.path.join(result, "config.json"), "w", encoding="utf-8") as f:
        json.dump({**config, "tie_word_embeddings": True}, f)
    with open(os.path.join(result, "model.safetensors"), "wb") as f:
        f.write(safetensors(text, bytes(data)))
    return result


def logits_of(path, tokens, level=2):
    package = Package(compiled(imported(path, "model"), level, "-march=x86-64-v2"))
    with package.open() as opened, opened.session() as session:
        return session.step(tokens)


def module_of(path):
    """The graph, without the path."""
    return re.sub(r'gpt.checkpoint = "[^"]*", ', "", run("gptc-import", path, "--name", "model").stdout)


class Orientation(unittest.TestCase):
    """B25: a square projection hides from shape checks which way round it lies."""

    def test_square_projection(self):
        """c_proj is [[0, 1], [0, 0]] in [in, out] and gets [1, 0] for token 0, [0, 1] for token 1: so it adds [0, 1] and [0, 0]. Read the other way
        round it would add [0, 0] and [1, 0]. The last norm tells: token 0 has [0.5, 0.25] before, token 1 [0.25, 0.5]."""
        model = Gpt2(width=2, heads=1, vocab=2, context=4, tied=False)
        w = model.weights
        for value in w.values():
            value[...] = 0
        for name in ("h.0.ln_1.weight", "h.0.ln_2.weight", "ln_f.weight"):
            w[name][...] = 1
        w["wte.weight"][...] = [[0.5, 0.25], [0.25, 0.5]]
        w["lm_head.weight"][...] = np.eye(2)
        w["h.0.attn.c_attn.weight"][:, 4:] = np.eye(2) / 2  # values are (norm + 1) / 2, and the norm is [1, -1] or [-1, 1]
        w["h.0.attn.c_attn.bias"][4:] = 0.5
        w["h.0.attn.c_proj.weight"][...] = [[0, 1], [0, 0]]
        right = np.concatenate([model.logits([0]), model.logits([1])])
        np.testing.assert_allclose(right, [[-1, 1], [-1, 1]], atol=1e-3)
        w["h.0.attn.c_proj.weight"] = w["h.0.attn.c_proj.weight"].T.copy()
        np.testing.assert_allclose(np.concatenate([model.logits([0]), model.logits([1])]), [[1, -1], [1, -1]], atol=1e-3)
        w["h.0.attn.c_proj.weight"] = w["h.0.attn.c_proj.weight"].T.copy()
        for path in (model.write(), torch_file(model, nanogpt=True)):
            with self.subTest(path):
                got = np.concatenate([logits_of(path, [0]), logits_of(path, [1])])
                np.testing.assert_allclose(got, right, rtol=0, atol=2e-5)

    def test_spellings(self):
        tokens = random_tokens(9, 11)
        for model, kind in ((Gpt2(width=4, heads=2, tied=False), False), (ErfGpt2(width=4, heads=2), True)):
            self.assertEqual(model.weights["h.0.mlp.c_fc.weight"].shape, (4, 16))
            config = {"activation_function": "gelu" if kind else "gelu_new"}
            first = None
            for path in (model.write(**config), torch_file(model, kind)):
                with self.subTest(path):
                    logits = logits_of(path, tokens)
                    np.testing.assert_allclose(logits, model.logits(tokens), rtol=0, atol=2e-5)
                    first = logits if first is None else first
                    self.assertTrue(same_bits(logits, first))

    def test_prefix(self):
        """Names with "transformer." are the same module."""
        model = Gpt2(width=4, heads=2)
        weights = prefixed(model.weights)
        self.assertEqual(module_of(model.write(safetensors(header_of(weights), data_of(weights)))).replace("transformer.", ""), module_of(model.write()))

    def test_llmc(self):
        model, tokens = Gpt2(width=4, heads=2, layers=2), random_tokens(9, 11)
        np.testing.assert_allclose(logits_of(llmc_file(model, 16), tokens), model.logits(tokens), rtol=0, atol=2e-5)


class Head(unittest.TestCase):
    """B26."""

    def test_tied_or_not(self):
        tokens = random_tokens(5, 11)
        untied = Gpt2(tied=False)
        tied = Gpt2(tied=False)
        head = tied.weights.pop("lm_head.weight")
        same = {**tied.weights, "lm_head.weight": tied.weights["wte.weight"]}
        self.assertGreater(np.abs(untied.logits(tokens) - tied.logits(tokens)).max(), 0.1)

        def written(weights, flag):
            """A flag of None is not in config.json, and GPT-2 is tied then."""
            model = Gpt2(tied=flag)
            if flag is None:
                del model.config["tie_word_embeddings"]
            return model.write(safetensors(header_of(weights), data_of(weights)))

        other = {**tied.weights, "lm_head.weight": head}
        for folder, model in ((written(tied.weights, True), tied), (written(other, False), untied)):
            np.testing.assert_allclose(logits_of(folder, tokens), model.logits(tokens), rtol=0, atol=2e-5)
        graphs = {"wte": module_of(written(tied.weights, True)), "lm_head": module_of(written(other, False))}
        self.assertNotEqual(*graphs.values())
        # A head of other numbers is used, as transformers 5.24 does whatever the flag says.
        for weights, flag, used in ((tied.weights, True, "wte"), (tied.weights, None, "wte"), (same, True, "wte"), (same, None, "wte"),
                                    (other, True, "lm_head"), (other, None, "lm_head"), (other, False, "lm_head")):
            with self.subTest(stored="lm_head.weight" in weights, flag=flag):
                folder = written(weights, flag)
                self.assertEqual(module_of(folder), graphs[used])
                noted = "the head is said to be tied, but 'lm_head.weight' has other numbers than 'wte.weight': it is used"
                self.assertEqual(noted in run("gptc-import", folder).stderr, used == "lm_head" and flag is not False)
        folder = untied.write(safetensors(header_of(tied.weights), data_of(tied.weights)))
        self.assertIn("tensor 'lm_head.weight' is missing: expected shape [11, 8]", run("gptc-import", folder, status=1).stderr)

    def test_families(self):
        """The other families likewise: where config.json ties the head, one of other numbers is used, one of the same is the embedding."""
        for family, head, embedding in (("mistral", "lm_head.weight", "model.embed_tokens.weight"),
                                        ("gemma-untied", "lm_head.weight", "model.embed_tokens.weight"),
                                        ("gpt-neox", "embed_out.weight", "gpt_neox.embed_in.weight")):
            with self.subTest(family):
                untied = os.path.join(FAMILIES, family)
                note = f"the head is said to be tied, but '{head}' has other numbers than '{embedding}': it is used"
                other = said_to_be_tied(untied)
                self.assertIn("@" + head, module_of(untied))
                self.assertEqual(module_of(other), module_of(untied))
                self.assertIn(note, run("gptc-import", other).stderr)
                same = said_to_be_tied(untied, head, embedding)
                self.assertNotIn("@" + head, module_of(same))
                done = run("gptc-import", "--dry-run", same)
                self.assertIn("ignored: the same as " + embedding, done.stdout)
                self.assertNotIn("tied", done.stderr)

    def test_padded_vocabulary(self):
        """50257 tokens and 47 rows of zeros, whose logits of 0 would beat every real one: those are all from -5 to -1."""
        real, padded = 50257, 50304
        model = Gpt2(vocab=real, context=64)
        column = np.random.default_rng(3).uniform(-5, -1, real).astype(np.float32)
        model.weights["wte.weight"][:, 0] = column
        model.weights["ln_f.weight"][...] = 0
        model.weights["ln_f.bias"][...] = np.eye(8)[0]
        path = llmc_file(model, padded)
        for level in (0, 2):
            logits = logits_of(path, [1, 50256], level)
            self.assertEqual(logits.shape, (2, real))
            np.testing.assert_allclose(logits, [column, column], rtol=0, atol=1e-6)
            folder = compiled(imported(path, "model"), level, "-march=x86-64-v2")
            ids = lambda *options: [int(x) for x in run("gptc-run", folder, "--tokens", "1,50256", "-n", "20", "--ignore-eos", "--print-tokens",
                                                        *options).stdout.strip().split(",")]
            self.assertEqual(ids(), [int(column.argmax())] * 20)
            best = set(np.argsort(column)[-40:].tolist())
            sampled = ids("--temperature", "1", "--top-k", "40", "--seed", "5")
            self.assertTrue(set(sampled) <= best and len(set(sampled)) > 5, sampled)
            self.assertLess(max(ids("--temperature", "5", "--seed", "5")), real)
        odds = np.exp(logits[0].astype(np.float64) - logits[0].max())
        self.assertAlmostEqual((odds / odds.sum()).sum(), 1, places=12)

    def test_short_table(self):
        """A table with fewer rows than config.json says."""
        model = Gpt2(vocab=50254)
        done = run("gptc-import", model.write(vocab_size=50304), status=1)
        self.assertRegex(done.stderr, re.escape("tensor 'wte.weight': expected shape [50304, 8], got [50254, 8]"))


main()
