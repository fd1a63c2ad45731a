"""--target=cuda: packages whose kernels run on a GPU, here one that tools/cuda-emulator makes of the CPU (it checks memory,
races and launches), against the golden data.

GPTC_CUDA_EMULATOR is the folder of its libcuda.so.1. Without nvcc there is nothing to run.
"""
import os
import shutil
import subprocess
import sys

from harness import BIN, GOLDEN, HERE, SMOLLM2, TEMPORARY, checkpoint, compiled, golden, imported, main, manifest, np, run, unittest, written

EMULATOR = os.environ.get("GPTC_CUDA_EMULATOR", "")
HOME = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(HOME, "bin"))
# A batch, whole and alone, in a process that finds the emulator's library.
BATCH = """import sys
sys.argv[1:1] = ["."]
sys.path.insert(0, sys.argv.pop(2))
import numpy as np
from package import Package
package, texts = Package(sys.argv[2]), {s: [(7 * i + s) % 60 for i in range(n)] for s, n in enumerate((70, 90, 75))}
with package.open() as model:
    alone = {}
    for s, tokens in texts.items():
        with model.session(tokens=256) as session:
            alone[s] = (session.step(tokens), session.step([3], [len(tokens)]))
    with model.session(sequences=3, tokens=256) as session:
        order = (2, 0, 1)
        got = session.step([t for s in order for t in texts[s]], [i for s in order for i in range(len(texts[s]))], [s for s in order for _ in texts[s]])
        at = 0
        for s in order:
            n = len(texts[s])
            assert got[at:at + n].tobytes() == alone[s][0].tobytes(), f"prefill of sequence {s}"
            at += n
        for s in order:
            decoded = session.step([3], [len(texts[s])], [s])
            assert decoded.tobytes() == alone[s][1].tobytes(), f"decode of sequence {s}"
print("same bits")"""


ATTENTION = """  func.func @attention{i}(%q: tensor<{n_q}x{Sq}x{D}xf32> {{gpt.arg = "q"}}, %k: tensor<{n_kv}x{Sk}x{D}xf32> {{gpt.arg = "k"}},
                       %v: tensor<{n_kv}x{Sk}x{D}xf32> {{gpt.arg = "v"}}) -> (tensor<{n_q}x{Sq}x{D}xf32> {{gpt.result = "out"}}) {{
    %o = gpt.flash_attention %q, %k, %v {word} scale {scale:.17e} groups {groups} : tensor<{n_q}x{Sq}x{D}xf32>, tensor<{n_kv}x{Sk}x{D}xf32>
    return %o : tensor<{n_q}x{Sq}x{D}xf32>
  }}
"""


needs_gpu = unittest.skipUnless(NVCC and EMULATOR, "no nvcc, or no emulator")


def emulated(**more):
    return dict(os.environ, LD_LIBRARY_PATH=EMULATOR, **more)


# Calls of entries, in a process that finds the emulator's library.
CALLS = """import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from package import Package
given, results = np.load(sys.argv[3]), {}
with Package(sys.argv[2]).open() as model, model.session() as session:
    for i, words in enumerate(given["calls"]):
        entry, output, *names = words.split()
        results[str(i)] = session.run(entry, {name: given[f"{i} {name}"] for name in names}, [output])[output]
np.savez(sys.argv[4], **results)
"""


def called(folder, calls):
    """Calls: entry, inputs by name, the output; the outputs, in 32-bit words."""
    given, made = os.path.join(TEMPORARY, "inputs.npz"), os.path.join(TEMPORARY, "outputs.npz")
    arrays = {f"{i} {name}": array for i, (_, inputs, _) in enumerate(calls) for name, array in inputs.items()}
    np.savez(given, calls=[" ".join([entry, output, *inputs]) for entry, inputs, output in calls], **arrays)
    done = subprocess.run([sys.executable, "-c", CALLS, HERE, folder, given, made], capture_output=True, text=True, env=emulated())
    if done.returncode:
        raise AssertionError(done.stderr)
    with np.load(made) as results:
        return [results[str(i)] for i in range(len(calls))]


def package(case, precision, level=2):
    return compiled(imported(checkpoint(case), "model"), level, "--target=cuda", f"--precision={precision}")


