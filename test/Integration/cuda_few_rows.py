"""GEMMs of few rows on a GPU, here the emulator's, which read weights as they are stored: one-hot rows give back each weight bit by bit, other
rows agree with numpy, a row has the same bits alone and beside others.

Sizes: no whole strip of a warp, no whole panel; rows of x that go through shared memory in pieces; lanes of one format and of several.
"""
import os

import numpy as np

from emulated import called, cuda, needs_gpu
from harness import compiled, main, same_bits, unittest, written
from stored import declared, gguf, made

# storage of each lane, features, inputs
GEMMS = ((("f32",), 20, 33), (("bf16",), 40, 1100), (("f16",), 16, 100), (("q8_0",), 48, 1056), (("q4_0",), 20, 8224), (("q4_1",), 130, 96),
         (("q4_1", "q4_1"), 20, 64), (("bf16", "q8_0", "f32"), 20, 32))


def model(rng):
    """The model, its weights in a file beside it, and the weights of each function."""
    weights, globals_, functions = [], "", ""
    for i, (kinds, n, k) in enumerate(GEMMS):
        x, y, w = f"tensor<?x{k}xf32>", f"tensor<?x{n}xf32>", f"tensor<{n}x{k}xf32>"
        functions += f'  func.func @f{i}(%x: {x} {{gpt.arg = "x"}}) -> ({y} {{gpt.result = "y"}}) {{\n'
        weights.append([made(rng, kind, n, k) for kind in kinds])
        for lane, kind in enumerate(kinds):
            globals_ += declared(f"w{i}_{lane}", kind, n, k, "weights.gguf")
            functions += f"    %w{lane} = ml_program.global_load_const @w{i}_{lane} : {w}\n    %y{lane} = gpt.linear %x, %w{lane} : {x}, {w} -> {y}\n"
        last = "y0"
        for lane in range(1, len(kinds)):  # lanes of one GEMM
            functions += f"    %s{lane} = arith.mulf %{last}, %y{lane} : {y}\n"
            last = f"s{lane}"
        functions += f"    return %{last} : {y}\n  }}\n"
    path = written(f'module attributes {{gpt.name = "few", gpt.checkpoint = "weights.gguf"}} {{\n{globals_}{functions}}}\n')
    with open(os.path.join(os.path.dirname(path), "weights.gguf"), "wb") as f:
        f.write(gguf({f"w{i}_{lane}": w for i, lanes in enumerate(weights) for lane, w in enumerate(lanes)}))
    return path, weights


def product(arrays):
    """One by one, each rounded to f32."""
    result = arrays[0]
    for array in arrays[1:]:
        result = np.float32(result) * np.float32(array)
    return result


@needs_gpu
class FewRows(unittest.TestCase):
    def test_rows(self):
        rng = np.random.default_rng(4)
        path, weights = model(rng)
        folder = compiled(path, *cuda("f32"))
        calls, checks = [], []

        def call(i, x, check, *known):
            calls.append((f"f{i}", {"x": np.ascontiguousarray(x)}, "y"))
            checks.append((i, check, known))

        for i, (_, _, k) in enumerate(GEMMS):
            places = sorted({0, k - 1, min(1023, k - 1), min(1024, k - 1), min(8192, k - 1), *rng.integers(0, k, 11)})
            for at in (places[:1], places[:8], places[8:]):
                call(i, np.eye(k, dtype=np.float32)[at], self.weights, [w.values[:, at].T for w in weights[i]])
            x = rng.standard_normal((9, k)).astype(np.float32)
            for first, rows in ((0, 8), (0, 1), (4, 1), (3, 2), (1, 5), (0, 9)):
                call(i, x[first:first + rows], self.numbers, x[first:first + rows], [w.values for w in weights[i]], first)
            odd = np.stack([np.zeros(k), x[0]]).astype(np.float32)
            odd[1, k // 2] = np.inf
            call(i, odd, self.infinity, [w.values[:, k // 2] for w in weights[i]])
        for got, (i, check, known) in zip(called(folder, calls), checks, strict=True):
            with self.subTest(gemm=GEMMS[i], rows=len(got), check=check.__name__):
                check(got, *known)

    def weights(self, got, expected):
        self.assertTrue(same_bits(got + 0.0, product(expected) + 0.0))  # -0 is 0

    def numbers(self, got, x, weights, first):
        if first == 0 and len(x) == 8:
            self.whole = got
        elif len(x) <= 8:
            self.assertTrue(same_bits(got, self.whole[first:first + len(x)]))
        # Eight lanes or more share the inputs of a feature; each rounds its sums, and the sums meet.
        exact = [np.float64(x) @ np.float64(w).T for w in weights]
        sizes = [np.abs(np.float64(x)) @ np.abs(np.float64(w)).T for w in weights]
        terms = x.shape[1] if len(x) > 8 else x.shape[1] / 8 + 16
        bound, value = 0, 1
        for e, size in zip(exact, sizes):
            error = terms * 2.0**-24 * size
            bound, value = bound * (np.abs(e) + error) + np.abs(value) * error, value * e
        bound += len(weights) * 2.0**-24 * np.abs(value)
        self.assertLessEqual(np.max(np.abs(got - value) - bound), 0)

    def infinity(self, got, columns):
        """A row of zeros, and one with an infinity: its sign by the weight's, NaN where that is 0."""
        self.assertTrue(np.all(got[0] == 0))
        with np.errstate(invalid="ignore"):
            expected = product([np.inf * column for column in columns])
        self.assertTrue(np.array_equal(got[1], expected, equal_nan=True), (got[1], expected))


main()
