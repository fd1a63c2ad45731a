"""Gemma and Gemma 2. Heads are not width / heads wide; prompts are longer than the window."""
import os, tempfile
import gguf
import numpy as np
import torch
from reference import finish, folder_of, random_state, write_folder


def gemma(**more):
    """config.json as it was published with Gemma: "gelu" means the tanh approximation."""
    return dict(model_type="gemma", architectures=["GemmaForCausalLM"], vocab_size=67, hidden_size=36, intermediate_size=44, num_hidden_layers=2,
                num_attention_heads=3, num_key_value_heads=1, head_dim=16, max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=10000.0,
                hidden_act="gelu", bos_token_id=2, eos_token_id=1, pad_token_id=0) | more


def gemma2(**more):
    return dict(model_type="gemma2", architectures=["Gemma2ForCausalLM"], vocab_size=67, hidden_size=40, intermediate_size=52, num_hidden_layers=3,
                num_attention_heads=4, num_key_value_heads=2, head_dim=14, max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=10000.0,
                hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=20, attn_logit_softcapping=3.0, final_logit_softcapping=1.5,
                sliding_window=9, bos_token_id=2, eos_token_id=1, pad_token_id=0) | more


def case(name, config, tests, broken, dtype=torch.float32):
    """A Hugging Face folder; norms are stored less 1, as Gemma's are."""
    path, state = folder_of(name), random_state(config, seed=1)
    state = {n: t - 1 if "norm" in n else t for n, t in state.items()}
    write_folder(path, config, state, dtype)
    finish(path, path, tests, ["config.json", "model.safetensors"], config["vocab_size"], config["max_position_embeddings"], broken)


def gemma_published(name):
    case(name, gemma(), "Gemma: GeGLU, scaled embeddings, norms that scale by 1 + weight, head_dim that is not width / heads, tied head",
         {"silu": dict(hidden_act="silu"), "rope theta x 10": dict(rope_theta=1e5)})


def gemma_untied(name):
    config = gemma(hidden_act="gelu_pytorch_tanh", attention_bias=True, tie_word_embeddings=False, num_attention_heads=4, num_key_value_heads=2, head_dim=6,
                   rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    del config["rope_theta"]
    case(name, config, "Gemma: biases, an untied head, rope_parameters of transformers 5, bf16",
         {"rope theta x 10": dict(rope_parameters={"rope_type": "default", "rope_theta": 5000.0})}, torch.bfloat16)


def gemma2_windows(name):
    case(name, gemma2(), "Gemma 2: four norms a layer, capped scores and logits, query_pre_attn_scalar, a window in every other layer, bf16",
         {"window one less": dict(sliding_window=8), "no window": dict(layer_types=["full_attention"] * 3),
          "the other layers slide": dict(layer_types=["full_attention", "sliding_attention", "full_attention"]),
          "scores not capped": dict(attn_logit_softcapping=None), "logits not capped": dict(final_logit_softcapping=None),
          "scale of head_dim": dict(query_pre_attn_scalar=14)}, torch.bfloat16)


def gguf_case(name, config, tests, broken, matrices):
    """A GGUF file as llama.cpp's converter writes it: norms with the 1 added, rows of q and k as they are, `matrices` the type of what is multiplied."""
    path, state = folder_of(name), random_state(config, seed=1)
    state = {n: t - 1 if "norm" in n else t for n, t in state.items()}
    second = config["model_type"] == "gemma2"
    writer = gguf.GGUFWriter(os.path.join(path, "model.gguf"), config["model_type"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    if second:
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
        writer.add_sliding_window(config["sliding_window"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA2 if second else gguf.MODEL_ARCH.GEMMA, config["num_hidden_layers"])
    stored = {}
    for name, tensor in state.items():
        data, to = tensor.numpy(), names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert to, name
        kind = gguf.GGMLQuantizationType.F32 if data.ndim == 1 else matrices
        block = gguf.quants.quantize(data + np.float32(1) if data.ndim == 1 else data, kind)
        stored[name] = torch.from_numpy(gguf.quants.dequantize(block, kind).reshape(data.shape).copy()) - float(data.ndim == 1)
        writer.add_tensor(to, block, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with tempfile.TemporaryDirectory() as source:
        write_folder(source, config, stored)
        finish(path, source, tests, ["model.gguf"], config["vocab_size"], config["max_position_embeddings"], broken)


def gemma_gguf(name):
    gguf_case(name, gemma(hidden_size=64, intermediate_size=96, head_dim=32), "Gemma as GGUF: norms with the 1 added, q8_0", {"rope theta x 10": dict(rope_theta=1e5)},
              gguf.GGMLQuantizationType.Q8_0)


def gemma2_gguf(name):
    config = gemma2(query_pre_attn_scalar=14, num_hidden_layers=2)
    gguf_case(name, config, "Gemma 2 as GGUF: f16, the scale of the head size",
              {"window one less": dict(sliding_window=8), "the other layer slides": dict(layer_types=["full_attention", "sliding_attention"]),
               "scores not capped": dict(attn_logit_softcapping=None), "logits not capped": dict(final_logit_softcapping=None)},
              gguf.GGMLQuantizationType.F16)


CASES = {"gemma": gemma_published, "gemma-untied": gemma_untied, "gemma2": gemma2_windows, "gemma-gguf": gemma_gguf, "gemma2-gguf": gemma2_gguf}
