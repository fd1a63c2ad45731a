"""gptc-bench and tools/bench/cublaslt.py on packages for a GPU, here the emulator's: what they print, not how fast it is."""
import json
import os
import subprocess
import sys

from emulated import emulated, needs_gpu, package
from harness import HERE, TEMPORARY, compiled_case, main, manifest, run, unittest

SCRIPT = os.path.join(HERE, "..", "..", "tools", "bench", "cublaslt.py")


def compare(*arguments, status=0, env=None):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, env=env or emulated())
    assert done.returncode == status, done.stdout + done.stderr
    return done


@needs_gpu
class Bench(unittest.TestCase):
    def test_bench(self):
        folder = package("llama-hf", "bf16")
        described = manifest(folder)
        arguments = ("gptc-bench", folder, "--prefill", "70", "--decode", "3", "--batch", "2", "--runs", "1")
        got = json.loads(run(*arguments, "--json", env=emulated()).stdout)
        self.assertEqual((got["target"], got["precision"], got["prefill_tokens"], got["batch"]), ("sm_80", "bf16", 140, 2))
        self.assertIn("emulator", got["device"])
        self.assertGreater(got["prefill_tokens_per_s"], 0)
        self.assertGreater(got["decode_tokens_per_s"], 0)
        # Two pages for each sequence; the workspace holds at least scratch and logits of a row each, and not the pages once more.
        self.assertEqual(got["kv_bytes"], 2 * 2 * described["kv_page_bytes"])
        least = max(kernel.get("scratch_bytes", 0) for kernel in described["kernels"]) + 2 * 4 * described["vocab"]
        self.assertTrue(least <= got["workspace_bytes"] < 2 * least + (1 << 19), (least, got))
        times = {kernel["name"]: kernel for kernel in got["kernels"]}
        self.assertEqual(set(times), {kernel["name"] for kernel in described["kernels"]})
        self.assertTrue(all(kernel["s"] > 0 for kernel in got["kernels"]), got)
        for kernel in described["kernels"]:
            self.assertEqual(times[kernel["name"]]["gflops"] > 0, "flops_per_row" in kernel or kernel["kind"] == "attention")
        self.assertIn("model for sm_80, bf16 arithmetic, f32 weights, " + got["device"], run(*arguments, env=emulated()).stdout)

    def test_against_cublaslt(self):
        """The script's calls, on a library whose products are plain loops."""
        library = os.path.join(TEMPORARY, "libplain.so")
        run("/usr/bin/cc", "-O1", "-shared", "-fPIC", os.path.join(HERE, "cublaslt_plain.c"), "-o", library, "-ldl")
        folder = package("llama-hf", "bf16")
        # What follows the last layer's attention is computed for the wanted row alone.
        tail = {("gemm_k64_n64_residual", 64, 64), ("gemm_k64_n2x96_gate_silu", 192, 64), ("gemm_k96_n64_residual", 64, 96)}
        expected = {(12, name, rows, n, k, 1) for name, n, k in tail for rows in (12, 1)} | {(1, name, 1, n, k, 2) for name, n, k in tail}
        expected |= {(t, "gemm_k64_n128_rope_kvappend", t, 128, 64, 2) for t in (12, 1)} | {(t, "gemm_k64_n275", 1, 275, 64, 1) for t in (12, 1)}
        for kind in ("bf16", "f16", "tf32", "f32"):
            with self.subTest(kind):
                got = json.loads(compare(folder, "--library", library, "--tokens", "12,1", "--rounds", "2", "--type", kind, "--json").stdout)
                self.assertEqual((got["precision"], got["type"]), ("bf16", kind))
                self.assertEqual({tuple(row[key] for key in ("tokens", "kernel", "rows", "n", "k", "calls")) for row in got["gemms"]}, expected)
                self.assertTrue(all(row["gptc_us"] > 0 and row["cublaslt_us"] > 0 for row in got["gemms"]), got)
        self.assertRegex(compare(folder, "--library", library, "--tokens", "2", "--rounds", "1").stdout, r"(?m)^all GEMMs of a step of 2 tokens: .*ratio [\d.]+$")

    def test_what_is_missing(self):
        folder = package("llama-hf", "bf16")
        self.assertIn("expected cuBLASLt", compare(folder, "--library", "/nonexistent.so", status=1).stderr)
        self.assertIn("expected NVIDIA's driver, and a GPU", compare(folder, status=1, env=dict(os.environ, LD_LIBRARY_PATH="/nonexistent")).stderr)
        self.assertIn("expected a package for a GPU (--target=cuda), got one for x86-64", compare(compiled_case("llama-hf"), status=1).stderr)
        self.assertIn("expected NVIDIA's driver", run("gptc-bench", folder, status=1, env=dict(os.environ, LD_LIBRARY_PATH="/nonexistent")).stderr)


if __name__ == "__main__":
    main()
