"""gptc-bench on the CPU: the work that it counts, by hand; the machine's limits, within what machines have. Takes 4 seconds."""
import json
import re

from harness import checkpoint, compiled, compiled_case, imported, main, run, unittest, written

PREFILL, DECODE, BATCH = 70, 3, 2


def bench(folder, *more):
    return json.loads(run("gptc-bench", folder, "--prefill", PREFILL, "--decode", DECODE, "--batch", BATCH, "--runs", "1", "--threads", "2", "--json", *more).stdout)


class Bench(unittest.TestCase):
    def config(self):
        with open(checkpoint("gpt2-hf") + "/config.json", encoding="utf-8") as f:
            c = json.load(f)
        return c["n_layer"], c["n_embd"], c["vocab_size"]

    def test_work(self):
        """FLOPs of the GEMMs and of attention, and bytes, from the sizes of the model alone."""
        layers, width, vocab = self.config()
        got = {kernel["name"]: kernel for kernel in bench(compiled_case("gpt2-hf"))["kernels"]}
        # A prefill is a call for each sequence, a step of decode one for all. What follows the last attention is for the wanted row of each.
        calls = {"prefill": layers * BATCH, "decode": layers * DECODE}
        whole = {"prefill": layers * BATCH * PREFILL, "decode": layers * BATCH * DECODE}
        wanted = {"prefill": (layers - 1) * BATCH * PREFILL + BATCH, "decode": whole["decode"]}
        # name, K, N, rows, f32 words of a row beside x and y: a residual; ids of position and sequence
        gemms = [("gemm_k{}_n{}_bias_kvappend", width, 3 * width, whole, 2), ("gemm_k{}_n{}_bias_residual", width, width, wanted, width),
                 ("gemm_k{}_n{}_bias_gelu_tanh", width, 4 * width, wanted, 0), ("gemm_k{}_n{}_bias_residual", 4 * width, width, wanted, width)]
        for name, k, n, rows, more in gemms:
            for phase, work in got[name.format(k, n)].items():
                if phase in calls:
                    with self.subTest(name.format(k, n), phase=phase):
                        self.assertEqual(work["calls"], calls[phase])
                        self.assertEqual(work["flops"], 2 * k * n * rows[phase])
                        self.assertEqual(work["bytes"], 4 * ((k * n + n) * calls[phase] + (k + n + more) * rows[phase]))
        head = got[f"gemm_k{width}_n{vocab}"]
        padded = [-(-vocab // panel) * panel for panel in (1, 8, 16, 32, 64)]  # whole panels of some width
        for phase, steps, rows in (("prefill", BATCH, BATCH), ("decode", DECODE, BATCH * DECODE)):
            self.assertEqual((head[phase]["calls"], head[phase]["flops"]), (steps, 2 * width * vocab * rows))
            self.assertIn(head[phase]["bytes"], [4 * (width * n * steps + (width + vocab) * rows) for n in padded])
        # Two tensors' wanted rows, with their numbers.
        self.assertEqual(got[f"select_rows_c{width}"]["prefill"]["bytes"], 2 * BATCH * 4 * (2 * width + 1))
        self.assertEqual(got[f"embedding_c{width}"]["prefill"]["bytes"], BATCH * PREFILL * 4 * (2 * width + 1))
        attention, = [kernel for name, kernel in got.items() if name.startswith("attention")]
        keys = {"prefill": sum(range(1, PREFILL + 1)), "decode": sum(range(PREFILL + 1, PREFILL + DECODE + 1))}
        read = {"prefill": PREFILL, "decode": keys["decode"]}  # a prompt's keys are needed once
        for phase in keys:
            self.assertEqual(attention[phase]["flops"], layers * BATCH * 4 * width * keys[phase])
            self.assertEqual(attention[phase]["bytes"], 4 * (layers * BATCH * 2 * width * read[phase] + (2 * width + 2) * whole[phase]))

    def test_window(self):
        """Attention that sees the last 16 keys."""
        layers, width, _ = self.config()
        with open(imported(checkpoint("gpt2-hf"), "model"), encoding="utf-8") as f:
            text, count = re.subn(r"gpt.causal_mask (%\S+) :", r"gpt.causal_mask \1 window 16 :", f.read())
        self.assertEqual(count, layers)
        attention, = [kernel for kernel in bench(compiled(written(text), 2, "--checkpoint", checkpoint("gpt2-hf")))["kernels"] if kernel["name"].startswith("attention")]
        seen = lambda position: min(position + 1, 16)
        self.assertEqual(attention["prefill"]["flops"], layers * BATCH * 4 * width * sum(map(seen, range(PREFILL))))
        self.assertEqual(attention["decode"]["flops"], layers * BATCH * 4 * width * 16 * DECODE)
        self.assertEqual(attention["decode"]["bytes"], 4 * layers * BATCH * DECODE * (2 * width * 16 + 2 * width + 2))

    def test_sums(self):
        got = bench(compiled_case("gpt2-hf"))
        self.assertNotIn("limits", got)
        self.assertEqual((got["prefill_tokens"], got["decode_tokens"], got["batch"]), (BATCH * PREFILL, BATCH * DECODE, BATCH))
        self.assertAlmostEqual(got["decode_tokens_per_s"] * got["decode_s"], BATCH * DECODE)
        for kernel in got["kernels"]:
            for key in ("calls", "s", "flops", "bytes"):
                self.assertAlmostEqual(kernel[key], kernel["prefill"][key] + kernel["decode"][key], msg=kernel["name"])
            self.assertAlmostEqual(kernel["gbytes"] * kernel["s"] * 1e9, kernel["bytes"], delta=1e-6 * kernel["bytes"])
            self.assertNotIn("of_limit", kernel)

    def test_limits(self):
        """What x86-64 CPUs have, two threads, from a busy one of ten years ago to one that is not built yet."""
        folder = compiled_case("gpt2-hf")
        got = bench(folder, "--probe")
        limits = got["limits"]
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            flags = next(line for line in f if line.startswith("flags")).split()
        self.assertEqual(limits["f32_unit"], "AVX-512" if "avx512f" in flags else "AVX2 FMA" if "fma" in flags and "avx2" in flags else "SSE2")
        self.assertEqual(limits["bf16_gflops"] > 0, "avx512_bf16" in flags)
        self.assertTrue(2 < limits["f32_gflops"] < 2000, limits)
        self.assertTrue(2 < limits["int8_gops"] < 16000, limits)
        self.assertTrue(0.5 < limits["read_gbytes"] < 2000, limits)
        if "avx512_vnni" in flags:  # four times as many products in an instruction, as many instructions
            self.assertTrue(2.5 < limits["int8_gops"] / limits["f32_gflops"] < 6, limits)
        self.assertEqual(limits["read_size_bytes"], 64 << 20)
        peak, bandwidth = 1e9 * limits["f32_gflops"], 1e9 * limits["read_gbytes"]
        for kernel in got["kernels"]:
            for work in (kernel, kernel["prefill"], kernel["decode"]):
                flops, read = work["flops"] / peak, work["bytes"] / bandwidth
                self.assertTrue(max(flops, read) * 0.999 <= work["limit_s"] <= (flops + read) * 1.001, (kernel["name"], work))
                self.assertAlmostEqual(work["of_limit"] * work["s"], work["limit_s"])
        gemms = [kernel for kernel in got["kernels"] if kernel["name"].startswith("gemm")]
        # Nothing computes faster than the machine; twice as fast is the clock's.
        self.assertTrue(all(0 < kernel["gflops"] < 2 * limits["f32_gflops"] for kernel in gemms), got)
        text = run("gptc-bench", folder, "--prefill", "4", "--decode", "1", "--runs", "1", "--probe").stdout
        self.assertRegex(text, r"(?m)^limits +[\d.]+ GFLOP/s f32 \(" + limits["f32_unit"])
        self.assertRegex(text, r"(?m)^kernels of the decode .* of limit$")
        self.assertEqual(len(re.findall(r"(?m)^all +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +\d+%$", text)), 2)


if __name__ == "__main__":
    main()
