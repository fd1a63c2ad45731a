"""LLaMA and the families that share its layer. Sizes differ from each other, so that no swapped dimension can pass; windows are shorter than the prompts."""
import torch
from reference import hf_case

ROPE = {"rope theta x 10": dict(rope_theta=1e5)}


def llama(**more):
    """config.json in the style of transformers 4."""
    return dict(model_type="llama", architectures=["LlamaForCausalLM"], vocab_size=61, hidden_size=36, intermediate_size=44, num_hidden_layers=2,
                num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0,
                hidden_act="silu", tie_word_embeddings=False) | more


def llama_biases(name):
    config = llama(attention_bias=True, mlp_bias=True)
    hf_case(name, config, "LLaMA with biases in every projection", {"epsilon x 10": dict(rms_norm_eps=1e-4)} | ROPE)


def llama_rope_linear(name):
    config = llama(hidden_size=48, rope_scaling={"type": "linear", "factor": 4.0}, num_key_value_heads=2)
    hf_case(name, config, "rope_scaling of type linear, in the old spelling", {"no scaling": dict(rope_scaling=None)} | ROPE)


def mistral(name):
    config = llama(model_type="mistral", architectures=["MistralForCausalLM"], num_attention_heads=4, num_key_value_heads=2, head_dim=10, sliding_window=7)
    hf_case(name, config, "a sliding window in every layer, head_dim not hidden_size / heads, f16",
            {"no window": dict(sliding_window=None), "window one less": dict(sliding_window=6), "window one more": dict(sliding_window=8)} | ROPE, torch.float16)


def qwen2(name):
    """config.json as transformers 5 writes it."""
    config = llama(model_type="qwen2", architectures=["Qwen2ForCausalLM"], num_hidden_layers=3, hidden_size=40, num_attention_heads=4, num_key_value_heads=1,
                   tie_word_embeddings=True, use_sliding_window=True, sliding_window=9, max_window_layers=1,
                   layer_types=["full_attention", "sliding_attention", "full_attention"], rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    del config["rope_theta"]
    hf_case(name, config, "biases of Q, K and V, a window in the layers that layer_types names, rope_parameters, tied head, bf16",
            {"no window": dict(layer_types=["full_attention"] * 3), "window from max_window_layers": dict(layer_types=None),
             "rope theta x 10": dict(rope_parameters={"rope_type": "default", "rope_theta": 1e7})}, torch.bfloat16)


def qwen2_layers(name):
    """config.json as transformers 4 wrote it: no layer_types."""
    config = llama(model_type="qwen2", architectures=["Qwen2ForCausalLM"], num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2,
                   use_sliding_window=True, sliding_window=5, max_window_layers=2)
    hf_case(name, config, "a window from max_window_layers on, untied head, as many KV heads as heads",
            {"no window": dict(use_sliding_window=False), "a layer earlier": dict(max_window_layers=1)} | ROPE)


def qwen3(name):
    config = llama(model_type="qwen3", architectures=["Qwen3ForCausalLM"], num_attention_heads=4, num_key_value_heads=2, head_dim=14, tie_word_embeddings=True,
                   use_sliding_window=False, sliding_window=None, max_window_layers=2, attention_bias=False)
    hf_case(name, config, "RMS norms of the heads of Q and K, head_dim not hidden_size / heads", {"epsilon x 10": dict(rms_norm_eps=1e-4)} | ROPE)


def phi3(name):
    config = llama(model_type="phi3", architectures=["Phi3ForCausalLM"], hidden_size=48, num_attention_heads=4, num_key_value_heads=2, sliding_window=11,
                   original_max_position_embeddings=64, rope_scaling=None, partial_rotary_factor=0.5, eos_token_id=1, pad_token_id=0)
    hf_case(name, config, "packed qkv_proj and gate_up_proj, half of each head rotates, a sliding window",
            {"no window": dict(sliding_window=None), "window one less": dict(sliding_window=10), "all of a head rotates": dict(partial_rotary_factor=1.0)} | ROPE)


CASES = {"llama-biases": llama_biases, "llama-rope-linear": llama_rope_linear, "mistral": mistral, "qwen2": qwen2, "qwen2-layers": qwen2_layers,
         "qwen3": qwen3, "phi3": phi3}
