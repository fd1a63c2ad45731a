"""gptc-check: packages agree with the reference kernel by kernel and end to end; a damaged weight is found in its kernel."""
import json
import os
import re
import shutil
import tempfile

import numpy as np

from harness import DOCS, GOLDEN, TEMPORARY, checkpoint, compiled, compiled_case, golden, imported, main, manifest, run, unittest, written
from models import header_of, safetensors

ATTENTION = """module attributes {{gpt.name = "attention"}} {{
  func.func @attention(%q: tensor<{H}x?x{D}xf32> {{gpt.arg = "q"}}, %k: tensor<{K}x?x{D}xf32> {{gpt.arg = "k"}},
                       %v: tensor<{K}x?x{D}xf32> {{gpt.arg = "v"}}) -> (tensor<{H}x?x{D}xf32> {{gpt.result = "out"}}) {{
    %o = gpt.flash_attention %q, %k, %v causal scale {scale:.17e} groups {groups} : tensor<{H}x?x{D}xf32>, tensor<{K}x?x{D}xf32>
    return %o : tensor<{H}x?x{D}xf32>
  }}
}}
"""


# Two rows whose first two logits are nearly equal. Of the first the second is larger, and equal in f32. Of the second the second is larger too, also where
# products are rounded to f32; but a fused multiply-add gives 1 + 2^-23 for both.
C, D = 2.0 ** -12 * (1 + 2.0 ** -12), 2.0 ** -12 * (1 - 2.0 ** -12 + 2.0 ** -24)
ROWS = {"9.31e-10": [1, 2.0 ** -30, 0, 0], "5.96e-08": [0, 0, 1, C]}
TIED = np.array([[1, 0, 1, D], [1, 1, 1 + 2.0 ** -23, 0], [0.5, 0, 0.5, 0]], np.float32)
NEAR_TIE = """module attributes {gpt.checkpoint = "model.safetensors", gpt.name = "tie"} {
  ml_program.global private @w(#ml_program.extern<tensor<3x4xf32>>) : tensor<3x4xf32> {gpt.stored = #gpt.stored<"model.safetensors", "w", f32>}
  func.func @best(%x: tensor<?x4xf32> {gpt.arg = "x"}) -> (tensor<?xi32> {gpt.result = "t"}) {
    %w = ml_program.global_load_const @w : tensor<3x4xf32>
    %y = gpt.linear %x, %w : tensor<?x4xf32>, tensor<3x4xf32> -> tensor<?x3xf32>
    %t = gpt.argmax %y : tensor<?x3xf32> -> tensor<?xi32>
    return %t : tensor<?xi32>
  }
}
"""


def kernels(report):
    """Whether each kernel of a report is within its bound, by name."""
    lines = re.findall(r"^(\S+) +(\d+)(?: +\S+){3}  (ok|FAIL)$", report, re.MULTILINE)
    return {name: verdict == "ok" for name, calls, verdict in lines if int(calls) > 0}


