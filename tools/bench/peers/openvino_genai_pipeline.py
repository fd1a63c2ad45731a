"""OpenVINO GenAI, which reads the GGUF file itself; it chooses the tokens (greedy) and measures them (its perf_metrics)."""
REQUIREMENTS = ["openvino-genai", "openvino-tokenizers"]
SETTINGS = {"smollm2": ["paged", "sdpa", "f32"]}
# By default activations are quantised to 8 bits as they come, and so are keys and values; f32 turns both off.
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}


def Peer(request):
    import numpy as np
    import openvino as ov
    import openvino_genai as genai

    class OpenVinoGenAI:
        version = "OpenVINO GenAI " + genai.__version__.split("-")[0]

        def __init__(self):
            options = {"INFERENCE_NUM_THREADS": request["threads"], "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
            if request["setting"] == "sdpa":
                options["ATTENTION_BACKEND"] = "SDPA"
            else:
                options["scheduler_config"] = scheduler = genai.SchedulerConfig()
                scheduler.max_num_batched_tokens = request["prompt"]
                scheduler.enable_prefix_caching = False
                scheduler.cache_size = 1
            exact = request["setting"] == "f32"
            if exact:
                options |= EXACT
            self.pipeline = genai.LLMPipeline(request["model"], "CPU", **options)
            how = ", ".join(f"{k}={v}" for k, v in EXACT.items()) if exact else f"defaults, {request['setting']} attention"
            self.settings = f"GGUF as read, {how}, greedy generation"

        def measure(self, prompt, following):
            config = genai.GenerationConfig()
            config.max_new_tokens = config.min_new_tokens = 1 + len(following)
            config.ignore_eos, config.do_sample = True, False
            config.apply_chat_template = False
            metrics = self.pipeline.generate(ov.Tensor(np.array([prompt], np.int64)), config).perf_metrics
            if metrics.get_num_generated_tokens() != 1 + len(following):
                raise RuntimeError(f"expected {1 + len(following)} tokens, got {metrics.get_num_generated_tokens()}")
            return metrics.get_ttft().mean / 1e3, metrics.get_tpot().mean / 1e3 * len(following)

    return OpenVinoGenAI()
