"""What was fused, as the manifest shows it: four GEMMs and one attention a layer, kernels shared by the layers."""
import os
from harness import FAMILIES, SMOLLM2, compiled, compiled_case, golden, imported, main, manifest, unittest


def step_calls(package):
    """The kernels that @step calls, in order."""
    m = manifest(package)
    kernels = {kernel["name"]: kernel for kernel in m["kernels"]}
    step, = (entry for entry in m["entries"] if entry["kind"] == "step")
    return [(call, kernels[call["kernel"]]) for call in step["calls"]]


class Manifest(unittest.TestCase):
    def check(self, package, layers, gate):
        calls = [(call, kernel) for call, kernel in step_calls(package) if kernel["kind"] in ("gemm", "attention")]
        layer = ["gemm", "attention", "gemm", "gemm", "gemm"]
        self.assertEqual([kernel["kind"] for _, kernel in calls], layer * layers + ["gemm"])
        for i in range(layers):
            (qkv, qkv_kernel), (attention, _), (out, _), (up, up_kernel), (down, _) = calls[5 * i:5 * i + 5]
            self.assertEqual((qkv.get("layer"), attention.get("layer")), (i, i))
            for call in (qkv, out, up, down):
                self.assertTrue(call["source"], "a GEMM names what it was made from")
            self.assertIn("gpt.silu" if gate else "gpt.gelu", up_kernel["ops"])
            self.assertGreaterEqual(len(up["weights"]), 2)  # gate and up, or weight and bias
        gemms = {kernel["name"] for _, kernel in calls if kernel["kind"] == "gemm"}
        self.assertLessEqual(len(gemms), 5, "layers share their kernels")
        self.assertEqual(len({kernel["name"] for _, kernel in calls if kernel["kind"] == "attention"}), 1)
        self.assertFalse({kernel["kind"] for _, kernel in step_calls(package)} & {"softmax", "mask", "matmul"})

    @unittest.skipUnless(SMOLLM2, "no GPTC_SMOLLM2_GGUF")
    def test_smollm2(self):
        package = compiled(imported(SMOLLM2, "smollm2"), 2, "--no-weights")
        self.check(package, 30, gate=True)
        # Every norm is before a wide GEMM, and in its kernel.
        kernels = [kernel for _, kernel in step_calls(package)]
        self.assertNotIn("norm", {kernel["kind"] for kernel in kernels})
        self.assertEqual(sum("gpt.rms_norm" in kernel["ops"] for kernel in kernels), 2 * 30 + 1)

    def test_gpt2(self):
        self.check(compiled_case("gpt2-hf"), golden("gpt2-hf")["model"]["layers"], gate=False)

    def test_llama(self):
        self.check(compiled_case("llama-hf"), golden("llama-hf")["model"]["layers"], gate=True)

    def test_families(self):
        """Packed projections, biases, windows and rotating parts of heads change none of it."""
        for family in ("llama-biases", "mistral", "phi3"):
            with self.subTest(family):
                self.check(compiled(imported(os.path.join(FAMILIES, family), family.replace("-", "_"))), 2, gate=True)

    def test_unfused(self):
        kinds = [kernel["kind"] for _, kernel in step_calls(compiled_case("gpt2-hf", 0))]
        self.assertNotIn("attention", kinds)
        self.assertEqual(kinds.count("softmax"), golden("gpt2-hf")["model"]["layers"])

    def test_weights(self):
        """Every tensor of the checkpoint that the graph uses is in the manifest, with its shape and format."""
        m = manifest(compiled_case("llama-gguf-q4-0"))
        weights = {weight["name"]: weight for weight in m["weights"]}
        self.assertEqual(weights["blk.0.ffn_down.weight"]["dtype"], "q4_0")
        self.assertEqual(weights["blk.0.ffn_down.weight"]["shape"], [64, 96])
        self.assertEqual(weights["output_norm.weight"]["dtype"], "f32")
        self.assertEqual((m["context"], m["vocab"]), (256, 275))
        self.assertEqual(m["weights_file"], "model.weights")

    def test_converted_weights(self):
        """A format that no kernel reads is named beside the one that it became."""
        package = compiled(imported(os.path.join(FAMILIES, "llama-gguf-quants", "model.gguf"), "quants"))
        weights = {weight["name"]: (weight["dtype"], weight.get("stored")) for weight in manifest(package)["weights"]}
        self.assertEqual(weights["blk.0.attn_output.weight"], ("q8_0", "q5_0"))
        self.assertEqual(weights["blk.0.ffn_gate.weight"], ("f32", "q4_k"))
        self.assertEqual(weights["output_norm.weight"], ("f32", None))


main()
