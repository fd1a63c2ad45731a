"""GEMMs of the CPU with weights of 4 and 8 bits: one-hot rows give back each weight bit by bit, other rows agree with numpy, also where a row's numbers
are far apart and very large or small, and a row has the same bits alone, beside others and beside one that is not finite.

Sizes: no whole panel, two and many blocks, more inputs than a slice; lanes of one format and of several. With the CPU's sums of products of bytes
where it has them (native), and without.
"""
import os

import numpy as np

from harness import compiled, main, same_bits, unittest, written
from package import Package
from stored import CODES, blocks, declared, gguf, made

# storage of each lane, features, inputs
GEMMS = ((("q4_0",), 20, 64), (("q4_1",), 130, 96), (("q8_0",), 48, 1056), (("q4_1",), 33, 1056), (("q4_1", "q4_1"), 20, 64),
         (("bf16", "q8_0", "q4_0"), 20, 32))
ROWS = 42  # tiles of many rows; fewer than 25 are few


def stored(rng, kind, n, k):
    """Any numbers; of the first two features all codes are the largest and the smallest, so that sums are as large as they can be."""
    if kind not in CODES:
        return made(rng, kind, n, k)
    low, high = CODES[kind]
    codes = rng.integers(low, high, (n, k))
    codes[0], codes[1] = high - 1, low
    count = n * k // 32
    return blocks(kind, (n, k), codes, rng.standard_normal(count) * 0.01, rng.standard_normal(count) * 0.05)


def model(rng):
    """The model, its weights in a file beside it, and the weights of each function."""
    weights, globals_, functions = [], "", ""
    for i, (kinds, n, k) in enumerate(GEMMS):
        x, y, w = f"tensor<?x{k}xf32>", f"tensor<?x{n}xf32>", f"tensor<{n}x{k}xf32>"
        functions += f'  func.func @f{i}(%x: {x} {{gpt.arg = "x"}}) -> ({y} {{gpt.result = "y"}}) {{\n'
        weights.append([stored(rng, kind, n, k) for kind in kinds])
        for lane, kind in enumerate(kinds):
            globals_ += declared(f"w{i}_{lane}", kind, n, k, "weights.gguf")
            functions += f"    %w{lane} = ml_program.global_load_const @w{i}_{lane} : {w}\n    %y{lane} = gpt.linear %x, %w{lane} : {x}, {w} -> {y}\n"
        last = "y0"
        for lane in range(1, len(kinds)):  # lanes of one GEMM
            functions += f"    %s{lane} = arith.addf %{last}, %y{lane} : {y}\n"
            last = f"s{lane}"
        functions += f"    return %{last} : {y}\n  }}\n"
    path = written(f'module attributes {{gpt.name = "blocks", gpt.checkpoint = "weights.gguf"}} {{\n{globals_}{functions}}}\n')
    with open(os.path.join(os.path.dirname(path), "weights.gguf"), "wb") as f:
        f.write(gguf({f"w{i}_{lane}": w for i, lanes in enumerate(weights) for lane, w in enumerate(lanes)}))
    return path, weights


def spread(rng, rows, k):
    """Rows of ordinary numbers, of numbers far apart, of tiny and of huge ones, of zeros, of equal ones just below a power of two."""
    x = rng.standard_normal((rows, k)).astype(np.float32)
    x[1::6] *= np.exp2(rng.integers(-12, 12, x[1::6].shape)).astype(np.float32)
    x[2::6] *= np.float32(2.0**-90)
    x[3::6] *= np.float32(2.0**90)
    x[4::6, 7] = 2.0**20
    x[5::12] = 0
    x[11::12] = np.nextafter(np.float32(2), np.float32(0))
    x[23] *= -1
    x[18] *= np.float32(2.0**118)
    return x


def as_bytes(x):
    """Each 32 numbers of a row as multiples of a 127th of their largest."""
    blocks_ = x.reshape(len(x), -1, 32)
    largest = np.max(np.abs(blocks_), 2, keepdims=True)
    inverse = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest > 0)
    return (np.rint(blocks_ * inverse).astype(np.float64) * largest / 127).reshape(x.shape)


class BlockWeights(unittest.TestCase):
    def test_rows(self):
        path, self.weights = model(np.random.default_rng(4))
        for march in ("native", "x86-64-v3"):
            for precision in ("f32", "bf16", "int8"):
                with Package(compiled(path, 2, f"-march={march}", f"--precision={precision}")).open() as opened, opened.session(threads=2) as session:
                    for i, gemm in enumerate(GEMMS):
                        with self.subTest(march=march, precision=precision, gemm=gemm):
                            run = lambda x: session.run(f"f{i}", {"x": np.ascontiguousarray(x)}, ["y"])["y"]
                            self.check(run, i, precision)

    def check(self, run, i, precision):
        rng, k = np.random.default_rng(5), GEMMS[i][2]
        weights = [np.float64(w.values) for w in self.weights[i]]
        if precision == "f32":  # more or fewer rows than a tile
            for places in np.split(rng.integers(0, k, 16), [3]):
                columns = [w.values[:, places].T for w in self.weights[i]]
                self.assertTrue(same_bits(run(np.eye(k, dtype=np.float32)[places]) + 0.0, sum(columns[1:], columns[0]) + 0.0))
        x = spread(rng, ROWS, k)
        whole = run(x)
        codes = all(kind in CODES for kind in GEMMS[i][0])
        digits = {"f32": 2.0**-22, "bf16": 2.0**-11 if codes else 2.0**-7, "int8": 2.0**-21}[precision]
        if precision != "f32" and np.all(np.isnan(whole[18])):  # too large for its unit
            whole[18] = x[18] = 0
        if precision != "int8":
            self.agrees(whole, x, weights, digits)
        elif codes:  # the last bits of a scale are not kept
            self.agrees(whole, as_bytes(x), weights, digits)
        self.assertTrue(np.all(whole[5] == 0))
        for first, rows in ((0, 1), (1, 2), (3, 3), (2, 4), (4, 5), (1, 7), (0, 8), (6, 11), (3, 12), (9, 13), (2, 24), (5, 25), (8, 33)):
            self.assertTrue(same_bits(run(x[first:first + rows]), whole[first:first + rows]), (first, rows))
        for odd in (np.nan, np.inf, -np.inf):  # stays in its row
            x[4, k // 2] = odd
            for rows in (8, ROWS):
                got = run(x[:rows])
                self.assertFalse(np.any(np.isfinite(got[4])) and np.isnan(odd))
                self.assertTrue(np.any(~np.isfinite(got[4])))
                self.assertTrue(same_bits(np.delete(got, 4, 0), np.delete(whole[:rows], 4, 0)))

    def agrees(self, got, x, weights, digits):
        """A number of a block may be off by so much of the block's largest; what is summed, by a few roundings of all that is added."""
        x, value, bound = np.float64(x), 0, 0
        largest = np.repeat(np.abs(x).reshape(len(x), -1, 32).max(2), 32, axis=1)
        for w in weights:
            value = value + x @ w.T
            # d * code and m of q4_1 are added apart, and may be larger than their sum.
            top = 3 * np.repeat(np.abs(w).reshape(len(w), -1, 32).max(2), 32, axis=1)
            bound = bound + digits * largest @ np.abs(w).T + (x.shape[1] / 8 + 8) * 2.0**-24 * np.abs(x) @ top.T
        self.assertLessEqual(np.max(np.abs(got - value) - bound), 0)


main()
