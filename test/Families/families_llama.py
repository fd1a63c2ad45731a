"""LLaMA and the families that share its layer. Sizes differ from each other, so that no swapped dimension can pass."""
from reference import hf_case


def llama(**more):
    """config.json in the style of transformers 4."""
    return dict(model_type="llama", architectures=["LlamaForCausalLM"], vocab_size=61, hidden_size=36, intermediate_size=44, num_hidden_layers=2,
                num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0,
                hidden_act="silu", tie_word_embeddings=False) | more


def llama_biases(name):
    config = llama(attention_bias=True, mlp_bias=True)
    hf_case(name, config, "LLaMA with biases in every projection", {"epsilon x 10": dict(rms_norm_eps=1e-4), "rope theta x 10": dict(rope_theta=1e5)})


CASES = {"llama-biases": llama_biases}