class Check(unittest.TestCase):
    def model(self, case):
        return imported(checkpoint(case), "model")

    def agrees(self, *args):
        report = run("gptc-check", *args).stdout
        self.assertTrue(kernels(report))
        self.assertTrue(all(kernels(report).values()), report)
        self.assertRegex(report, r"(?m)^worst call of .*; from .*[\w.]+")
        self.assertRegex(report, r"(?m)^end to end: \w+ \[[\dx]+\]: .*  ok$")
        return report

    def test_models(self):
        for case in ("gpt2-hf", "llama-gguf-q4-1"):
            for level in (0, 2):
                with self.subTest(case=case, level=level):
                    package = compiled_case(case, level)
                    report = self.agrees(self.model(case), "--package", package)
                    # Every kernel of the package ran and was looked at.
                    self.assertEqual(set(kernels(report)), {kernel["name"] for kernel in manifest(package)["kernels"]})

    def test_given_tokens(self):
        """More than one page of the cache; one token alone."""
        case = "llama-gguf-q4-1"
        package = compiled_case(case)
        longest = max((prompt["ids"] for prompt in golden(case)["prompts"]), key=len)
        for ids in (longest, longest[:1]):
            report = self.agrees(self.model(case), "--package", package, "--tokens", ",".join(map(str, ids)))
            self.assertIn(f"logits [{len(ids)}x{manifest(package)['vocab']}]", report)

    def test_compiles_by_itself(self):
        self.agrees(self.model("gpt2-hf"))

    def test_weights_of_the_host(self):
        model = os.path.join(DOCS, "picogpt.mlir")
        for level in (0, 2):
            report = self.agrees(model, "--package", compiled(model, level))
            self.assertRegex(report, r"from .*picogpt.mlir:\d+:\d+")

    def test_damaged_weight(self):
        """One bit of one weight, high enough to matter, fails its own kernel and no other."""
        for case, name, byte in (("gpt2-hf", "h.1.mlp.c_proj.weight", 3), ("llama-gguf-q4-1", "blk.0.ffn_down.weight", 1)):
            with self.subTest(case):
                package = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "kernels")
                shutil.copytree(compiled_case(case), package)
                described = manifest(package)
                index, weight = next((i, w) for i, w in enumerate(described["weights"]) if w["name"] == name)
                self.assertEqual(weight["layout"], "panel")
                victim = {call["kernel"] for entry in described["entries"] for call in entry["calls"] if index in call["weights"]}
                with open(os.path.join(package, "model.weights"), "r+b") as f:
                    f.seek(weight["offset"] + byte)
                    value = f.read(1)[0]
                    f.seek(-1, os.SEEK_CUR)
                    f.write(bytes([value ^ 1]))
                report = run("gptc-check", self.model(case), "--package", package, status=3).stdout
                self.assertEqual({kernel for kernel, good in kernels(report).items() if not good}, victim, report)
                self.assertRegex(report, rf"(?m)^worst call of {victim.pop()}: @step call \d+, result 0, element \d+: .*; from ")
                self.assertRegex(report, r"(?m)^end to end: .*  FAIL$")

    def test_precisions(self):
        """Rounded rows and weights have their own bounds, in which one weight with a wrong exponent, or some codes with a wrong sign, still show."""
        for case, precision, name, bytes_, bit in (("gpt2-hf", "bf16", "h.1.mlp.c_proj.weight", (1,), 64),
                                                   ("gpt2-hf", "int8", "h.1.mlp.c_proj.weight", range(512), 128),
                                                   ("llama-gguf-q8-0", "int8", "blk.0.ffn_down.weight", (1,), 64),
                                                   ("llama-gguf-q4-1", "int8", "blk.0.ffn_down.weight", (1,), 64)):
            with self.subTest(case=case, precision=precision):
                model = self.model(case)
                package = compiled(model, 2, f"--precision={precision}", "-march=native,x86-64-v3")
                self.assertEqual(manifest(package)["precision"], precision)
                report = self.agrees(model, "--package", package)
                self.assertEqual(set(kernels(report)), {kernel["name"] for kernel in manifest(package)["kernels"]})
                index, weight = next((i, w) for i, w in enumerate(manifest(package)["weights"]) if w["name"] == name)
                victim = {call["kernel"] for entry in manifest(package)["entries"] for call in entry["calls"] if index in call["weights"]}
                with open(os.path.join(package, "model.weights"), "r+b") as f:
                    for byte in bytes_:
                        f.seek(weight["offset"] + byte)
                        value = f.read(1)[0]
                        f.seek(-1, os.SEEK_CUR)
                        f.write(bytes([value ^ bit]))
                report = run("gptc-check", model, "--package", package, status=3).stdout
                self.assertEqual({kernel for kernel, good in kernels(report).items() if not good}, victim, report)

    def test_entry(self):
        for index in (1, 8):
            item = golden("attention")["items"][index]
            model = written(ATTENTION.format(H=item["n_q"], K=item["n_kv"], D=item["D"], scale=item["scale"],
                                             groups=item["n_q"] // item["n_kv"]))
            data = np.load(os.path.join(GOLDEN, "attention", item["file"]))
            inputs = os.path.join(TEMPORARY, "check.npz")
            np.savez(inputs, **{name: data[name] for name in "qkv"})
            report = self.agrees(model, "--entry", "attention", "--inputs", inputs)
            self.assertIn("end to end: out [", report)

    def test_argmax(self):
        """A column is right if its logit is, within rounding, the largest."""
        model, inputs = written(NEAR_TIE), os.path.join(TEMPORARY, "tie.npz")
        with open(os.path.join(os.path.dirname(model), "model.safetensors"), "wb") as f:
            f.write(safetensors(header_of({"w": TIED}), TIED.tobytes()))
        for level in (0, 2):
            with self.subTest(level):
                package = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "kernels")
                shutil.copytree(compiled(model, level), package)
                arguments = (model, "--package", package, "--entry", "best", "--inputs", inputs)
                for short, row in ROWS.items():
                    np.savez(inputs, x=np.array([row], np.float32))
                    report = self.agrees(*arguments)
                    # By so much the logit of the column that the kernels chose is short of the largest.
                    self.assertRegex(report, rf"(?m)^end to end: t \[1\]: +{short} ")
                    self.assertEqual(len(kernels(report)), 2)
                # The third weight becomes 32: its column wins, and is next to the right one.
                weight, = manifest(package)["weights"]
                self.assertEqual(weight["layout"], "panel")
                with open(os.path.join(package, "tie.weights"), "r+b") as f:
                    f.seek(weight["offset"] + 4 * 2)
                    self.assertEqual(f.read(4), np.float32(0.5).tobytes())
                    f.seek(-4, os.SEEK_CUR)
                    f.write(np.float32(32).tobytes())
                np.savez(inputs, x=np.array([ROWS["9.31e-10"]], np.float32))
                report = run("gptc-check", *arguments, status=3).stdout
                self.assertRegex(report, r"(?m)^end to end: t \[1\]: .*  FAIL$")
                self.assertEqual(sorted(kernels(report).values()), [False, True], report)

    def test_refuses(self):
        model, package = self.model("gpt2-hf"), compiled_case("gpt2-hf")
        for args in ((), (model, "--entry", "step"), (model, "--tokens", "x"), (model, "--packag", package)):
            done = run("gptc-check", *args, status=2)
            self.assertRegex(done.stderr, r"^gptc-check: error: [^\n]+\n$")
        for args, message in (((model + ".none",), "No such file"), ((model, "--package", TEMPORARY), "manifest.json"),
                              ((self.model("llama-gguf-q4-1"), "--package", package), "compile it again"),
                              ((os.path.join(DOCS, "picogpt.mlir"), "--package", package), "expected the package of a model 'model', compiled from"),
                              ((model, "--package", package, "--tokens", "100000"), "an id from 0 to"),
                              ((model, "--package", package, "--entry", "none", "--inputs", "none.npz"), "no function @none")):
            done = run("gptc-check", *args, status=1)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("error: "), 1, done.stderr)
            self.assertEqual(done.stdout, "")
        damaged = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "kernels")
        shutil.copytree(package, damaged)
        described = manifest(package)
        described["weights"][0]["layout"] = 5
        with open(os.path.join(damaged, "manifest.json"), "w", encoding="utf-8") as f:
            json.dump(described, f)
        self.assertIn("manifest.json", run("gptc-check", model, "--package", damaged, status=1).stderr)


if __name__ == "__main__":
    main()
