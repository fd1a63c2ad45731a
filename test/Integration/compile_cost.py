"""What a compile costs (B39): size of the code, seconds, vectors, memory, for long rows, long sequences and many layers; and the memory of a run.

Seconds are those of the CPU, so that a busy machine changes little.
"""
import json
import os
import re
import struct
import unittest

import numpy as np

from harness import compiled, imported, main, measured, written
from models import new_folder

ROWS = """module attributes {{gpt.name = "rows"}} {{
  ml_program.global private @g(#ml_program.extern<tensor<{n}xf32>>) : tensor<{n}xf32> {{gpt.stored = #gpt.stored<"m.safetensors", "g", bf16>}}
  func.func @rows(%x: tensor<?x{n}xf32> {{gpt.arg = "x"}}) -> (tensor<?x{n}xf32> {{gpt.result = "y"}}) {{
    %g = ml_program.global_load_const @g : tensor<{n}xf32>
    {op}
    return %y : tensor<?x{n}xf32>
  }}
}}
"""
OPS = {"softmax": "%y = gpt.softmax %x : tensor<?x{n}xf32>",
       "layer_norm": "%y = gpt.layer_norm %x, %g eps 1.0e-5 : tensor<?x{n}xf32>, tensor<{n}xf32>"}
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "index": 8, "half": 2, "float": 4, "double": 8, "ptr": 8}
V, T, C, H = 50257, 1024, 768, 12  # GPT-2


