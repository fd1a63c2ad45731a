"""Writes a tiny checkpoint, whole or broken in one way. No packages needed.

usage: checkpoint.py gpt2|llama|gemma|gemma2|neox|annotated|gguf|gguf-gemma2|
                     gguf-gemma2-27b|gguf-gpt2 PATH [EDIT...]

The gguf ones write one file, the others a folder with config.json and
model.safetensors. Weights are zero. EDIT:
  KEY=JSON        set a key of config.json or of the GGUF metadata
  KEY=            remove it
  NAME:[2,3]      give a tensor this shape (added if it is new)
  NAME:           remove the tensor
  NAME:i32        store it as 32-bit integers
  NAME:all 1e-20  fill it with this number
  FILE@TEXT       write a file beside config.json
"""
import json
import os
import struct
import sys

LAYERS, WIDTH, HEADS, KV, INNER, VOCAB, CONTEXT = 1, 8, 2, 1, 12, 11, 16


def gpt2():
    config = dict(model_type="gpt2", n_layer=LAYERS, n_embd=WIDTH, n_head=HEADS, n_positions=CONTEXT,
                  vocab_size=VOCAB, n_inner=None, layer_norm_epsilon=1e-5, activation_function="gelu_new",
                  bos_token_id=10, eos_token_id=10)
    c = WIDTH
    tensors = {"wte.weight": [VOCAB, c], "wpe.weight": [CONTEXT, c], "ln_f.weight": [c], "ln_f.bias": [c]}
    for i in range(LAYERS):
        h = f"h.{i}."
        tensors |= {h + "ln_1.weight": [c], h + "ln_1.bias": [c], h + "ln_2.weight": [c], h + "ln_2.bias": [c],
                    h + "attn.c_attn.weight": [c, 3 * c], h + "attn.c_attn.bias": [3 * c],
                    h + "attn.c_proj.weight": [c, c], h + "attn.c_proj.bias": [c],
                    h + "mlp.c_fc.weight": [c, 4 * c], h + "mlp.c_fc.bias": [4 * c],
                    h + "mlp.c_proj.weight": [4 * c, c], h + "mlp.c_proj.bias": [c]}
    return config, tensors


def llama():
    config = dict(model_type="llama", num_hidden_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=HEADS,
                  num_key_value_heads=KV, intermediate_size=INNER, vocab_size=VOCAB, hidden_act="silu",
                  max_position_embeddings=CONTEXT, rms_norm_eps=1e-6, rope_theta=10000.0, tie_word_embeddings=True)
    c, kv = WIDTH, KV * WIDTH // HEADS
    tensors = {"model.embed_tokens.weight": [VOCAB, c], "model.norm.weight": [c]}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        tensors |= {at + "input_layernorm.weight": [c], at + "post_attention_layernorm.weight": [c],
                    at + "self_attn.q_proj.weight": [c, c], at + "self_attn.k_proj.weight": [kv, c],
                    at + "self_attn.v_proj.weight": [kv, c], at + "self_attn.o_proj.weight": [c, c],
                    at + "mlp.gate_proj.weight": [INNER, c], at + "mlp.up_proj.weight": [INNER, c],
                    at + "mlp.down_proj.weight": [c, INNER]}
    return config, tensors


def annotated():
    """The Annotated Transformer: one layer of each stack, a source vocabulary of 7."""
    config = dict(model_type="annotated_transformer", h=HEADS)
    c = WIDTH
    tensors = {"generator.proj.weight": [VOCAB, c], "generator.proj.bias": [VOCAB]}
    for at, vocab in (("src_embed", 7), ("tgt_embed", VOCAB)):
        tensors |= {at + ".0.lut.weight": [vocab, c], at + ".1.pe": [1, CONTEXT, c]}
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "src_attn"])):
        norms = [f"layers.0.sublayer.{i}.norm" for i in range(len(attentions) + 1)] + ["norm"]
        tensors |= {f"{stack}.{norm}.{name}": [c] for norm in norms for name in ("a_2", "b_2")}
        at = stack + ".layers.0."
        tensors |= {at + "feed_forward.w_1.weight": [INNER, c], at + "feed_forward.w_1.bias": [INNER],
                    at + "feed_forward.w_2.weight": [c, INNER], at + "feed_forward.w_2.bias": [c]}
        for attention in attentions:
            for i in range(4):
                linear = f"{at}{attention}.linears.{i}."
                tensors |= {linear + "weight": [c, c], linear + "bias": [c]}
    return config, tensors


