"""OpenVINO: GPT-2 as a stateful graph of its own ops, as its exporter makes one (KV cache in states, ScaledDotProductAttention)."""
REQUIREMENTS = ["openvino"]
SETTINGS = {"gpt2": ["f32", "bf16"]}


def build(folder):
    import numpy as np
    import openvino as ov
    import openvino.opset15 as op
    import gpt2
    w = gpt2.read(folder)
    C, H, D = gpt2.WIDTH, gpt2.HEADS, gpt2.WIDTH // gpt2.HEADS
    i64 = lambda *values: op.constant(np.array(values, np.int64))
    scalar = lambda value: op.constant(np.array(value, np.int64))
    ids, positions, beam = op.parameter([-1, -1], np.int64, "ids"), op.parameter([-1, -1], np.int64, "positions"), op.parameter([-1], np.int32, "beam")
    sinks = []

    def norm(x, name):
        y = op.mvn(x, i64(-1), True, gpt2.EPSILON, "inside_sqrt")
        return op.add(op.multiply(y, op.constant(w[name + ".weight"].reshape(1, 1, C))), op.constant(w[name + ".bias"].reshape(1, 1, C)))

    def linear(x, name):  # weights lie [out, in], as exported
        weight = w[name + ".weight"].T.copy()
        return op.add(op.matmul(x, op.constant(weight), False, True), op.constant(w[name + ".bias"].reshape(1, 1, -1)))

    batch = op.gather(op.shape_of(ids), i64(0), scalar(0))
    start = op.broadcast(op.constant(np.float32(0)), op.concat([batch, i64(H, 0, D)], 0))

    def cached(x, name):
        past = op.read_value(start, name, ov.Type.f32, ov.PartialShape([-1, H, -1, D]))
        whole = op.concat([op.gather(past, beam, scalar(0)), x], 2)
        sinks.append(op.assign(whole, name))
        return whole

    x = op.add(op.gather(op.constant(w["wte.weight"]), ids, scalar(0)), op.gather(op.constant(w["wpe.weight"]), positions, scalar(0)))
    for i in range(gpt2.LAYERS):
        p = f"h.{i}."
        parts = op.split(linear(norm(x, p + "ln_1"), p + "attn.c_attn"), scalar(2), 3)
        q, k, v = (op.transpose(op.reshape(part, i64(0, 0, H, D), True), i64(0, 2, 1, 3)) for part in parts.outputs())
        heads = op.scaled_dot_product_attention(q, cached(k, p + "k"), cached(v, p + "v"), causal=True)
        x = op.add(x, linear(op.reshape(op.transpose(heads, i64(0, 2, 1, 3)), i64(0, 0, C), True), p + "attn.c_proj"))
        x = op.add(x, linear(op.gelu(linear(norm(x, p + "ln_2"), p + "mlp.c_fc"), "tanh"), p + "mlp.c_proj"))
    x = norm(op.gather(x, i64(-1), scalar(1)), "ln_f")
    logits = op.result(op.matmul(x, op.constant(w["wte.weight"]), False, True))
    return ov.Model([logits], sinks, [ids, positions, beam], "gpt2")


def Peer(request):
    import numpy as np
    import openvino as ov
    import gpt2
    from worker import Stepper

    class OpenVino(Stepper):
        def __init__(self):
            options = {"INFERENCE_NUM_THREADS": request["threads"], "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                       "INFERENCE_PRECISION_HINT": request["setting"], "KV_CACHE_PRECISION": request["setting"]}
            compiled = ov.Core().compile_model(build(request["model"]), "CPU", options)
            self.request = compiled.create_infer_request()
            kinds = [node.get_rt_info()["layerType"].astype(str) for node in compiled.get_runtime_model().get_ops()]
            if kinds.count("ScaledDotProductAttention") != gpt2.LAYERS or kinds.count("Concatenation") > 1:
                raise RuntimeError("expected attention and KV cache to become one op a layer")
            self.version = "OpenVINO " + ov.get_version().split("-")[0]
            self.settings = f"INFERENCE_PRECISION_HINT and KV_CACHE_PRECISION {request['setting']}"

        def step(self, tokens, position):
            if position == 0:
                self.request.reset_state()
            self.request.infer([np.array([tokens], np.int64), np.arange(position, position + len(tokens), dtype=np.int64)[None], np.zeros(1, np.int32)])
            return self.request.get_output_tensor(0).data[0, 0].copy()

    return OpenVino()
