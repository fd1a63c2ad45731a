"""gptc-check of packages for a GPU, here the emulator's: they agree kernel by kernel and end to end, and a kernel whose code is wrong is named."""
import os
import re
import shutil
import tempfile

from check import ATTENTION, kernels
from emulated import emulated, needs_gpu, package
from harness import GOLDEN, TEMPORARY, checkpoint, compiled, golden, imported, main, manifest, np, run, unittest, written

# Tiles of GEMM and attention; then few rows, whose arithmetic is f32 whatever the precision.
MANY, FEW = 75, 6


def tokens(count):
    return ",".join(str(7 * i % 60) for i in range(count))


def check(case, folder, count, status=0):
    return run("gptc-check", imported(checkpoint(case), "model"), "--package", folder, "--tokens", tokens(count), status=status, env=emulated()).stdout


def narrow(kernel):
    """Whether a result of a kernel of a manifest lies in memory in 16 bits."""
    return any(result["dtype"] in ("bf16", "f16") for result in kernel["results"])


def damaged(folder, function, right, wrong):
    """A copy of the package in which the PTX of one function has other instructions, of the same length."""
    copy = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "kernels")
    shutil.copytree(folder, copy)
    with open(os.path.join(copy, "libmodel.so"), "r+b") as f:
        code = f.read()
        begin = code.index(f".entry {function}(\n".encode())
        text = code[begin:code.index(b"\n}\n", begin)]
        assert right in text and len(right) == len(wrong), (function, right)
        f.seek(begin)
        f.write(text.replace(right, wrong))
    return copy


# A fault for each kind of kernel that a prompt of MANY tokens runs, and for those of a prompt of FEW.
ADD, SUB, MUL, ZERO, ONE = b"add.rn.f32", b"sub.rn.f32", b"mul.rn.f32", b"0f00000000", b"0f3F800000"
FAULTS = (("rms_norm_c64", "", MANY, MUL, ADD), ("rope_table_t2_d16", "", MANY, b"neg.f32", b"abs.f32"),
          ("gemm_k64_n128_rope_kvappend", "", MANY, MUL, ADD), ("gemm_k64_n64_residual", "", MANY, ADD, SUB), ("gemm_k64_n2x96_gate_silu", "", MANY, ADD, SUB),
          ("gemm_k64_n275", "", MANY, ZERO, ONE), ("attention_h4_d16_causal", "", MANY, SUB, ADD),
          ("gemm_k64_n128_rope_kvappend", "_rows8", FEW, MUL, ADD), ("gemm_k96_n64_residual", "_rows8", FEW, ADD, SUB),
          ("attention_h4_d16_causal", "_split", FEW, MUL, ADD), ("attention_h4_d16_causal", "_combine", FEW, MUL, ADD))


