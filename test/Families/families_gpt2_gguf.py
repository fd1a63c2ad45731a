"""GPT-2 as GGUF."""
import os, tempfile
import gguf
import torch
from reference import finish, folder_of, random_state, write_folder


def gpt2_gguf(name):
    """As llama.cpp's converter writes it: matrices [out, in], positions in f32, the head left out; what is multiplied in q8_0."""
    config = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=61, n_embd=64, n_inner=96, n_layer=2, n_head=4, n_positions=48,
                  layer_norm_epsilon=1e-5, activation_function="gelu_new", bos_token_id=0, eos_token_id=0)
    path, state = folder_of(name), random_state(config, seed=1)
    writer = gguf.GGUFWriter(os.path.join(path, "model.gguf"), "gpt2")
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_block_count(config["n_layer"])
    writer.add_feed_forward_length(config["n_inner"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, config["n_layer"])
    stored = {}
    for key, tensor in state.items():
        to = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert to, key
        turned = key.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))  # Conv1D: [in, out]
        data = (tensor.T if turned else tensor).contiguous().numpy()
        kind = gguf.GGMLQuantizationType.F32 if data.ndim == 1 or "wpe" in key else gguf.GGMLQuantizationType.Q8_0
        block = gguf.quants.quantize(data, kind)
        back = torch.from_numpy(gguf.quants.dequantize(block, kind).reshape(data.shape).copy())
        stored[key] = back.T if turned else back
        writer.add_tensor(to, block, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with tempfile.TemporaryDirectory() as source:
        write_folder(source, config, stored)
        finish(path, source, "GPT-2 as GGUF: matrices [out, in], one projection for q, k and v, learned positions, tied head, q8_0", ["model.gguf"],
               config["vocab_size"], config["n_positions"], {"epsilon x 100": dict(layer_norm_epsilon=1e-3), "quick gelu": dict(activation_function="quick_gelu")})


CASES = {"gpt2-gguf": gpt2_gguf}
