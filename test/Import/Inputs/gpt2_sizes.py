"""Writes a GPT-2 of a published size with its published config.json: gpt2_sizes.py gpt2|gpt2-medium|gpt2-large|gpt2-xl FOLDER

Its weights are zeros that the disk does not hold: model.safetensors is a sparse file of up to 6.2 GB.
"""
import json
import os
import struct
import sys

SIZES = {"gpt2": (12, 12, 768), "gpt2-medium": (24, 16, 1024), "gpt2-large": (36, 20, 1280), "gpt2-xl": (48, 25, 1600)}
NAME, FOLDER = sys.argv[1:]
LAYERS, HEADS, C = SIZES[NAME]
# gpt2-large and gpt2-xl name fewer keys than gpt2; save_pretrained of later versions writes all of these.
CONFIG = {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1,
          "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": C, "n_head": HEADS,
          "n_inner": None, "n_layer": LAYERS, "n_positions": 1024, "n_special": 0, "output_past": True, "predict_special_tokens": True,
          "reorder_and_upcast_attn": False, "resid_pdrop": 0.1, "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True,
          "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
          "summary_use_proj": True, "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "use_cache": True, "vocab_size": 50257}
tensors = {"wte.weight": [50257, C], "wpe.weight": [1024, C], "ln_f.weight": [C], "ln_f.bias": [C]}
for i in range(LAYERS):
    for name, shape in {"ln_1.weight": [C], "ln_1.bias": [C], "ln_2.weight": [C], "ln_2.bias": [C], "attn.bias": [1, 1, 1024, 1024],
                        "attn.c_attn.weight": [C, 3 * C], "attn.c_attn.bias": [3 * C], "attn.c_proj.weight": [C, C], "attn.c_proj.bias": [C],
                        "mlp.c_fc.weight": [C, 4 * C], "mlp.c_fc.bias": [4 * C], "mlp.c_proj.weight": [4 * C, C], "mlp.c_proj.bias": [C]}.items():
        tensors[f"h.{i}.{name}"] = shape
header, at = {"__metadata__": {"format": "pt"}}, 0
for name, shape in tensors.items():
    size = 4
    for dimension in shape:
        size *= dimension
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
    at += size
os.makedirs(FOLDER, exist_ok=True)
with open(os.path.join(FOLDER, "config.json"), "w", encoding="utf-8") as f:
    json.dump(CONFIG, f)
with open(os.path.join(FOLDER, "model.safetensors"), "wb") as f:
    text = json.dumps(header).encode()
    f.write(struct.pack("<Q", len(text)) + text)
    f.truncate(8 + len(text) + at)