def gpt2(layers, width=C, vocab=V, context=T, heads=H):
    """A checkpoint of zeros, all hole; its folder and bytes of weights."""
    c = width
    shapes = {"wte.weight": (vocab, c), "wpe.weight": (context, c), "ln_f.weight": (c,), "ln_f.bias": (c,)}
    for i in range(layers):
        for name, shape in {"ln_1.weight": (c,), "ln_1.bias": (c,), "ln_2.weight": (c,), "ln_2.bias": (c,), "attn.c_attn.weight": (c, 3 * c),
                            "attn.c_attn.bias": (3 * c,), "attn.c_proj.weight": (c, c), "attn.c_proj.bias": (c,), "mlp.c_fc.weight": (c, 4 * c),
                            "mlp.c_fc.bias": (4 * c,), "mlp.c_proj.weight": (4 * c, c), "mlp.c_proj.bias": (c,)}.items():
            shapes[f"h.{i}.{name}"] = shape
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4
        for n in shape:
            size *= n
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    folder = new_folder()
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump({"model_type": "gpt2", "vocab_size": vocab, "n_positions": context, "n_embd": c, "n_head": heads, "n_layer": layers,
                   "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}, f)
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    return folder, at


class Cost(unittest.TestCase):
    def gptc(self, *args):
        done = measured("gptc", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLess(done.seconds, 10, args)
        return done

    def check_vectors(self, text):
        """No vector of more than 4 KiB, in MLIR or LLVM IR."""
        found = re.findall(r"vector<([\dx\[\]]+)x(\w+)>", text) + re.findall(r"<(\d+) x (\w+)>", text)
        self.assertGreater(len(found), 0)
        for sizes, element in set(found):
            count = 1
            for size in re.findall(r"\d+", sizes):
                count *= int(size)
            bits = re.fullmatch(r"i(\d+)", element)
            self.assertLessEqual(count * (max(int(bits[1]), 8) // 8 if bits else BYTES[element]), 4096, (sizes, element))

    def code(self, mlir, *options):
        text = self.gptc(mlir, "--emit=mlir", *options).stdout
        self.check_vectors(text)
        self.check_vectors(self.gptc(mlir, "--emit=llvm", *options).stdout)
        return text

    def test_long_rows(self):
        for op, line in OPS.items():
            for level in ("-O0", "-O2"):
                # Rows of whole vectors, and rows with a tail.
                for sizes in [(768, 49152)] + [(769, 50257)] * (op == "softmax"):
                    with self.subTest(op=op, level=level, sizes=sizes):
                        texts = [self.code(written(ROWS.format(n=n, op=line.format(n=n))), level) for n in sizes]
                        self.assertNotIn(f"vector<{sizes[1]}", texts[1])
                        self.assertLessEqual(len(texts[1]), 1.2 * len(texts[0]))

    def test_long_sequence(self):
        """Static S = 4096: a whole GPT-2 layer, and attention by itself."""
        folder, _ = gpt2(1, width=64, vocab=256, context=4096, heads=4)
        mlir = imported(folder, "model")
        with open(mlir, encoding="utf-8") as f:
            dynamic = f.read()
        # Of another name: a @forward is expected to step, and this one cannot.
        static = written(dynamic.replace("?", "4096").replace("@forward", "@whole").replace(f'"{os.path.basename(folder)}"', f'"{folder}"'))
        for level in ("-O0", "-O2"):
            with self.subTest(level):
                text = self.code(static, level)
                self.assertNotIn("vector<4096", text)
                self.assertLessEqual(len(text), 1.2 * len(self.code(mlir, level)))

    def test_layers(self):
        """GPT-2 of 1, 12 and 48 layers: seconds, kernels and code do not grow with them."""
        seconds, size = {}, {}
        for layers in (1, 12, 48):
            mlir = imported(gpt2(layers)[0], "gpt2")
            done = self.gptc(mlir, "-o", os.path.join(new_folder(), "kernels"), "--no-weights")
            seconds[layers] = done.seconds
            size[layers] = len(self.code(mlir))
        self.assertLess(seconds[12], 2, seconds)
        self.assertLessEqual(seconds[48] / seconds[12], 1.3, seconds)
        self.assertLessEqual(seconds[48] / seconds[1], 1.5, seconds)
        self.assertLessEqual(size[48], 1.2 * size[1], size)

    def test_memory(self):
        """GPT-2, half a gigabyte of weights: of them, no more than one tensor and what it is packed into is in memory."""
        folder, weights = gpt2(12)
        self.assertGreater(weights, 490e6)
        output = os.path.join(new_folder(), "kernels")
        done = self.gptc(imported(folder, "gpt2"), "-o", output)
        self.assertGreaterEqual(os.path.getsize(os.path.join(output, "gpt2.weights")), weights)
        # A package that runs takes what it says it takes, and the weights once, mapped.
        ran = measured("gptc-bench", output, "--prefill", 128, "--decode", 2, "--threads", 2, "--runs", 1, "--json")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        said = json.loads(ran.stdout)
        self.assertGreaterEqual(said["weights_bytes"], weights)
        self.assertLessEqual(ran.bytes, said["weights_bytes"] + said["kv_bytes"] + said["workspace_bytes"] + 20e6)
        os.remove(os.path.join(output, "gpt2.weights"))
        self.assertLessEqual(done.bytes, 200e6 + 2 * 4 * V * C)
        self.assertLessEqual(done.bytes, weights + 300e6)

    def test_attention_memory(self):
        """Attention of S rows and S keys takes memory for tensors of S rows, none for S x S scores."""
        heads, d, bytes_at = 2, 64, {}
        x, s = f"tensor<{heads}x?x{d}xf32>", f"tensor<{heads}x?x?xf32>"
        arguments = ", ".join(f'%{name}: {x} {{gpt.arg = "{name}"}}' for name in "qkv")
        package = compiled(written(f"""module attributes {{gpt.name = "attend"}} {{
  func.func @main({arguments}) -> ({x} {{gpt.result = "y"}}) {{
    %s = gpt.matmul %q, %k transpose_b : {x}, {x} -> {s}
    %m = gpt.causal_mask %s : {s}
    %p = gpt.softmax %m : {s}
    %y = gpt.matmul %p, %v : {s}, {x} -> {x}
    return %y : {x}
  }}
}}
"""))
        for size in (1024, 4096, 16384):
            given = os.path.join(new_folder(), "given.npz")
            random = np.random.default_rng(0)
            np.savez(given, **{name: random.normal(size=(heads, size, d)).astype(np.float32) for name in "qkv"})
            ran = measured("gptc-run", package, "--entry", "main", "--inputs", given, "--outputs", given + ".out.npz", "--threads", 2)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            bytes_at[size] = ran.bytes
        tensors = 4 * heads * d * 4  # bytes of q, k, v and y for a row; in the files too
        self.assertLessEqual(bytes_at[16384] - bytes_at[1024], 3 * (16384 - 1024) * tensors + 4e6, bytes_at)


main()
