"""Sizes at the edges (B34): empty batches, one to seventeen tokens, heads of one channel, no layers, every size dynamic, sizes that change."""
import os
import subprocess
import unittest

import numpy as np

from harness import BIN, GOLDEN, checkpoint, compiled, compiled_case, golden, imported, main, random_tokens, run, same_bits, written
from models import Gpt2, new_folder, softmax
from package import INVALID_ARGUMENT, OUT_OF_RANGE, Error, Package

LEVELS = (0, 2)


def attention(q, k, v, causal, scale):
    """[H, Sq, D], [H, Sk, D]; causal is aligned at the end."""
    scores = q.astype(np.float64) @ k.transpose(0, 2, 1).astype(np.float64) * scale
    if causal:
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1 + k.shape[1] - q.shape[1])] = -np.inf
    return softmax(scores) @ v


FUSED = """module attributes {{gpt.name = "attention"}} {{
  func.func @attention(%q: {q} {{gpt.arg = "q"}}, %k: {k} {{gpt.arg = "k"}}, %v: {k} {{gpt.arg = "v"}}) -> ({q} {{gpt.result = "out"}}) {{
    %o = gpt.flash_attention %q, %k, %v {causal} scale 0.5 : {q}, {k}
    return %o : {q}
  }}
}}
"""
PLAIN = """module attributes {{gpt.name = "attention"}} {{
  func.func @attention(%q: {q} {{gpt.arg = "q"}}, %k: {k} {{gpt.arg = "k"}}, %v: {k} {{gpt.arg = "v"}}) -> ({q} {{gpt.result = "out"}}) {{
    %s = gpt.matmul %q, %k transpose_b : {q}, {k} -> {s}
    %x = gpt.scale %s by 0.5 : {s}
    {mask}
    %p = gpt.softmax %m : {s}
    %o = gpt.matmul %p, %v : {s}, {k} -> {q}
    return %o : {q}
  }}
}}
"""
ZERO_LAYERS = """module attributes {gpt.name = "zero", gpt.context = 32 : i64, gpt.vocab = 11 : i64} {
  ml_program.global private @wte.weight(#ml_program.extern<tensor<11x8xf32>>) : tensor<11x8xf32>
  ml_program.global private @wpe.weight(#ml_program.extern<tensor<32x8xf32>>) : tensor<32x8xf32>
  ml_program.global private @ln_f.weight(#ml_program.extern<tensor<8xf32>>) : tensor<8xf32>
  ml_program.global private @ln_f.bias(#ml_program.extern<tensor<8xf32>>) : tensor<8xf32>
  func.func @forward(%tokens: tensor<?xi32> {gpt.arg = "tokens"}) -> (tensor<?x11xf32> {gpt.result = "logits"}) {
    %wte = ml_program.global_load_const @wte.weight : tensor<11x8xf32>
    %wpe = ml_program.global_load_const @wpe.weight : tensor<32x8xf32>
    %g = ml_program.global_load_const @ln_f.weight : tensor<8xf32>
    %b = ml_program.global_load_const @ln_f.bias : tensor<8xf32>
    %ids = gpt.positions %tokens : tensor<?xi32>
    %t = gpt.embedding %wte, %tokens : tensor<11x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
    %p = gpt.embedding %wpe, %ids : tensor<32x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
    %x = arith.addf %t, %p : tensor<?x8xf32>
    %n = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
    %logits = gpt.linear %n, %wte : tensor<?x8xf32>, tensor<11x8xf32> -> tensor<?x11xf32>
    return %logits : tensor<?x11xf32>
  }
}
"""


