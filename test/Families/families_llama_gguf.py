"""GGUF files of LLaMA and its relatives, and one that holds blocks of every quantised format. gguf-py writes them, quantises and dequantises; transformers
computes from a folder of the dequantised numbers."""
import os, tempfile
import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from families_llama import llama
from reference import finish, folder_of, random_state, write_folder

NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
WITHOUT_QUANTIZER = (Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K)


def gguf_name(name):
    """model.layers.0.self_attn.q_proj.weight to blk.0.attn_q.weight"""
    stem, kind = name.rsplit(".", 1)
    if stem in NAMES:
        return f"{NAMES[stem]}.{kind}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{NAMES[part]}.{kind}"


def random_blocks(kind, shape, draw, deviation):
    """Bytes of a K-quant in which every code and every scale occurs; the f16 scales make its numbers deviate so far."""
    elements, bytes_ = gguf.GGML_QUANT_SIZES[kind]
    blocks = draw.integers(0, 256, (shape[0], shape[1] // elements, bytes_), dtype=np.uint8)
    places = {Type.Q2_K: (80, 82), Type.Q3_K: (108,), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,)}[kind]  # of the f16 numbers
    scales = [draw.uniform(0.7, 1.3, blocks.shape[:2]) for _ in places]
    size = 1e-3
    for _ in range(2):
        for place, scale in zip(places, scales):
            blocks[:, :, place:place + 2] = (size * scale).astype(np.float16)[..., None].view(np.uint8)
        stored = blocks.reshape(shape[0], -1)
        size *= deviation / gguf.quants.dequantize(stored, kind).std()
    return stored


def as_stored(tensor, kind, draw):
    """What the file holds, and the float32 numbers that it means."""
    if kind in (Type.F32, Type.F16):
        data = tensor.astype(np.float32 if kind == Type.F32 else np.float16)
        return data, data.astype(np.float32)
    data = random_blocks(kind, tensor.shape, draw, tensor.std()) if kind in WITHOUT_QUANTIZER else gguf.quants.quantize(tensor, kind)
    return data, gguf.quants.dequantize(data, kind)


def permute(weight, heads, inverse=False):
    """Rows of a head from pairs half a head apart to adjacent ones, as llama.cpp's converter orders those of Q and K."""
    half = weight.shape[0] // heads // 2
    split = weight.reshape(heads, half, 2, -1) if inverse else weight.reshape(heads, 2, half, -1)
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(weight.shape)


def metadata(writer, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(int(head * config.get("partial_rotary_factor", 1)))
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    writer.add_tokenizer_model("none")


def gguf_case(name, architecture, config, tests, broken, kind_of=lambda name: Type.F32, more=lambda writer: None):
    """`kind_of` says how a matrix is stored, by its name in the file; `more` writes what else the file has."""
    path, draw = folder_of(name), np.random.default_rng(1)
    writer = gguf.GGUFWriter(os.path.join(path, "model.gguf"), architecture)
    metadata(writer, config)
    more(writer)
    meant = {}
    for hf, tensor in random_state(config, seed=1).items():
        stored, weight = gguf_name(hf), tensor.numpy()
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(stored.split(".")[-2]) if architecture == "llama" else None
        if heads:
            weight = permute(weight, config[heads])
        kind = kind_of(stored) if weight.ndim == 2 else Type.F32
        data, weight = as_stored(weight, kind, draw)
        writer.add_tensor(stored, data, raw_dtype=kind)
        meant[hf] = torch.from_numpy(permute(weight, config[heads], inverse=True) if heads else weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with tempfile.TemporaryDirectory() as folder:
        write_folder(folder, config, meant)
        finish(path, folder, tests, ["model.gguf"], config["vocab_size"], config["max_position_embeddings"], broken)


def qwen2_gguf(name):
    config = llama(model_type="qwen2", num_attention_heads=4, num_key_value_heads=2, hidden_size=40, tie_word_embeddings=True, use_sliding_window=False, intermediate_size=64)
    gguf_case(name, "qwen2", config, "GGUF of Qwen2: biases, rows of Q and K not permuted, tied head, f16 and q8_0",
              {"rope theta x 10": dict(rope_theta=1e5)}, lambda n: Type.Q8_0 if "ffn_down" in n else Type.F16)


def qwen3_gguf(name):
    config = llama(model_type="qwen3", hidden_size=64, num_attention_heads=3, num_key_value_heads=1, head_dim=32, intermediate_size=96, num_hidden_layers=1,
                   use_sliding_window=False)
    gguf_case(name, "qwen3", config, "GGUF of Qwen3: norms of the heads of Q and K, head_dim not hidden_size / heads, q4_0",
              {"rope theta x 10": dict(rope_theta=1e5)}, lambda n: Type.Q4_0)


def phi3_gguf(name):
    config = llama(model_type="phi3", hidden_size=48, num_attention_heads=4, num_key_value_heads=2, sliding_window=11, partial_rotary_factor=0.5,
                   eos_token_id=1, pad_token_id=0)
    gguf_case(name, "phi3", config, "GGUF of Phi-3: packed projections, a part of each head rotates, a sliding window",
              {"no window": dict(sliding_window=None), "all of a head rotates": dict(partial_rotary_factor=1.0)})


def llama_gguf_rope_linear(name):
    config = llama(hidden_size=48, rope_scaling={"rope_type": "linear", "factor": 2.5}, num_hidden_layers=1)

    def more(writer):
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(2.5)
    gguf_case(name, "llama", config, "GGUF of LLaMA: rope.scaling.type linear", {"no scaling": dict(rope_scaling=None)}, more=more)


def llama_gguf_rope_freqs(name):
    """The factors are those of Llama 3's scaling, as llama.cpp's converter stores it."""
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    config = llama(hidden_size=48, num_attention_heads=3, num_key_value_heads=1, rope_scaling=scaling, num_hidden_layers=1)

    def more(writer):
        frequency = config["rope_theta"] ** -(np.arange(0, 16, 2) / 16)
        turns = 64 * frequency / (2 * np.pi)
        kept = np.clip((turns - 1) / (4 - 1), 0, 1)
        writer.add_tensor("rope_freqs.weight", (1 / (kept + (1 - kept) / 8)).astype(np.float32))
    gguf_case(name, "llama", config, "GGUF of LLaMA: rope_freqs.weight, the factors of llama3's scaling", {"no scaling": dict(rope_scaling=None)}, more=more)


def llama_gguf_quants(name):
    """Every format that kernels do not read as it is stored; rows of 256, so that K-quants have one block."""
    config = llama(hidden_size=256, num_attention_heads=4, num_key_value_heads=2, head_dim=32, intermediate_size=96, num_hidden_layers=1)
    kinds = {"token_embd": Type.Q6_K, "output": Type.Q3_K, "attn_q": Type.Q2_K, "attn_k": Type.Q3_K, "attn_v": Type.Q5_K, "attn_output": Type.Q5_0,
             "ffn_gate": Type.Q4_K, "ffn_up": Type.Q2_K, "ffn_down": Type.Q5_1}
    gguf_case(name, "llama", config, "GGUF of LLaMA: q5_0, q5_1 and every K-quant", {"rope theta x 10": dict(rope_theta=1e5)},
              lambda n: kinds[n.split(".")[-2]])


def blocks(name):
    """No model: a tensor of each quantised format, and beside it what gguf-py makes of it, in float32. Every code occurs."""
    path, draw = folder_of(name), np.random.default_rng(1)
    writer = gguf.GGUFWriter(os.path.join(path, "blocks.gguf"), "none")
    for kind in (Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, *WITHOUT_QUANTIZER):
        if kind in WITHOUT_QUANTIZER:
            data = random_blocks(kind, (2, 512), draw, 1.0)
        else:
            data = gguf.quants.quantize(draw.standard_normal((2, 64)).astype(np.float32), kind)
        label = kind.name.lower()
        writer.add_tensor(label, data, raw_dtype=kind)
        writer.add_tensor(label + ".f32", gguf.quants.dequantize(data, kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


CASES = {"qwen2-gguf": qwen2_gguf, "qwen3-gguf": qwen3_gguf, "phi3-gguf": phi3_gguf, "llama-gguf-rope-linear": llama_gguf_rope_linear, "llama-gguf-rope-freqs": llama_gguf_rope_freqs,
         "llama-gguf-quants": llama_gguf_quants, "blocks": blocks}