@needs_gpu
class CheckCuda(unittest.TestCase):
    def agrees(self, report, folder):
        self.assertTrue(all(kernels(report).values()), report)
        self.assertEqual(set(kernels(report)), {kernel["name"] for kernel in manifest(folder)["kernels"]})
        self.assertRegex(report, r"(?m)^end to end: logits \[[\dx]+\]: .*  ok$")

    def test_models(self):
        """What lies in 16 bits between kernels and in the cache: both, neither (-O0, tf32), and a cache coarser than the precision."""
        for case, precision, level, kv in (("llama-hf", "bf16", 2, "bf16"), ("llama-gguf-q4-1", "f16", 2, "f16"), ("llama-hf", "f32", 2, "bf16"),
                                           ("llama-hf", "tf32", 2, "f32"), ("llama-gguf-q4-1", "f16", 0, "bf16")):
            with self.subTest(case, precision=precision, level=level, kv=kv):
                folder = package(case, precision, level, f"--kv={kv}")
                self.assertEqual(manifest(folder)["kv_element"], kv)
                self.assertEqual(any(narrow(kernel) for kernel in manifest(folder)["kernels"]), level == 2 and precision in ("bf16", "f16"))
                for count in (MANY, FEW):
                    self.agrees(check(case, folder, count), folder)

    def test_bounds(self):
        """Where the inputs of products are rounded, or what is stored, bounds are those of that; elsewhere those of f32."""
        bounds = {}
        for precision in ("f32", "bf16"):
            folder = package("llama-hf", precision)
            for count in (MANY, FEW):
                report = check("llama-hf", folder, count)
                bounds[precision, count] = {line.split()[0]: float(line.split()[4]) for line in report.splitlines() if re.search(r"  ok$", line) and "end to end" not in line}
        stores = {kernel["name"] for kernel in manifest(folder)["kernels"] if narrow(kernel) or "kvappend" in kernel["name"]}
        self.assertIn("rms_norm_c64", stores)
        for name in bounds["bf16", MANY]:
            product = name.startswith(("gemm", "attention"))
            ratio = bounds["bf16", MANY][name] / bounds["f32", MANY][name]
            self.assertTrue(ratio > 100 if product or name in stores else ratio < 2, (name, ratio))
            ratio = bounds["bf16", FEW][name] / bounds["f32", FEW][name]
            self.assertTrue(ratio > 100 if name in stores else ratio < 2, (name, ratio))

    def test_damaged_kernel(self):
        folder = package("llama-hf", "bf16")
        for victim, suffix, count, right, wrong in FAULTS:
            with self.subTest(victim + suffix):
                report = check("llama-hf", damaged(folder, victim + suffix, right, wrong), count, status=3)
                self.assertEqual({kernel for kernel, good in kernels(report).items() if not good}, {victim}, report)
                self.assertRegex(report, rf"(?m)^worst call of {victim}: @step call \d+, .*; from ")
                self.assertRegex(report, r"(?m)^end to end: .*  FAIL$")

    def test_damaged_rounding(self):
        """Numbers that are cut off where they are to be rounded are twice as wrong as they may be: too little to be seen at the end."""
        folder = package("llama-hf", "bf16")
        for victim, suffix in (("rms_norm_c64", ""), ("gemm_k64_n128_rope_kvappend", "_rows8")):
            with self.subTest(victim + suffix):
                report = check("llama-hf", damaged(folder, victim + suffix, b"cvt.rn.bf16.f32", b"cvt.rz.bf16.f32"), FEW, status=3)
                self.assertEqual({kernel for kernel, good in kernels(report).items() if not good}, {victim}, report)

    def test_damaged_weight(self):
        folder, weight = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "kernels"), "model.layers.1.self_attn.o_proj.weight"
        shutil.copytree(package("llama-hf", "bf16"), folder)
        described = manifest(folder)
        index, weight = next((i, w) for i, w in enumerate(described["weights"]) if w["name"] == weight)
        with open(os.path.join(folder, "model.weights"), "r+b") as f:
            f.seek(weight["offset"] + (3 if weight["packed_dtype"] == "f32" else 1))
            value = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([value ^ 1]))
        victim = {call["kernel"] for entry in described["entries"] for call in entry["calls"] if index in call["weights"]}
        report = check("llama-hf", folder, MANY, status=3)
        self.assertEqual({kernel for kernel, good in kernels(report).items() if not good}, victim, report)

    def test_entry(self):
        item = golden("attention")["items"][8]
        model = written(ATTENTION.format(H=item["n_q"], K=item["n_kv"], D=item["D"], scale=item["scale"], groups=item["n_q"] // item["n_kv"]))
        data, inputs = np.load(os.path.join(GOLDEN, "attention", item["file"])), os.path.join(TEMPORARY, "check.npz")
        np.savez(inputs, **{name: data[name] for name in "qkv"})
        report = run("gptc-check", model, "--package", compiled(model, 2, "--target=cuda"), "--entry", "attention", "--inputs", inputs, env=emulated()).stdout
        self.assertTrue(all(kernels(report).values()), report)
        self.assertIn("end to end: out [", report)


if __name__ == "__main__":
    main()
