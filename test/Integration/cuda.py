"""--target=cuda: packages whose kernels run on a GPU, here one that tools/cuda-emulator makes of the CPU (it checks memory,
races and launches), against the golden data. No kernel of a golden model is left out."""
import os
import tempfile

import numpy as np

from emulated import Fresh, cuda, emulated, machine_code, needs_gpu, package, ptx_only, recorded
from harness import GOLDEN, SMOLLM2, TEMPORARY, close_to_golden, compiled, golden, imported, main, manifest, run, unittest, written
from package import Package

ptx_only()

ATTENTION = """  func.func @attention{i}(%q: tensor<{n_q}x{Sq}x{D}xf32> {{gpt.arg = "q"}}, %k: tensor<{n_kv}x{Sk}x{D}xf32> {{gpt.arg = "k"}},
                       %v: tensor<{n_kv}x{Sk}x{D}xf32> {{gpt.arg = "v"}}) -> (tensor<{n_q}x{Sq}x{D}xf32> {{gpt.result = "out"}}) {{
    %o = gpt.flash_attention %q, %k, %v {word} scale {scale:.17e} groups {groups} : tensor<{n_q}x{Sq}x{D}xf32>, tensor<{n_kv}x{Sk}x{D}xf32>
    return %o : tensor<{n_q}x{Sq}x{D}xf32>
  }}
"""


def in_pieces(session, ids, sizes):
    """Logits of a prompt that is fed in pieces of these sizes, and the rest at once."""
    ends = [0, *np.cumsum(sizes).tolist(), len(ids)]
    return np.concatenate([session.step(ids[a:b], range(a, b)) for a, b in zip(ends, ends[1:])])


@needs_gpu
class Models(Fresh):
    """Every prompt of golden models: whole, split, and many in one step. Every kernel and variant of a package is launched."""

    def prompts(self, case, precision, level):
        # tf32 rounds inputs by at most 2^-11, as f16 does where nothing overflows.
        mode = "f16" if precision == "tf32" else precision
        prompts, agrees = golden(case)["prompts"], lambda i, logits: close_to_golden(case, i, logits, mode)
        with recorded(self), Package(package(case, precision, level)).open() as model:
            with model.session(tokens=256) as session:
                for i, prompt in enumerate(prompts):
                    ids = prompt["ids"]
                    agrees(i, session.step(ids))
                    for sizes in (3, 5), (1,):
                        if sum(sizes) < len(ids):
                            agrees(i, in_pieces(session, ids, sizes))
                    if precision == "f32" and prompt.get("greedy"):
                        self.greedy(session, ids, prompt["greedy"])
            self.together(model, prompts, agrees)

    def greedy(self, session, ids, wanted):
        safe = min(wanted.get("ambiguous_at") or [len(wanted["tokens"])])
        ids = list(ids)
        session.step(ids[:-1], rows=[]) if len(ids) > 1 else None
        for token in wanted["tokens"][:safe]:
            self.assertEqual(int(session.step(ids[-1:], [len(ids) - 1])[0].argmax()), token)
            ids.append(token)

    # More than 64 tokens, which have an attention of their own.
    def together(self, model, prompts, agrees):
        order = []
        while sum(len(prompts[i]["ids"]) for i in order) <= 64:
            order += range(len(prompts))
        ids = [prompts[i]["ids"] for i in order]
        with model.session(tokens=512, sequences=len(order)) as session:
            logits = session.step(sum(ids, []), [at for each in ids for at in range(len(each))], [s for s, each in enumerate(ids) for _ in each])
        for i, part in zip(order, np.split(logits, np.cumsum([len(each) for each in ids])[:-1])):
            agrees(i, part)

    def check(self, cases, precision, levels=(2,)):
        for case in cases:
            for level in levels:
                with self.subTest(case, precision=precision, level=level):
                    self.prompts(case, precision, level)

    def test_f32(self):
        self.check(("gpt2-hf", "llama-hf"), "f32", (0, 2))

    def test_f32_of_quantised_weights(self):
        self.check(("llama-gguf-q8-0", "llama-gguf-q4-1"), "f32")

    def test_bf16(self):
        self.check(("gpt2-hf", "llama-hf", "llama-gguf-q8-0", "llama-gguf-q4-1"), "bf16")

    def test_tf32(self):
        self.check(("gpt2-hf", "llama-gguf-q4-1"), "tf32")
        inputs = {kernel["kind"]: {variant["inputs"] for variant in kernel["variants"]} for kernel in manifest(package("llama-hf", "tf32"))["kernels"]}
        self.assertEqual((inputs["gemm"], inputs["attention"]), ({"f32", "tf32"}, {"f32"}))

    @unittest.skipUnless(SMOLLM2, "no SmolLM2")
    def test_smollm2(self):
        folder = compiled(imported(SMOLLM2, "smollm2"), 2, "--target=cuda")
        prompt = golden("smollm2")["prompts"][0]
        got = run("gptc-run", folder, "--tokens", ",".join(map(str, prompt["ids"])), "-n", "1", "--print-tokens", "--ignore-eos", env=emulated()).stdout
        self.assertEqual(int(got), prompt["greedy"]["tokens"][0])


