"""The golden attention numbers through `gptc-run --entry` on a model of one op."""
import os
import sys

import numpy as np

from harness import GOLDEN, TEMPORARY, compiled, golden, main, run, unittest, written

MODEL = """module attributes {{gpt.name = "attention"}} {{
  func.func @attention(%q: tensor<{H}x{Sq}x{D}xf32> {{gpt.arg = "q"}}, %k: tensor<{K}x{Sk}x{D}xf32> {{gpt.arg = "k"}},
                       %v: tensor<{K}x{Sk}x{D}xf32> {{gpt.arg = "v"}}) -> (tensor<{H}x{Sq}x{D}xf32> {{gpt.result = "out"}}) {{
    %o = gpt.flash_attention %q, %k, %v {causal} scale {scale:.17e} groups {groups} : tensor<{H}x{Sq}x{D}xf32>, tensor<{K}x{Sk}x{D}xf32>
    return %o : tensor<{H}x{Sq}x{D}xf32>
  }}
}}
"""


class Attention(unittest.TestCase):
    def check(self, index, dynamic):
        item = golden("attention")["items"][index]
        sizes = dict(item, Sq="?", Sk="?") if dynamic else item
        model = MODEL.format(H=item["n_q"], K=item["n_kv"], D=item["D"], Sq=sizes["Sq"], Sk=sizes["Sk"], scale=item["scale"],
                             causal="causal" if item["causal"] else "", groups=item["n_q"] // item["n_kv"])
        package = compiled(written(model))
        data = np.load(os.path.join(GOLDEN, "attention", item["file"]))
        inputs, outputs = os.path.join(TEMPORARY, "inputs.npz"), os.path.join(TEMPORARY, "outputs.npz")
        np.savez(inputs, **{name: data[name] for name in "qkv"})
        results = []
        for threads in (1, 2):
            run("gptc-run", package, "--entry", "attention", "--inputs", inputs, "--outputs", outputs, "--threads", threads)
            results.append(np.load(outputs)["out"])
        self.assertEqual(results[0].tobytes(), results[1].tobytes(), "the number of threads changes bits")
        out = os.path.join(TEMPORARY, "out.npy")
        np.save(out, results[0])
        run(sys.executable, os.path.join(GOLDEN, "check.py"), os.path.join(GOLDEN, "attention"), index, out)

    def test_static(self):
        for index, item in enumerate(golden("attention")["items"]):
            with self.subTest(item["file"]):
                self.check(index, dynamic=False)

    def test_dynamic(self):
        for index in (1, 2, 6, 8):
            with self.subTest(index=index):
                self.check(index, dynamic=True)


main()