class Steps(unittest.TestCase):
    def test_empty(self):
        """B = 0: nothing is computed, status 0, and the sequence is what it was."""
        for level in LEVELS:
            package = Package(compiled_case("gpt2-hf", level))
            with package.open() as model, model.session(sequences=2) as session:
                first = session.step([1, 2, 3])
                self.assertEqual(session.step([]).shape, (0, package.info.vocab))
                self.assertEqual(session.step([], sequences=[]).shape, (0, package.info.vocab))
                with self.assertRaises(Error) as caught:
                    session.step([], rows=[0])
                self.assertEqual(caught.exception.status, OUT_OF_RANGE)
                self.assertIn("row 0", caught.exception.message)
                self.assertEqual(session.step([4], [3], rows=[]).shape, (0, package.info.vocab))  # tokens without rows
                self.assertTrue(same_bits(session.step([5, 1], [4, 5]), session.step([1, 2, 3, 4, 5, 1])[4:]))
                self.assertTrue(same_bits(session.step([1, 2, 3]), first))

    def test_golden(self):
        """S = 1..17, past = 0, against the golden logits: a later token changes no earlier row."""
        for case, level in (("gpt2-hf", 0), ("gpt2-hf", 2), ("llama-hf", 0), ("llama-hf", 2)):
            prompt = next(p for p in golden(case)["prompts"] if p["length"] >= 17)
            expected = np.load(os.path.join(GOLDEN, case, prompt["logits"]))
            package = Package(compiled_case(case, level))
            with package.open() as model, model.session() as session:
                for count in range(1, 18):
                    with self.subTest(case=case, level=level, count=count):
                        logits = session.step(prompt["ids"][:count])
                        np.testing.assert_allclose(logits, expected[:count], rtol=0, atol=2e-4)

    def check(self, gpt, counts, atol=2e-5):
        mlir = imported(gpt.write(), "model")
        vocab = gpt.config["vocab_size"]
        tokens = random_tokens(max(counts), vocab, 3)
        expected = gpt.logits(tokens)
        for level in LEVELS:
            package = Package(compiled(mlir, level))
            with package.open() as model, model.session(tokens=max(counts)) as session:
                for count in counts:
                    with self.subTest(gpt=gpt.config, level=level, count=count):
                        whole = session.step(tokens[:count])
                        np.testing.assert_allclose(whole, expected[:count], rtol=0, atol=atol)
                each = np.concatenate([session.step([token], [i]) for i, token in enumerate(tokens[:17])])
                self.assertTrue(same_bits(each, session.step(tokens[:17])), "token by token")

    def test_small_models(self):
        """S = 1..17 of one layer; D = 1; one channel in all."""
        self.check(Gpt2(width=4, heads=4), range(1, 18))  # D = 1
        self.check(Gpt2(width=1, heads=1, vocab=2), (1, 2, 17))

    def test_sizes_change(self):
        """1..17 and then 1, 7, 64, 65, 1 tokens, one package and session."""
        self.check(Gpt2(context=128), (*range(1, 18), 1, 7, 64, 65, 1))

    def test_zero_layers(self):
        gpt = Gpt2(layers=0)
        for level in LEVELS:
            package = Package(compiled(written(ZERO_LAYERS), level))
            weights = {name: gpt.weights[name] for name in ("wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias")}
            with package.open(weights) as model, model.session() as session:
                for count in (*range(1, 18), 1, 32, 7):
                    tokens = random_tokens(count, 11, count)
                    logits = session.run("forward", {"tokens": np.array(tokens, np.int32)}, ["logits"])["logits"]
                    np.testing.assert_allclose(logits, gpt.logits(tokens), rtol=0, atol=2e-5)
                with self.assertRaises(Error) as caught:  # S = 0
                    session.run("forward", {"tokens": np.zeros(0, np.int32)}, ["logits"])
                self.assertEqual(caught.exception.status, INVALID_ARGUMENT)
                self.assertRegex(caught.exception.message, r"'tokens': expected shape \[any\] \(any: a size of 1 or more\), got \[0\]")
        # A checkpoint without layers is refused.
        folder = gpt.write()
        done = run("gptc-import", folder, status=1)
        self.assertIn(f"{folder}/config.json: key 'n_layer': expected 1 to 2147483647, got 0", done.stderr)


