"""ONNX Runtime: GPT-2 written with its own fused ops (GroupQueryAttention on a shared KV buffer, SkipLayerNormalization, FastGelu)."""
import os

REQUIREMENTS = ["onnxruntime", "onnx"]
SETTINGS = {"gpt2": ["f32"]}


def build(folder, path):
    import numpy as np
    import onnx
    import gpt2
    from onnx import TensorProto as T, helper, numpy_helper
    w = gpt2.read(folder)
    nodes, initializers, names = [], [], set()

    def constant(name, array):
        if name not in names:
            names.add(name)
            initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(kind, inputs, outputs, domain="com.microsoft", **attributes):
        nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    weight = lambda name: constant(name, w[name])
    linear = lambda x, name: node("MatMul", [x, weight(name + ".weight")], [name + ".y"], "")
    biased = lambda x, name: node("Add", [linear(x, name), weight(name + ".bias")], [name + ".biased"], "")
    shape = ["batch", gpt2.HEADS, "room", gpt2.WIDTH // gpt2.HEADS]
    caches = [helper.make_tensor_value_info(f"{when}.{part}.{i}", T.FLOAT, shape) for when in ("past", "now") for i in range(gpt2.LAYERS) for part in "kv"]
    tokens = node("Gather", [weight("wte.weight"), "ids"], ["tokens"], "")
    places = node("Gather", [weight("wpe.weight"), "positions"], ["places"], "")
    x = node("Add", [tokens, places], ["x"], "")
    normed = node("LayerNormalization", [x, weight("h.0.ln_1.weight"), weight("h.0.ln_1.bias")], ["normed"], "", epsilon=gpt2.EPSILON)

    def residual(x, name, to):  # the sum and its norm
        y = linear(*name)
        outputs = [y + ".normed", "", "", y + ".sum"]
        node("SkipLayerNormalization", [y, x, weight(to + ".weight"), weight(to + ".bias"), weight(name[1] + ".bias")], outputs, epsilon=gpt2.EPSILON)
        return outputs[3], outputs[0]

    for i in range(gpt2.LAYERS):
        p = f"h.{i}."
        qkv = biased(normed, p + "attn.c_attn")
        heads = node("GroupQueryAttention", [qkv, "", "", f"past.k.{i}", f"past.v.{i}", "last", "total"], [p + "heads", f"now.k.{i}", f"now.v.{i}"],
                     num_heads=gpt2.HEADS, kv_num_heads=gpt2.HEADS)
        x, normed = residual(x, (heads, p + "attn.c_proj"), p + "ln_2")
        hidden = linear(normed, p + "mlp.c_fc")
        hidden = node("FastGelu", [hidden, weight(p + "mlp.c_fc.bias")], [p + "gelu"])
        if i + 1 < gpt2.LAYERS:
            x, normed = residual(x, (hidden, p + "mlp.c_proj"), f"h.{i + 1}.ln_1")
    x = node("Add", [x, biased(hidden, p + "mlp.c_proj")], ["sum"], "")
    x = node("Gather", [x, constant("minus one", np.array([-1], np.int64))], ["last row"], "", axis=1)
    x = node("LayerNormalization", [x, weight("ln_f.weight"), weight("ln_f.bias")], ["final"], "", epsilon=gpt2.EPSILON)
    node("MatMul", [x, constant("head", w["wte.weight"].T)], ["logits"], "")
    info = helper.make_tensor_value_info
    inputs = [info("ids", T.INT64, ["batch", "tokens"]), info("positions", T.INT64, ["batch", "tokens"]), info("last", T.INT32, ["batch"]), info("total", T.INT32, [])]
    half = len(caches) // 2
    graph = helper.make_graph(nodes, "gpt2", inputs + caches[:half], [info("logits", T.FLOAT, ["batch", 1, gpt2.VOCAB])] + caches[half:], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9)
    onnx.save(model, path + ".new", save_as_external_data=False)
    os.rename(path + ".new", path)


def Peer(request):
    import numpy as np
    import onnxruntime as ort
    import gpt2
    from worker import Stepper

    class OnnxRuntime(Stepper):
        version = "ONNX Runtime " + ort.__version__
        settings = "CPU, all optimizations, GroupQueryAttention, f32 KV cache in one buffer"

        def __init__(self):
            path = os.path.join(request["work"], "gpt2.onnx")
            if not os.path.exists(path):
                build(request["model"], path)
            options = ort.SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads = request["threads"], 1
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
            self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            shape = (1, gpt2.HEADS, request["prompt"] + request["decode"], gpt2.WIDTH // gpt2.HEADS)
            self.caches = {f"{part}.{i}": ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)) for part in "kv" for i in range(gpt2.LAYERS)}

        def step(self, tokens, position):
            end = position + len(tokens)
            binding = self.session.io_binding()
            binding.bind_output("logits")
            binding.bind_cpu_input("ids", np.array([tokens], np.int64))
            binding.bind_cpu_input("positions", np.arange(position, end, dtype=np.int64)[None])
            binding.bind_cpu_input("last", np.array([end - 1], np.int32))
            binding.bind_cpu_input("total", np.array(end, np.int32))
            for name, value in self.caches.items():
                binding.bind_ortvalue_input("past." + name, value)
                binding.bind_ortvalue_output("now." + name, value)
            self.session.run_with_iobinding(binding)
            return binding.get_outputs()[0].numpy()[0, 0]

    return OnnxRuntime()
