"""A GPT-2 124M with random weights, the same for every peer: written once as a Hugging Face folder, read by each."""
import json
import mmap
import os
import struct

import numpy as np

LAYERS, WIDTH, HEADS, VOCAB, CONTEXT, EPSILON = 12, 768, 12, 50257, 1024, 1e-5
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS,
          "n_positions": CONTEXT, "n_ctx": CONTEXT, "vocab_size": VOCAB, "activation_function": "gelu_new",
          "layer_norm_epsilon": EPSILON, "tie_word_embeddings": True}


def weights(seed=0):
    """Name -> float32 array, as in GPT-2's checkpoint: `weight` of a projection is [in, out]."""
    random = np.random.default_rng(seed)
    normal = lambda *shape, deviation=0.02: random.standard_normal(shape, np.float32) * np.float32(deviation)
    norm = lambda name: {name + ".weight": 1 + normal(WIDTH, deviation=0.1), name + ".bias": normal(WIDTH)}
    result = {"wte.weight": normal(VOCAB, WIDTH), "wpe.weight": normal(CONTEXT, WIDTH, deviation=0.01)}
    for i in range(LAYERS):
        p = f"h.{i}."
        result |= norm(p + "ln_1") | norm(p + "ln_2")
        for name, rows, columns in (("attn.c_attn", 1, 3), ("attn.c_proj", 1, 1), ("mlp.c_fc", 1, 4), ("mlp.c_proj", 4, 1)):
            result[p + name + ".weight"] = normal(rows * WIDTH, columns * WIDTH, deviation=0.02 / rows ** 0.5)
            result[p + name + ".bias"] = normal(columns * WIDTH)
    return result | norm("ln_f")


def write(folder):
    """config.json and model.safetensors; does nothing if they are there."""
    path = os.path.join(folder, "model.safetensors")
    if os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(CONFIG, f)
    arrays, head, at = weights(), {}, 0
    for name, array in arrays.items():
        head[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".new", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            f.write(array.tobytes())
    os.rename(path + ".new", path)


def read(folder):
    """The arrays of weights(), mapped."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    size, = struct.unpack("<Q", data[:8])
    return {name: np.frombuffer(data, np.float32, int(np.prod(t["shape"])), 8 + size + t["data_offsets"][0]).reshape(t["shape"])
            for name, t in json.loads(data[8:8 + size]).items()}
