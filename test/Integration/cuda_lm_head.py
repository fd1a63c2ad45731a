"""The argmax of an LM head in its GEMM on a GPU, here the emulator's: every storage format and precision, few rows and many, columns at
the edges of blocks and tiles, ties, NaN and infinities.

All numbers are small whole ones, so that logits are exact in every precision and many are equal: columns must be numpy's.
"""
import os

import numpy as np

from emulated import called, cuda, needs_gpu
from harness import GOLDEN, choosing, compiled, golden, main, manifest, unittest, written
from lm_head import BLOCK, best
from stored import declared, gguf, whole

inf, nan = np.inf, np.nan
K = 96  # no multiple of what a warp reads at once
# By precision, whose kernels of many rows are others: storage, columns, lanes. Three lanes of a block have no tile.
HEADS = {
    "f32": (("f32", 1, 1), ("q8_0", 300, 1), ("q4_1", BLOCK, 2)),
    "bf16": (("bf16", BLOCK + 1, 1), ("q4_0", 100, 1), ("q4_1", 2 * BLOCK, 2), ("f32", 40, 3)),
    "f16": (("f16", BLOCK, 1), ("q8_0", 3 * BLOCK + 7, 1)),
}
ROWS = (1, 3, 8, 9, 70)


def small(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float64)


def penalties(rng, rows, n):
    """What is added to the logits: a few rows of each kind."""
    p = small(rng, rows, n)
    for r in range(rows):
        kind = r % 7
        if kind == 1:
            p[r] = -inf
        elif kind == 2:
            p[r] = nan
        elif kind == 3:
            p[r, rng.random(n) < 0.3] = nan
            p[r, rng.random(n) < 0.3] = -inf
        elif kind == 4:  # NaN before the first -inf
            p[r], p[r, : n // 2] = -inf, nan
        elif kind == 5:  # the largest in any place, and once more behind it
            at = rng.integers(0, n)
            p[r, [at, rng.integers(at, n)]] = 1000
        elif kind == 6:
            p[r, rng.integers(0, n)] = inf
    return p


class LmHead:
    """Heads as one model, their weights in a file beside it."""

    def __init__(self, heads):
        self.heads, self.rng = heads, np.random.default_rng(1)
        self.weights, text, loads = {}, "", ""
        for i, (kind, n, lanes) in enumerate(heads):
            names = [f"w{i}_{lane}" for lane in range(lanes)]
            for name in names:
                self.weights[name] = whole(kind, small(self.rng, n, K))
                text += declared(name, kind, n, K, "weights.gguf")
            y = f"tensor<?x{n}xf32>"
            loads += f'  func.func @f{i}(%x: tensor<?x{K}xf32> {{gpt.arg = "x"}}, %p: {y} {{gpt.arg = "p"}}) -> (tensor<?xi32> {{gpt.result = "t"}}) {{\n'
            for lane, name in enumerate(names):
                loads += f"    %w{lane} = ml_program.global_load_const @{name} : tensor<{n}x{K}xf32>\n"
                loads += f"    %y{lane} = gpt.linear %x, %w{lane} : tensor<?x{K}xf32>, tensor<{n}x{K}xf32> -> {y}\n"
            product = "y0"
            for lane in range(1, lanes):
                loads += f"    %m{lane} = arith.mulf %{product}, %y{lane} : {y}\n"
                product = f"m{lane}"
            loads += f"    %z = arith.addf %{product}, %p : {y}\n    %t = gpt.argmax %z : {y} -> tensor<?xi32>\n    return %t : tensor<?xi32>\n  }}\n"
        self.mlir = written(f'module attributes {{gpt.name = "heads", gpt.checkpoint = "weights.gguf"}} {{\n{text}{loads}}}\n')
        with open(os.path.join(os.path.dirname(self.mlir), "weights.gguf"), "wb") as f:
            f.write(gguf(self.weights))

    def inputs(self, i):
        """x and p of all rows, and the columns that are right."""
        _, n, lanes = self.heads[i]
        rng = np.random.default_rng(100 + i)
        x, p, y = small(rng, max(ROWS), K), penalties(rng, max(ROWS), n), 1.0
        for lane in range(lanes):
            y = y * (x @ np.float64(self.weights[f"w{i}_{lane}"].values).T)
        return x.astype(np.float32), p.astype(np.float32), [best(row) for row in y + p]


@needs_gpu
class CudaLmHead(unittest.TestCase):
    def head(self, precision):
        model = LmHead(HEADS[precision])
        calls, expected = [], []
        for i in range(len(model.heads)):
            x, p, columns = model.inputs(i)
            for rows in ROWS:
                first = 0 if rows == max(ROWS) else i
                part = slice(first, first + rows)
                calls.append((f"f{i}", {"x": x[part], "p": p[part]}, "t"))
                expected.append((model.heads[i], rows, columns[part]))
        folder = compiled(model.mlir, *cuda(precision))
        kernels = [kernel["name"] for kernel in manifest(folder)["kernels"]]
        self.assertEqual(sum(name.startswith("merge_argmax") for name in kernels), len({(n + BLOCK - 1) // BLOCK for _, n, _ in model.heads}))
        self.assertFalse(any(name.startswith("argmax") for name in kernels))
        for got, (head, rows, columns) in zip(called(folder, calls), expected, strict=True):
            with self.subTest(head=head, rows=rows):
                self.assertEqual(got.view(np.int32).tolist(), columns)

    def test_f32(self):
        self.head("f32")

    def test_bf16(self):
        self.head("bf16")

    def test_f16(self):
        self.head("f16")

    # Tokens that another implementation's logits give, at every place of a prompt and after it.
    def test_golden(self):
        for case in ("llama-gguf-q4-1",):
            folder = compiled(choosing(case), *cuda("f32"))
            argument = manifest(folder)["entries"][0]["inputs"][0]["name"]
            for prompt in golden(case)["prompts"]:
                with self.subTest(case=case, tokens=len(prompt["ids"])):
                    logits = np.load(os.path.join(GOLDEN, case, prompt["logits"]))
                    largest = np.sort(logits, -1)
                    clear = largest[:, -1] - largest[:, -2] > 1e-3
                    self.assertGreater(clear.sum(), 0.9 * len(clear))
                    got, = called(folder, [("forward", {argument: np.array(prompt["ids"], np.int32)}, "next")])
                    got = got.view(np.int32)
                    self.assertTrue(np.all((got == logits.argmax(-1))[clear]))
                    if prompt.get("greedy") and 0 not in prompt["greedy"]["ambiguous_at"]:
                        self.assertEqual(got[-1], prompt["greedy"]["tokens"][0])


main()
