"""GPT-NeoX and Pythia."""
import torch
from reference import finish, folder_of, random_state, write_folder


def neox(**more):
    return dict(model_type="gpt_neox", architectures=["GPTNeoXForCausalLM"], vocab_size=71, hidden_size=48, intermediate_size=68, num_hidden_layers=2,
                num_attention_heads=4, max_position_embeddings=64, layer_norm_eps=1e-5, hidden_act="gelu", rotary_pct=0.5, rotary_emb_base=10000,
                use_parallel_residual=True, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0) | more


def case(name, config, tests, broken, head="embed_out", dtype=torch.float32):
    path, state = folder_of(name), random_state(config, seed=1)
    state = {n.replace("lm_head", head): t for n, t in state.items()}
    write_folder(path, config, state, dtype)
    finish(path, path, tests, ["config.json", "model.safetensors"], config["vocab_size"], config["max_position_embeddings"], broken)


def parallel(name):
    case(name, neox(), "GPT-NeoX: attention and feed-forward side by side, half of each head rotates, q k v packed head by head, untied head, bf16",
         {"one after the other": dict(use_parallel_residual=False), "a third rotates": dict(rotary_pct=0.34),
          "rotary base x 10": dict(rotary_emb_base=100000)}, dtype=torch.bfloat16)


def sequential(name):
    rope = {"rope_type": "default", "rope_theta": 3000.0, "partial_rotary_factor": 0.25}
    config = neox(use_parallel_residual=False, attention_bias=False, hidden_act="gelu_new", num_attention_heads=3, tie_word_embeddings=True, rope_parameters=rope)
    del config["rotary_pct"], config["rotary_emb_base"]
    case(name, config, "GPT-NeoX: feed-forward after attention, no attention biases, a quarter of each head rotates (transformers 5), tied head, f16",
         {"side by side": dict(use_parallel_residual=True), "half rotates": dict(rope_parameters=rope | {"partial_rotary_factor": 0.5})}, dtype=torch.float16)


CASES = {"gpt-neox": parallel, "gpt-neox-sequential": sequential}