@needs_gpu
class Entries(Fresh):
    def test_attention(self):
        """The golden numbers: lengths that are no multiples of a tile, head sizes that are no powers of two."""
        items = golden("attention")["items"]
        text = "".join(ATTENTION.format(i=i, word="causal" if item["causal"] else "", groups=item["n_q"] // item["n_kv"], **item) for i, item in enumerate(items))
        mlir = written("module attributes {gpt.name = \"attention\"} {\n" + text + "}\n")
        for precision in ("f32", "bf16", "f16"):
            with Package(compiled(mlir, *cuda(precision))).open() as model, model.session() as session:
                for i, item in enumerate(items):
                    with self.subTest(item["file"], precision=precision):
                        data = np.load(os.path.join(GOLDEN, "attention", item["file"]))
                        close_to_golden("attention", i, session.run(f"attention{i}", {name: data[name] for name in "qkv"}, ["out"])["out"], precision)


@needs_gpu
class Bits(Fresh):
    def test_batches(self):
        """A sequence has the same bits alone and in a batch whose steps are of the same class."""
        texts = {s: [(7 * i + s) % 60 for i in range(n)] for s, n in enumerate((70, 90, 75))}
        with Package(package("llama-hf", "bf16")).open() as model:
            alone = {}
            for s, tokens in texts.items():
                with model.session(tokens=256) as session:
                    alone[s] = (session.step(tokens), session.step([3], [len(tokens)]))
            with model.session(sequences=3, tokens=256) as session:
                order = (2, 0, 1)
                got = session.step([t for s in order for t in texts[s]], [i for s in order for i in range(len(texts[s]))], [s for s in order for _ in texts[s]])
                for s, part in zip(order, np.split(got, np.cumsum([len(texts[s]) for s in order])[:-1])):
                    self.assertEqual(part.tobytes(), alone[s][0].tobytes(), f"prefill of sequence {s}")
                    self.assertEqual(session.step([3], [len(texts[s])], [s]).tobytes(), alone[s][1].tobytes(), f"decode of sequence {s}")

    def test_order_of_warps(self):
        tokens, logits = golden("llama-hf")["prompts"][1]["ids"], set()
        self.addCleanup(os.environ.pop, "GPTC_EMULATOR_SEED")
        with Package(package("llama-hf", "bf16")).open() as model, model.session() as session:
            for seed in "123":
                os.environ["GPTC_EMULATOR_SEED"] = seed
                logits.add(session.step(tokens).tobytes())
        self.assertEqual(len(logits), 1)


@needs_gpu
class Packages(unittest.TestCase):
    def test_manifest(self):
        """What nvcc says of every function: no register is spilled, and a block gets those that it needs."""
        with machine_code():
            kernels = manifest(package("gpt2-hf", "bf16", 2, "-march=sm_80"))["kernels"]
        launches = [launch for kernel in kernels for variant in kernel["variants"] for launch in variant["launches"]]
        self.assertTrue(all(launch["spill_bytes"] == 0 for launch in launches), launches)
        self.assertTrue(all(0 < launch["registers"] <= 255 for launch in launches), launches)
        self.assertTrue(all(launch["threads"] * -(-launch["registers"] // 8) * 8 <= 65536 for launch in launches), launches)

    def test_no_driver(self):
        folder = package("llama-hf", "bf16")
        done = run("gptc-run", folder, "--tokens", "1,2", "-n", "0", status=1, env=dict(os.environ, LD_LIBRARY_PATH="/nonexistent"))
        self.assertIn("expected NVIDIA's driver", done.stderr)
        # Libraries that are none, or of another kind.
        folders = {name: tempfile.mkdtemp(dir=TEMPORARY) for name in ("empty", "text", "other")}
        with open(os.path.join(folders["empty"], "libcuda.so.1"), "wb"), open(os.path.join(folders["text"], "libcuda.so.1"), "wb") as text:
            text.write(b"no library\n" * 1000)
        run("/usr/bin/cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", os.path.join(folders["other"], "libcuda.so.1"))
        for name, words in ("empty", "file too short"), ("text", "invalid ELF header"), ("other", "a driver of CUDA 12 or later, got one without cuInit"):
            done = run("gptc-run", folder, "--tokens", "1,2", "-n", "0", status=1, env=dict(os.environ, LD_LIBRARY_PATH=folders[name]))
            self.assertRegex(done.stderr, rf"^gptc-run: error: open: expected .*{words}.*\n$")
        # An older GPU than the code is for.
        newer = package("llama-hf", "bf16", 2, "-march=sm_89")
        done = run("gptc-run", newer, "--tokens", "1,2", "-n", "0", status=1, env=emulated(GPTC_EMULATOR_SM="80"))
        self.assertIn("expected a GPU of compute capability 8.9 or later, got", done.stderr)

    def test_settings(self):
        """The emulator's own: one that it does not know would test something else in silence."""
        folder = package("llama-hf", "bf16")
        for name, value in ("SM", "75"), ("SM", "sm_80"), ("SEED", "-1"), ("THREADS", "two"), ("MEMORY", "9" * 30):
            done = run("gptc-run", folder, "--tokens", "1,2", "-n", "0", status=1, env=emulated(**{"GPTC_EMULATOR_" + name: value}))
            self.assertRegex(done.stderr, rf"^cuda-emulator: GPTC_EMULATOR_{name}: expected .*, got '{value}'\n")


if __name__ == "__main__":
    main()
