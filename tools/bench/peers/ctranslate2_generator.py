"""CTranslate2's Generator. Its generation chooses the tokens itself (greedy), the first with the prompt's last logits, which are the only ones
computed (include_prompt_in_result off); a callback tells when each is there."""
import os

REQUIREMENTS = ["ctranslate2"]
SETTINGS = {"gpt2": ["f32", "int8"]}


def build(request):
    import ctranslate2
    import gpt2
    folder = os.path.join(request["work"], f"ctranslate2-{request['setting']}")
    if os.path.exists(os.path.join(folder, "model.bin")):
        return folder
    w = {name: array.copy() for name, array in gpt2.read(request["model"]).items()}  # quantised in place
    spec = ctranslate2.specs.TransformerDecoderModelSpec.from_config(gpt2.LAYERS, gpt2.HEADS, pre_norm=True, activation=ctranslate2.specs.Activation.GELUTanh)

    def norm(target, name):
        target.gamma, target.beta = w[name + ".weight"], w[name + ".bias"]

    def linear(target, name):
        target.weight, target.bias = w[name + ".weight"].T.copy(), w[name + ".bias"]

    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = w["wte.weight"]
    decoder.position_encodings.encodings = w["wpe.weight"]
    decoder.projection.weight = w["wte.weight"]
    norm(decoder.layer_norm, "ln_f")
    for i, layer in enumerate(decoder.layer):
        p = f"h.{i}."
        norm(layer.self_attention.layer_norm, p + "ln_1")
        linear(layer.self_attention.linear[0], p + "attn.c_attn")
        linear(layer.self_attention.linear[1], p + "attn.c_proj")
        norm(layer.ffn.layer_norm, p + "ln_2")
        linear(layer.ffn.linear_0, p + "mlp.c_fc")
        linear(layer.ffn.linear_1, p + "mlp.c_proj")
    names = [f"t{i}" for i in range(gpt2.VOCAB)]
    spec.register_vocabulary(names)
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = names[-1]
    spec.validate()
    spec.optimize(quantization=None if request["setting"] == "f32" else request["setting"])
    os.makedirs(folder, exist_ok=True)
    spec.save(folder)
    return folder


def Peer(request):
    import time
    import ctranslate2
    import numpy as np

    class CTranslate2:
        version = "CTranslate2 " + ctranslate2.__version__
        settings = f"compute type {'float32' if request['setting'] == 'f32' else 'int8_float32'}, greedy generation"

        def __init__(self):
            self.generator = ctranslate2.Generator(build(request), device="cpu", inter_threads=1, intra_threads=request["threads"],
                                                   compute_type="float32" if request["setting"] == "f32" else "int8_float32")

        def measure(self, prompt, following):
            times = []
            prompt = [f"t{i}" for i in prompt]
            self.prompt = prompt
            begin = time.perf_counter()
            self.generator.generate_batch([prompt], max_length=1 + len(following), min_length=1 + len(following), beam_size=1, include_prompt_in_result=False,
                                          end_token=[], callback=lambda step: times.append(time.perf_counter()) or False)
            if len(times) != 1 + len(following):
                raise RuntimeError(f"expected {1 + len(following)} tokens, got {len(times)}")
            return times[0] - begin, times[-1] - times[0]

        def logits(self):
            rows = np.array(self.generator.forward_batch([self.prompt]))
            return [rows[0, len(self.prompt) - 1]]

    return CTranslate2()
