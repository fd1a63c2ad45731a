"""B11 (b): one tiny LLaMA as Hugging Face writes it (rotary halves) and as GGUF does (rows of Q and K reordered) is one model."""
import json
import os
import struct
import sys

import numpy as np

from harness import HERE, TEMPORARY, compiled, main, run, unittest
from package import Package

WRITER = os.path.join(HERE, "..", "Import", "Inputs", "checkpoint.py")
WIDTH, HEADS, KV, D, INNER, VOCAB = 16, 4, 2, 4, 24, 31
# Hugging Face's name, GGUF's, shape [out, in].
TENSORS = [("model.embed_tokens", "token_embd", [VOCAB, WIDTH]), ("model.norm", "output_norm", [WIDTH]), ("lm_head", "output", [VOCAB, WIDTH])] + [
    (f"model.layers.0.{hf}", f"blk.0.{gguf}", shape) for hf, gguf, shape in (
        ("input_layernorm", "attn_norm", [WIDTH]), ("post_attention_layernorm", "ffn_norm", [WIDTH]),
        ("self_attn.q_proj", "attn_q", [HEADS * D, WIDTH]), ("self_attn.k_proj", "attn_k", [KV * D, WIDTH]),
        ("self_attn.v_proj", "attn_v", [KV * D, WIDTH]), ("self_attn.o_proj", "attn_output", [WIDTH, WIDTH]),
        ("mlp.gate_proj", "ffn_gate", [INNER, WIDTH]), ("mlp.up_proj", "ffn_up", [INNER, WIDTH]), ("mlp.down_proj", "ffn_down", [WIDTH, INNER]))]


def fill(path, data):
    """The writer's tensors are zeros at the end of the file."""
    with open(path, "r+b") as f:
        f.seek(-len(data), os.SEEK_END)
        assert not any(f.read())
        f.seek(-len(data), os.SEEK_END)
        f.write(data)


class Pairing(unittest.TestCase):
    def logits(self, path, name):
        mlir = os.path.join(TEMPORARY, name + ".mlir")
        run("gptc-import", path, "--name", name, "-o", mlir)
        found = {}
        for level in (2, 0):
            with Package(compiled(mlir, level)).open() as model, model.session() as session:
                found[level] = session.step([3, 1, 4, 1, 5, 9, 2, 6, 5, 30])
        return found

    def test_one_model_in_two_layouts(self):
        random = np.random.default_rng(11)
        weights = {hf: random.normal(0, 0.6, shape).astype(np.float32) + (len(shape) == 1) for hf, _, shape in TENSORS}
        edits = lambda names, sizes: [f"{key}={json.dumps(value)}" for key, value in sizes.items()] + [f"{name}.weight:{json.dumps(shape)}" for name, shape in names]

        folder = os.path.join(TEMPORARY, "hf")
        run(sys.executable, WRITER, "llama", folder, *edits([(hf, shape) for hf, _, shape in TENSORS], {
            "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": KV, "intermediate_size": INNER, "vocab_size": VOCAB, "tie_word_embeddings": False}))
        path = os.path.join(folder, "model.safetensors")
        with open(path, "rb") as f:
            header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        fill(path, b"".join(weights[name.removesuffix(".weight")].tobytes() for name in sorted(header, key=lambda name: header[name]["data_offsets"])))

        reorder = lambda w: w.reshape(-1, D, WIDTH)[:, [0, 2, 1, 3]].reshape(w.shape)
        gguf = os.path.join(TEMPORARY, "model.gguf")
        # In the writer's own order, names that it has not at the end.
        own = ["token_embd", "output_norm", *(f"blk.0.{name}" for name in ("attn_norm", "ffn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")), "output"]
        by_name = {gguf_name: (weights[hf], shape) for hf, gguf_name, shape in TENSORS}
        run(sys.executable, WRITER, "gguf", gguf, *edits([(name, by_name[name][1]) for name in own], {
            "llama.embedding_length": WIDTH, "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV, "llama.feed_forward_length": INNER,
            "llama.attention.layer_norm_rms_epsilon": 1e-6, "llama.rope.freq_base": 10000.0}))
        data = b""
        for name in own:
            array = by_name[name][0]
            data += (reorder(array) if name.endswith(("attn_q", "attn_k")) else array).tobytes()
            data += bytes(-len(data) % 32)
        fill(gguf, data)

        hf, other = self.logits(folder, "hf"), self.logits(gguf, "gguf")
        for level in hf:
            self.assertGreater(np.abs(hf[level]).max(), 0.5)
            np.testing.assert_allclose(other[level], hf[level], rtol=0, atol=1e-5)
        # The order matters: rows as they are give another model.
        wrong = os.path.join(TEMPORARY, "wrong.gguf")
        with open(gguf, "rb") as source, open(wrong, "wb") as target:
            target.write(source.read().replace(reorder(weights["model.layers.0.self_attn.k_proj"]).tobytes(), weights["model.layers.0.self_attn.k_proj"].tobytes()))
        self.assertGreater(np.abs(self.logits(wrong, "wrong")[2] - hf[2]).max(), 0.05)


main()
