"""gptc --verify-fusions: golden models and a big one are right; compilers with a planted bug are told so, at the fusion that has it."""
import glob
import os
import re
import resource

from harness import BIN, DOCS, SMOLLM2, TEMPORARY, checkpoint, imported, main, run, unittest, written

ROW = re.compile(r"^(\S+) +\S.*  (ok|FAIL) +(\S.*)$", re.MULTILINE)


def windowed():
    """docs/picogpt.mlir, whose tokens see three of those before."""
    with open(os.path.join(DOCS, "picogpt.mlir"), encoding="utf-8") as f:
        text, count = re.subn(r"(gpt.causal_mask %\w+) :", r"\1 window 3 :", f.read())
    assert count == 2
    return written(text)


class VerifyFusions(unittest.TestCase):
    def fusions(self, report):
        """(fusion, verdict, ops) of every line."""
        rows = ROW.findall(report)
        self.assertTrue(rows, report)
        return rows

    def proven(self, model, *options):
        report = run("gptc", model, "--verify-fusions", *options).stdout
        rows = self.fusions(report)
        self.assertEqual({verdict for _, verdict, _ in rows}, {"ok"}, report)
        self.assertRegex(report, r"\n\d+ fused ops and results verified(; functions left out: \d+)?\n$")
        return {fusion for fusion, _, _ in rows}, report

    def test_golden_models(self):
        for case in ("gpt2-hf", "gpt2-hf-bf16", "llama-hf", "llama-hf-llama3-rope", "llama-gguf-q4-1"):
            with self.subTest(case):
                fusions, report = self.proven(imported(checkpoint(case), "model"))
                self.assertLessEqual({"fuse-qkv", "fuse-attention", "fuse-rope-kv", "fuse-epilogue"}, fusions)
                self.assertIn("linear, arith.addf", report)
                self.assertRegex(report, r"model.mlir:\d+:\d+ %q")
                self.assertNotIn("note:", report)

    def test_disabled_fusion(self):
        fusions, _ = self.proven(windowed(), "--disable-fusion=fuse-qkv")
        self.assertNotIn("fuse-qkv", fusions)

    def test_sizes_that_follow(self):
        """A `?` beside a static size is not made up: keys are as many as the mask has numbers."""
        fusions, report = self.proven(written("""func.func @f(%x: tensor<2x?x4xf32>, %m: tensor<3xf32>) -> tensor<2x?x4xf32> {
  %s = gpt.matmul %x, %x transpose_b : tensor<2x?x4xf32>, tensor<2x?x4xf32> -> tensor<2x?x?xf32>
  %n = gpt.mask %s, %m : tensor<2x?x?xf32>, tensor<3xf32>
  %p = gpt.softmax %n : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %x : tensor<2x?x?xf32>, tensor<2x?x4xf32> -> tensor<2x?x4xf32>
  return %o : tensor<2x?x4xf32>
}
"""))
        self.assertEqual(fusions, {"fuse-attention"})
        self.assertNotIn("left out", report)

    def test_argmax(self):
        """Judged where the blocks are merged, by the logits of the columns."""
        fusions, report = self.proven(written("""ml_program.global private @w(#ml_program.extern<tensor<300x8xf32>>) : tensor<300x8xf32>
ml_program.global private @g(#ml_program.extern<tensor<8xf32>>) : tensor<8xf32>
func.func @f(%x: tensor<?x8xf32>) -> tensor<?xi32> {
  %w = ml_program.global_load_const @w : tensor<300x8xf32>
  %g = ml_program.global_load_const @g : tensor<8xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>
  %y = gpt.linear %n, %w : tensor<?x8xf32>, tensor<300x8xf32> -> tensor<?x300xf32>
  %c = gpt.softcap %y at 30.0 : tensor<?x300xf32>
  %t = gpt.argmax %c : tensor<?x300xf32> -> tensor<?xi32>
  return %t : tensor<?xi32>
}
"""))
        self.assertEqual(fusions, {"fuse-epilogue", "fuse-argmax"})
        self.assertRegex(report, r"(?m)^fuse-argmax .* gpt.merge_argmax .*  ok +fused_gemm, argmax$")

    def test_values_alike(self):
        """The same numbers but for rounding, made in two ways by one GEMM; either goes on."""
        for goes_on in ("%spelled", "%op"):
            for returned in ("%spelled, %op", "%op, %spelled"):
                fusions, report = self.proven(written(f"""ml_program.global private @w(#ml_program.extern<tensor<8x8xf32>>) : tensor<8x8xf32>
ml_program.global private @g(#ml_program.extern<tensor<8xf32>>) : tensor<8xf32>
func.func @f(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {{
  %w = ml_program.global_load_const @w : tensor<8x8xf32>
  %g = ml_program.global_load_const @g : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>
  %y = gpt.linear %n, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %a = arith.negf %y : tensor<4x8xf32>
  %b = math.exp %a : tensor<4x8xf32>
  %c = arith.addf %one, %b : tensor<4x8xf32>
  %spelled = arith.divf %y, %c : tensor<4x8xf32>
  %op = gpt.silu %y : tensor<4x8xf32>
  %z = gpt.linear {goes_on}, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %r = arith.addf %x, %z : tensor<4x8xf32>
  return %r, {returned} : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}}
"""))
                self.assertEqual(fusions, {"fuse-epilogue"})

    def test_several_masks(self):
        """One that fills and one that is added, the causal one between; and a mask that is computed along the scores."""
        fusions, report = self.proven(written("""func.func @f(%x: tensor<2x?x4xf32>, %pad: tensor<?xi1>, %bias: tensor<?x?xf32>, %ids: tensor<?xi32>, %rows: tensor<?x1xi32>) -> tensor<2x?x4xf32> {
  %s = gpt.matmul %x, %x transpose_b : tensor<2x?x4xf32>, tensor<2x?x4xf32> -> tensor<2x?x?xf32>
  %l = gpt.mask %s, %pad fill -3.0 : tensor<2x?x?xf32>, tensor<?xi1>
  %m = gpt.causal_mask %l : tensor<2x?x?xf32>
  %n = gpt.mask %m, %bias : tensor<2x?x?xf32>, tensor<?x?xf32>
  %p = gpt.softmax %n : tensor<2x?x?xf32>
  %o = gpt.matmul %p, %x : tensor<2x?x?xf32>, tensor<2x?x4xf32> -> tensor<2x?x4xf32>
  %t = gpt.matmul %o, %x transpose_b : tensor<2x?x4xf32>, tensor<2x?x4xf32> -> tensor<2x?x?xf32>
  %a = gpt.broadcast %rows like %t : tensor<?x1xi32>, tensor<2x?x?xf32> -> tensor<2x?x?xi32>
  %b = gpt.broadcast %ids like %t : tensor<?xi32>, tensor<2x?x?xf32> -> tensor<2x?x?xi32>
  %e = arith.cmpi sle, %a, %b : tensor<2x?x?xi32>
  %u = gpt.mask %t, %e : tensor<2x?x?xf32>, tensor<2x?x?xi1>
  %r = gpt.softmax %u : tensor<2x?x?xf32>
  %y = gpt.matmul %r, %o : tensor<2x?x?xf32>, tensor<2x?x4xf32> -> tensor<2x?x4xf32>
  return %y : tensor<2x?x4xf32>
}
"""))
        self.assertEqual(fusions, {"fuse-attention"})
        self.assertEqual(report.count("gpt.flash_attention"), 2, report)
        self.assertNotIn("left out", report)

    def test_same_report(self):
        model = windowed()
        self.assertEqual(self.proven(model)[1], self.proven(model)[1])

    def test_report_beside_a_product(self):
        """With a product on stdout the report is on stderr."""
        done = run("gptc", windowed(), "--verify-fusions", "--emit=fused")
        self.assertTrue(done.stdout.rstrip().endswith("}"), done.stdout)
        self.assertNotIn("max error", done.stdout)
        self.fusions(done.stderr)

    @unittest.skipUnless(SMOLLM2, "no SmolLM2")
    def test_big_model(self):
        """In well under two minutes, and it says what was left out."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, report = self.proven(imported(SMOLLM2, "model"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertRegex(report, r"(?m)^note: @forward: \d+ of \d+ stretches between residuals were left out")
        self.assertLess(after.ru_utime - before.ru_utime, 60)

    def planted(self, bug):
        program = os.path.join(BIN, "gptc-planted-" + bug)
        if not os.path.exists(program):
            self.skipTest("built without GPTC_PLANTED_BUGS")
        return program

    def test_planted_bugs(self):
        for bug, culprit, op in (("mask-off-by-one", "fuse-attention", "causal_mask"), ("duplicated-scale", "fuse-attention", "scale"),
                                 ("dropped-epsilon", "fuse-qkv", "layer_norm")):
            with self.subTest(bug):
                program = self.planted(bug)
                done = run(program, windowed(), "--verify-fusions", status=3)
                wrong = [(fusion, ops) for fusion, verdict, ops in self.fusions(done.stdout) if verdict == "FAIL"]
                self.assertEqual({fusion for fusion, _ in wrong}, {culprit}, done.stdout)
                self.assertIn(op, wrong[0][1])
                self.assertRegex(done.stdout, rf"(?m)^{culprit} at model.mlir:\d+:\d+ %\w+ in @step: element \d+: expected .* is above the bound")
                self.assertRegex(done.stderr, r"^gptc: error: --verify-fusions: [^\n]+\n$")
                # No package of it.
                package = os.path.join(TEMPORARY, bug)
                run(program, windowed(), "--verify-fusions", "-o", package, status=3)
                self.assertEqual(glob.glob(package + "*"), [])


main()
