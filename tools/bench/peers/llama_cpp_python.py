"""llama.cpp, by llama-cpp-python's low-level interface, built from source for this machine.

GPT-2 is written as a GGUF file of ours; quantised ones are made by llama.cpp's own quantiser. AMX is left out of the build: some virtual
machines announce it and do not run it. What else the CPU has is compiled in, and weights are repacked as llama.cpp likes (its default).
"""
import os

REQUIREMENTS = ["gguf", "llama-cpp-python"]
SETTINGS = {"gpt2": ["f32", "bf16", "q8_0", "q4_0"], "smollm2": ["q4_1"]}
FLAGS = {"avx": "AVX", "avx2": "AVX2", "bmi2": "BMI2", "fma": "FMA", "f16c": "F16C", "sse4_2": "SSE42", "avx512f": "AVX512",
         "avx512_vbmi": "AVX512_VBMI", "avx512vbmi": "AVX512_VBMI", "avx512_vnni": "AVX512_VNNI", "avx512_bf16": "AVX512_BF16", "avx_vnni": "AVX_VNNI"}


def build_variables():
    """For pip: from source, with what the CPU has, but AMX; a wheel from pip's cache may have been built otherwise."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        have = next((line for line in f if line.startswith("flags")), "").split()
    arguments = ["-DGGML_NATIVE=OFF"] + sorted({f"-DGGML_{FLAGS[flag]}=ON" for flag in have if flag in FLAGS})
    return {"CMAKE_ARGS": " ".join(arguments + ["-DCMAKE_C_FLAGS=-mtune=native", "-DCMAKE_CXX_FLAGS=-mtune=native"]), "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_BINARY": "llama-cpp-python"}


def write_gpt2(folder, path, kind):
    import gguf
    import gpt2
    w = gpt2.read(folder)
    writer = gguf.GGUFWriter(path + ".new", "gpt2")
    writer.add_context_length(gpt2.CONTEXT)
    writer.add_embedding_length(gpt2.WIDTH)
    writer.add_feed_forward_length(4 * gpt2.WIDTH)
    writer.add_block_count(gpt2.LAYERS)
    writer.add_head_count(gpt2.HEADS)
    writer.add_layer_norm_eps(gpt2.EPSILON)
    writer.add_vocab_size(gpt2.VOCAB)
    writer.add_tokenizer_model("none")
    narrow = gguf.GGMLQuantizationType.BF16

    def add(name, array):
        if array.ndim == 2 and kind == "bf16" and name != "position_embd.weight":
            writer.add_tensor(name, gguf.quants.quantize(array, narrow), raw_dtype=narrow)
        else:
            writer.add_tensor(name, array)

    add("token_embd.weight", w["wte.weight"])
    add("position_embd.weight", w["wpe.weight"])
    names = {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    for part in ("weight", "bias"):
        add(f"output_norm.{part}", w[f"ln_f.{part}"])
        for i in range(gpt2.LAYERS):
            for ours, theirs in names.items():
                array = w[f"h.{i}.{ours}.{part}"]
                add(f"blk.{i}.{theirs}.{part}", array.T.copy() if array.ndim == 2 else array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.rename(path + ".new", path)


def build(request, api):
    """The GGUF file."""
    if request["kind"] != "gpt2":
        return request["model"]
    path = lambda setting: os.path.join(request["work"], f"gpt2-{setting}.gguf")
    setting = request["setting"]
    source = setting if setting in ("f32", "bf16") else "f32"
    if not os.path.exists(path(source)):
        write_gpt2(request["model"], path(source), source)
    if not os.path.exists(path(setting)):
        parameters = api.llama_model_quantize_default_params()
        parameters.ftype = {"q8_0": 7, "q4_0": 2}[setting]  # llama_ftype
        parameters.nthread = request["threads"]
        if api.llama_model_quantize(path(source).encode(), path(setting).encode(), parameters):
            raise RuntimeError(f"llama_model_quantize failed for {setting}")
    return path(setting)


def Peer(request):
    import llama_cpp as api
    import numpy as np
    from worker import Stepper

    class LlamaCpp(Stepper):
        def __init__(self):
            api.llama_backend_init()
            path = build(request, api)
            parameters = api.llama_model_default_params()
            parameters.n_gpu_layers = 0
            self.model = api.llama_model_load_from_file(path.encode(), parameters)
            if not self.model:
                raise RuntimeError(f"{path}: not loaded")
            parameters = api.llama_context_default_params()
            parameters.n_ctx = request["prompt"] + request["decode"] + 64
            parameters.n_batch = parameters.n_ubatch = request["prompt"]
            parameters.n_threads = parameters.n_threads_batch = request["threads"]
            self.context = api.llama_init_from_model(self.model, parameters)
            self.vocab = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))
            self.batch = api.llama_batch_init(request["prompt"], 0, 1)
            self.version = "llama-cpp-python " + api.__version__
            info = api.llama_print_system_info().decode()
            self.settings = f"{request['setting']}, f16 KV cache (default), " + " ".join(part.split(" = ")[0].split(": ")[-1] for part in info.split(" | ") if part.endswith("= 1"))

        def step(self, tokens, position):
            if position == 0:
                api.llama_memory_clear(api.llama_get_memory(self.context), False)
            batch = self.batch
            batch.n_tokens = len(tokens)
            for i, one in enumerate(tokens):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = one, position + i, 1, i == len(tokens) - 1
                batch.seq_id[i][0] = 0
            status = api.llama_decode(self.context, batch)
            if status:
                raise RuntimeError(f"llama_decode returned {status}")
            return np.ctypeslib.as_array(api.llama_get_logits_ith(self.context, -1), (self.vocab,)).copy()

    return LlamaCpp()