class Entries(unittest.TestCase):
    def run_all(self, text, shapes, causal, heads=2, size=8):
        """Each pair of lengths in turn with one package, against numpy."""
        for level in LEVELS:
            package = Package(compiled(written(text), level))
            random = np.random.default_rng(5)
            with package.open({}) as model, model.session() as session:
                for sq, sk in shapes:
                    with self.subTest(level=level, sq=sq, sk=sk):
                        q, k, v = (random.standard_normal((heads, s, size), np.float32) for s in (sq, sk, sk))
                        out = session.run("attention", {"q": q, "k": k, "v": v}, ["out"])["out"]
                        np.testing.assert_allclose(out, attention(q, k, v, causal, 0.5), rtol=0, atol=2e-6)
                refused = np.zeros((heads, 0, size), np.float32)
                some = np.zeros((heads, 3, size), np.float32)
                for q, k, name in ((refused, some, "q"), (some, refused, "k"), (refused, refused, "q")):
                    with self.assertRaises(Error) as caught:  # Sq = 0; Sk = 0 with Sq > 0
                        session.run("attention", {"q": q, "k": k, "v": k}, ["out"])
                    self.assertEqual(caught.exception.status, INVALID_ARGUMENT)
                    self.assertRegex(caught.exception.message, f"'{name}': expected shape \\[{heads}, any, {size}\\] \\(any: a size of 1 or more\\), got \\[{heads}, 0, {size}\\]")

    def test_lengths(self):
        lengths = [(s, s) for s in range(1, 18)] + [(s, s) for s in (1, 7, 64, 65, 1)] + [(1, 17), (3, 64), (64, 65), (1, 1)]
        kinds = {"q": "tensor<2x?x8xf32>", "k": "tensor<2x?x8xf32>", "s": "tensor<2x?x?xf32>"}
        self.run_all(FUSED.format(causal="causal", **kinds), lengths, True)
        self.run_all(PLAIN.format(mask="%m = gpt.causal_mask %x : tensor<2x?x?xf32>", **kinds), lengths, True)
        self.run_all(FUSED.format(causal="", **kinds), lengths + [(17, 1), (65, 64)], False)

    def test_head_of_one(self):
        kinds = {"q": "tensor<2x?x1xf32>", "k": "tensor<2x?x1xf32>", "s": "tensor<2x?x?xf32>"}
        lengths = [(1, 1), (17, 17), (1, 65), (7, 7)]
        self.run_all(PLAIN.format(mask="%m = gpt.causal_mask %x : tensor<2x?x?xf32>", **kinds), lengths, True, size=1)

    def test_every_size_dynamic(self):
        """tensor<?x?x?xf32> for Q, K and V: compiled and right, or one clear refusal."""
        shapes = (2, 7, 8), (1, 1, 1), (3, 65, 4), (2, 7, 8)
        kinds = {"heads": "tensor<?x?x8xf32>", "all": "tensor<?x?x?xf32>"}
        for dynamic, what, level in [("all", what, level) for what in (FUSED, PLAIN) for level in LEVELS] + [("heads", FUSED, 2), ("heads", PLAIN, 2)]:
            with self.subTest(dynamic=dynamic, fused=what is FUSED, level=level):
                q, s = kinds[dynamic], kinds["all"]
                text = what.format(q=q, k=q, s=s, causal="causal", mask="%m = gpt.causal_mask %x : " + s)
                here = new_folder()
                done = subprocess.run([os.path.join(BIN, "gptc"), written(text), "-o", "kernels", f"-O{level}"], cwd=here, capture_output=True, text=True, check=False)
                if done.returncode:
                    self.assertEqual((done.returncode, dynamic), (1, "all"), done.stderr)
                    self.assertRegex(done.stderr, r"model\.mlir:\d+:\d+: error: 'gpt\.\w+' op .*expected .*static head size, got 'tensor<\?x\?x\?xf32>'")
                    self.assertEqual((done.stderr.count("error: "), os.listdir(here)), (1, []))
                    continue
                package = Package(os.path.join(here, "kernels"))
                with package.open({}) as model, model.session() as session:
                    for shape in shapes:
                        shape = (*shape[:2], 8) if dynamic == "heads" else shape
                        q, k, v = np.random.default_rng(6).standard_normal((3, *shape), np.float32)
                        out = session.run("attention", {"q": q, "k": k, "v": v}, ["out"])["out"]
                        np.testing.assert_allclose(out, attention(q, k, v, True, 0.5), rtol=0, atol=2e-6)

    def test_static_zero(self):
        """B = 0 and S = 0 in a type are refused at their op."""
        for q, k in (("tensor<0x4x8xf32>",) * 2, ("tensor<2x0x8xf32>",) * 2, ("tensor<2x4x0xf32>",) * 2, ("tensor<2x4x8xf32>", "tensor<2x0x8xf32>")):
            for level in LEVELS:
                done = run("gptc", written(FUSED.format(causal="", q=q, k=k)), "-o", os.path.join(new_folder(), "kernels"), f"-O{level}", status=1)
                self.assertRegex(done.stderr, r"model\.mlir:3:\d+: error: 'gpt\.flash_attention' op expected dimensions from 1 to 2147483647, got '" + (k if "x0x" in k or "<0x" in k else q))

    def test_batch(self):
        """A function with a batch of its own: B and S in any order of sizes; B = 0 is refused by name."""
        text = """module attributes {gpt.name = "batch"} {
          func.func @f(%x: tensor<?x?x8xf32> {gpt.arg = "x"}) -> (tensor<?x?x8xf32> {gpt.result = "y"}) {
            %y = gpt.softmax %x : tensor<?x?x8xf32>
            return %y : tensor<?x?x8xf32>
          }
        }"""
        for level in LEVELS:
            package = Package(compiled(written(text), level))
            with package.open({}) as model, model.session() as session:
                for shape in ((1, 1), (2, 7), (64, 1), (1, 65), (3, 17), (1, 1)):
                    x = np.random.default_rng(7).standard_normal((*shape, 8), np.float32)
                    y = session.run("f", {"x": x}, ["y"])["y"]
                    np.testing.assert_allclose(y, softmax(x.astype(np.float64)), rtol=0, atol=1e-6)
                for shape in ((0, 3), (3, 0), (0, 0)):
                    with self.assertRaises(Error) as caught:
                        session.run("f", {"x": np.zeros((*shape, 8), np.float32)}, ["y"])
                    self.assertEqual(caught.exception.status, INVALID_ARGUMENT)
                    self.assertRegex(caught.exception.message, f"'x': expected shape \\[{shape[0] or 'any'}, any, 8\\] \\(any: a size of 1 or more\\), got \\[{shape[0]}, {shape[1]}, 8\\]")


main()