@needs_gpu
class Cuda(unittest.TestCase):
    def models(self, cases, *options):
        """Every prompt of golden models, whole and split."""
        done = subprocess.run([sys.executable, os.path.join(GOLDEN, "run.py"), BIN, "--only", cases, "--target", "cuda", "--bits", "none", "--threads", "1", *options],
                              capture_output=True, text=True, env=emulated())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_f32(self):
        self.models("gpt2-hf,llama-hf", "--levels", "0,2", "--splits", "3,5,rest")

    def test_f32_of_quantised_weights(self):
        self.models("llama-gguf-q8-0,llama-gguf-q4-1", "--levels", "2", "--splits", "1,rest")

    def test_bf16(self):
        self.models("gpt2-hf,llama-hf,llama-gguf-q8-0,llama-gguf-q4-1", "--levels", "2", "--splits", "3,5,rest", "--precision", "bf16")

    def attention(self, items, precision):
        text = "".join(ATTENTION.format(i=i, word="causal" if item["causal"] else "", groups=item["n_q"] // item["n_kv"], **item) for i, item in enumerate(items))
        return compiled(written("module attributes {gpt.name = \"attention\"} {\n" + text + "}\n"), 2, "--target=cuda", f"--precision={precision}")

    def test_attention(self):
        """The golden numbers: lengths that are no multiples of a tile, head sizes that are no powers of two."""
        items = golden("attention")["items"]
        for precision in ("f32", "bf16", "f16"):
            folder, out = self.attention(items, precision), os.path.join(TEMPORARY, "out.npy")
            for i, item in enumerate(items):
                with self.subTest(item["file"], precision=precision):
                    data = np.load(os.path.join(GOLDEN, "attention", item["file"]))
                    np.save(out, called(folder, [(f"attention{i}", {name: data[name] for name in "qkv"}, "out")])[0])
                    run(sys.executable, os.path.join(GOLDEN, "check.py"), "--mode", precision, os.path.join(GOLDEN, "attention"), i, out)

    def test_head_sizes(self):
        """Case B06: the scale is that of the head size, not of a padded one."""
        items = [{"D": d, "Sq": 1, "Sk": 2, "n_q": 1, "n_kv": 1, "causal": False, "scale": d ** -0.5} for d in (8, 46, 100, 192, 256)]
        for precision, within in (("f32", 1e-6), ("bf16", 4e-3)):
            folder = self.attention(items, precision)
            for i, item in enumerate(items):
                with self.subTest(precision=precision, **item):
                    d = item["D"]
                    k, v = np.zeros((1, 2, d), np.float32), np.zeros((1, 2, d), np.float32)
                    k[0, 0], v[0, 0] = d ** -0.5, 1
                    got, = called(folder, [(f"attention{i}", {"q": np.ones((1, 1, d), np.float32), "k": k, "v": v}, "out")])
                    self.assertLessEqual(abs(got - 1 / (1 + np.exp(-1))).max(), within)

    def test_bits(self):
        """A sequence has the same bits alone and in a batch whose steps are of the same class; warps run in any order."""
        folder, logits = package("llama-hf", "bf16"), []
        done = subprocess.run([sys.executable, "-c", BATCH, os.path.dirname(os.path.abspath(__file__)), folder], capture_output=True, text=True, env=emulated())
        self.assertEqual(done.stdout, "same bits\n", done.stderr)
        tokens = ",".join(map(str, golden("llama-hf")["prompts"][1]["ids"]))
        for seed in (1, 2, 3):
            out = os.path.join(folder, "..", f"{seed}.npy")
            run("gptc-run", folder, "--tokens", tokens, "-n", "0", "--logits", out, env=emulated(GPTC_EMULATOR_SEED=str(seed)))
            logits.append(np.load(out).tobytes())
        self.assertEqual(logits[0], logits[1])
        self.assertEqual(logits[0], logits[2])

    @unittest.skipUnless(SMOLLM2, "no SmolLM2")
    def test_smollm2(self):
        folder = compiled(imported(SMOLLM2, "smollm2"), 2, "--target=cuda")
        prompt = golden("smollm2")["prompts"][0]
        got = run("gptc-run", folder, "--tokens", ",".join(map(str, prompt["ids"])), "-n", "1", "--print-tokens", "--ignore-eos", env=emulated()).stdout
        self.assertEqual(int(got), prompt["greedy"]["tokens"][0])

    def test_manifest(self):
        """What nvcc says of every function: no register is spilled."""
        kernels = manifest(package("gpt2-hf", "bf16"))["kernels"]
        launches = [launch for kernel in kernels for variant in kernel["variants"] for launch in variant["launches"]]
        self.assertTrue(all(launch["spill_bytes"] == 0 for launch in launches), launches)
        self.assertTrue(all(0 < launch["registers"] <= 255 for launch in launches), launches)

    def test_no_driver(self):
        folder = package("gpt2-hf", "bf16")
        done = run("gptc-run", folder, "--tokens", "1,2", "-n", "0", status=1, env=dict(os.environ, LD_LIBRARY_PATH="/nonexistent"))
        self.assertIn("expected NVIDIA's driver", done.stderr)
        # An older GPU than the code is for.
        newer = compiled(imported(checkpoint("gpt2-hf"), "model"), 2, "--target=cuda", "-march=sm_89")
        done = run("gptc-run", newer, "--tokens", "1,2", "-n", "0", status=1, env=emulated(GPTC_EMULATOR_SM="80"))
        self.assertIn("expected a GPU of compute capability 8.9 or later, got", done.stderr)


if __name__ == "__main__":
    main()