def gguf():
    config = {"general.architecture": "llama", "llama.block_count": LAYERS, "llama.context_length": CONTEXT,
              "llama.embedding_length": WIDTH, "llama.feed_forward_length": INNER,
              "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV,
              "llama.attention.layer_norm_rms_epsilon": 1e-5}
    c, kv = WIDTH, KV * WIDTH // HEADS
    tensors = {"token_embd.weight": [VOCAB, c], "output_norm.weight": [c]}
    for i in range(LAYERS):
        at = f"blk.{i}."
        tensors |= {at + "attn_norm.weight": [c], at + "ffn_norm.weight": [c], at + "attn_q.weight": [c, c],
                    at + "attn_k.weight": [kv, c], at + "attn_v.weight": [kv, c], at + "attn_output.weight": [c, c],
                    at + "ffn_gate.weight": [INNER, c], at + "ffn_up.weight": [INNER, c],
                    at + "ffn_down.weight": [c, INNER]}
    return config, tensors


def gemma():
    head = 6
    config = dict(model_type="gemma", num_hidden_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=HEADS,
                  num_key_value_heads=KV, head_dim=head, intermediate_size=INNER, vocab_size=VOCAB,
                  max_position_embeddings=CONTEXT)
    c, q, kv = WIDTH, HEADS * head, KV * head
    tensors = {"model.embed_tokens.weight": [VOCAB, c], "model.norm.weight": [c]}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        tensors |= {at + "input_layernorm.weight": [c], at + "post_attention_layernorm.weight": [c],
                    at + "self_attn.q_proj.weight": [q, c], at + "self_attn.k_proj.weight": [kv, c],
                    at + "self_attn.v_proj.weight": [kv, c], at + "self_attn.o_proj.weight": [c, q],
                    at + "mlp.gate_proj.weight": [INNER, c], at + "mlp.up_proj.weight": [INNER, c],
                    at + "mlp.down_proj.weight": [c, INNER]}
    return config, tensors


def gemma2():
    config, tensors = gemma()
    for i in range(LAYERS):
        tensors |= {f"model.layers.{i}.{where}_feedforward_layernorm.weight": [WIDTH] for where in ("pre", "post")}
    return config | dict(model_type="gemma2"), tensors


def neox():
    c = 2 * WIDTH
    config = dict(model_type="gpt_neox", num_hidden_layers=LAYERS, hidden_size=c, num_attention_heads=HEADS,
                  intermediate_size=INNER, vocab_size=VOCAB, max_position_embeddings=CONTEXT)
    shapes = {"input_layernorm.": [c], "post_attention_layernorm.": [c], "attention.query_key_value.": [3 * c, c],
              "attention.dense.": [c, c], "mlp.dense_h_to_4h.": [INNER, c], "mlp.dense_4h_to_h.": [c, INNER]}
    tensors = {"gpt_neox.embed_in.weight": [VOCAB, c], "gpt_neox.final_layer_norm.weight": [c],
               "gpt_neox.final_layer_norm.bias": [c], "embed_out.weight": [VOCAB, c]}
    for i in range(LAYERS):
        for name, shape in shapes.items():
            tensors |= {f"gpt_neox.layers.{i}.{name}weight": shape, f"gpt_neox.layers.{i}.{name}bias": shape[:1]}
    return config, tensors


