"""A GPT-2 of any size with random weights: its checkpoint, and its logits by numpy in double."""
import json
import os
import struct
import tempfile

import numpy as np

from harness import TEMPORARY


def new_folder():
    return tempfile.mkdtemp(dir=TEMPORARY)


def safetensors(header, data=b""):
    """A file of this header (text, bytes, or what becomes JSON) and these bytes."""
    text = header if isinstance(header, bytes) else (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + data


def header_of(tensors):
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    return header


def data_of(tensors):
    return b"".join(value.tobytes() for value in tensors.values())


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x, gamma, beta):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d ** 2).mean(-1, keepdims=True) + 1e-5) * gamma + beta


class Gpt2:
    def __init__(self, layers=1, width=8, heads=2, vocab=11, context=32, tied=True, seed=0, scale=0.3):
        self.layers, self.heads = layers, heads
        c = width
        self.config = {"model_type": "gpt2", "vocab_size": vocab, "n_positions": context, "n_embd": c, "n_head": heads, "n_layer": layers,
                       "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "tie_word_embeddings": tied}
        shapes = {"wte.weight": (vocab, c), "wpe.weight": (context, c), "ln_f.weight": (c,), "ln_f.bias": (c,)}
        if not tied:
            shapes["lm_head.weight"] = (vocab, c)
        for i in range(layers):
            for name, shape in {"ln_1.weight": (c,), "ln_1.bias": (c,), "ln_2.weight": (c,), "ln_2.bias": (c,), "attn.c_attn.weight": (c, 3 * c),
                                "attn.c_attn.bias": (3 * c,), "attn.c_proj.weight": (c, c), "attn.c_proj.bias": (c,), "mlp.c_fc.weight": (c, 4 * c),
                                "mlp.c_fc.bias": (4 * c,), "mlp.c_proj.weight": (4 * c, c), "mlp.c_proj.bias": (c,)}.items():
                shapes[f"h.{i}.{name}"] = shape
        random = np.random.default_rng(seed)
        self.weights = {name: random.standard_normal(shape, np.float32) * np.float32(scale) for name, shape in shapes.items()}

    def write(self, file=None, **config):
        """A folder with config.json and model.safetensors, or these bytes in its place."""
        folder = new_folder()
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump({**self.config, **config}, f)
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(safetensors(header_of(self.weights), data_of(self.weights)) if file is None else file)
        return folder

    def attention(self, x, layer):
        w = self.weights
        qkv = x @ w[layer + "attn.c_attn.weight"] + w[layer + "attn.c_attn.bias"]
        q, k, v = (part.reshape(len(x), self.heads, -1).transpose(1, 0, 2) for part in np.split(qkv, 3, axis=-1))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        scores[:, np.triu(np.ones((len(x), len(x)), bool), 1)] = -np.inf
        y = (softmax(scores) @ v).transpose(1, 0, 2).reshape(x.shape)
        return y @ w[layer + "attn.c_proj.weight"] + w[layer + "attn.c_proj.bias"]

    def logits(self, tokens):
        w = self.weights
        x = (w["wte.weight"][tokens] + w["wpe.weight"][:len(tokens)]).astype(np.float64)
        for i in range(self.layers):
            layer = f"h.{i}."
            x = x + self.attention(norm(x, w[layer + "ln_1.weight"], w[layer + "ln_1.bias"]), layer)
            y = norm(x, w[layer + "ln_2.weight"], w[layer + "ln_2.bias"]) @ w[layer + "mlp.c_fc.weight"] + w[layer + "mlp.c_fc.bias"]
            y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))
            x = x + y @ w[layer + "mlp.c_proj.weight"] + w[layer + "mlp.c_proj.bias"]
        return norm(x, w["ln_f.weight"], w["ln_f.bias"]) @ w.get("lm_head.weight", w["wte.weight"]).T