def gguf_gemma2(layers=LAYERS):
    c, head = WIDTH, 6
    config = {"general.architecture": "gemma2", "gemma2.block_count": layers, "gemma2.context_length": CONTEXT,
              "gemma2.embedding_length": c, "gemma2.feed_forward_length": INNER, "gemma2.attention.head_count": HEADS,
              "gemma2.attention.head_count_kv": KV, "gemma2.attention.key_length": head,
              "gemma2.attention.value_length": head, "gemma2.attention.layer_norm_rms_epsilon": 1e-6}
    shapes = {"attn_norm": [c], "post_attention_norm": [c], "ffn_norm": [c], "post_ffw_norm": [c],
              "attn_q": [HEADS * head, c], "attn_k": [KV * head, c], "attn_v": [KV * head, c],
              "attn_output": [c, HEADS * head], "ffn_gate": [INNER, c], "ffn_up": [INNER, c], "ffn_down": [c, INNER]}
    tensors = {"token_embd.weight": [VOCAB, c], "output_norm.weight": [c]}
    return config, tensors | {f"blk.{i}.{name}.weight": shape for i in range(layers) for name, shape in shapes.items()}


def gguf_gpt2():
    c = WIDTH
    config = {"general.architecture": "gpt2", "gpt2.block_count": LAYERS, "gpt2.context_length": CONTEXT,
              "gpt2.embedding_length": c, "gpt2.feed_forward_length": INNER, "gpt2.attention.head_count": HEADS,
              "gpt2.attention.layer_norm_epsilon": 1e-5}
    shapes = {"attn_norm": [c], "attn_qkv": [3 * c, c], "attn_output": [c, c], "ffn_norm": [c], "ffn_up": [INNER, c],
              "ffn_down": [c, INNER]}
    tensors = {"token_embd.weight": [VOCAB, c], "position_embd.weight": [CONTEXT, c], "output_norm.weight": [c],
               "output_norm.bias": [c]}
    for i in range(LAYERS):
        for name, shape in shapes.items():
            tensors |= {f"blk.{i}.{name}.weight": shape, f"blk.{i}.{name}.bias": shape[:1]}
    return config, tensors


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def data_of(name, shape, fills):
    return struct.pack("<f", fills.get(name, 0)) * elements(shape)


def write_safetensors(path, tensors, integers, fills):
    header, offset = {}, 0
    for name, shape in tensors.items():
        end = offset + 4 * elements(shape)
        header[name] = {"dtype": "I32" if name in integers else "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data_of(*item, fills) for item in tensors.items()))


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value):
    if isinstance(value, list):  # of one kind, and not empty
        items = [gguf_value(item) for item in value]
        return struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(items)) + b"".join(item[4:] for item in items)
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<I", 8) + gguf_string(value)


def write_gguf(path, config, tensors, integers, fills):
    out = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(config))
    for key, value in config.items():
        out += gguf_string(key) + gguf_value(value)
    data = b""
    for name, shape in tensors.items():
        out += gguf_string(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack("<Q", size) for size in reversed(shape))
        out += struct.pack("<IQ", 26 if name in integers else 0, len(data))
        data += data_of(name, shape, fills)
        data += bytes(-len(data) % 32)
    out += bytes(-len(out) % 32) + data
    with open(path, "wb") as f:
        f.write(out)


def main():
    kind, path, *edits = sys.argv[1:]
    config, tensors = {"gpt2": gpt2, "llama": llama, "gemma": gemma, "gemma2": gemma2, "neox": neox,
                       "annotated": annotated, "gguf": gguf, "gguf-gemma2": gguf_gemma2,
                       "gguf-gemma2-27b": lambda: gguf_gemma2(46), "gguf-gpt2": gguf_gpt2}[kind]()
    integers, files, fills = set(), {}, {}
    for edit in edits:
        at = min(i for i in (edit.find(c) for c in "=:@") if i >= 0)
        name, value = edit[:at], edit[at + 1:]
        if edit[at] == "@":
            files[name] = value
        elif edit[at] == "=":
            config.pop(name, None)
            if value:
                config[name] = json.loads(value)
        elif value == "i32":
            integers.add(name)
        elif value.startswith("all "):
            fills[name] = float(value[4:])
        else:
            tensors.pop(name, None)
            if value:
                tensors[name] = json.loads(value)
    if kind.startswith("gguf"):
        return write_gguf(path, config, tensors, integers, fills)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f)
    write_safetensors(os.path.join(path, "model.safetensors"), tensors, integers, fills)
    for name, text in files.items():
        with open(os.path.join(path, name), "w") as f:
            f.write(text)


main()
