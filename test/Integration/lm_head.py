"""The argmax of an LM head, in its GEMM at -O2 and after it at -O0: tokens of numpy's logits in double, ties, NaN and infinities; the same on
any threads; greedy tokens of golden models in every storage format."""
import os

import numpy as np

from cases import Case, check_all, tensor
from harness import GOLDEN, choosing, compiled, golden, main, manifest, same_bits, unittest, written
from package import Package

inf, nan = np.inf, np.nan
BLOCK = 128  # columns of a block in a fused argmax
# Every vector width; each has its own panels.
OPTIONS = ((2,), (0,), (2, "-march=x86-64"), (2, "-march=x86-64-v3"))


def best(row):
    """The column of the largest number, the lowest of equal ones; a NaN is below every number."""
    return int(np.argmax(np.where(np.isnan(row), -inf, row))) if np.any(row > -inf) else next((j for j, y in enumerate(row) if not np.isnan(y)), 0)


def whole(rng, *shape):
    """Small whole numbers: their sums of products are exact, and many are equal."""
    return rng.integers(-2, 3, shape).astype(np.float32)


class LmHead(unittest.TestCase):
    def fused(self, entry, gemms=1):
        """At -O2 one GEMM and the merge of its blocks; at -O0 the two ops."""
        self.assertEqual({kind: entry.kernels().get(kind, 0) for kind in ("gemm", "argmax", "elementwise")},
                         {"gemm": 1 if entry.level else gemms, "argmax": 1, "elementwise": 0 if entry.level else entry.kernels().get("elementwise", 0)})

    def case(self, inputs, weights, body, expected, gemms=1):
        """`expected`: the values in double, [rows, N], of whole `inputs`; they run in several numbers of rows."""
        tokens = [best(row) for row in expected]

        def check(entry):
            self.fused(entry, gemms)
            for first, rows in ((0, 1), (1, 3), (7, 5), (2, 13), (0, 37)):
                part = {name: x[first : first + rows] for name, x in inputs.items()}
                self.assertEqual(entry(**part)["t"].view(np.int32).tolist(), tokens[first : first + rows])

        kinds = {name: tensor(("?", x.shape[1])) for name, x in inputs.items()}
        return Case(kinds, weights, body, {"t": "tensor<?xi32>"}, check)

    def test_columns(self):
        cases = []
        for n in (1, 7, 16, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 300, 1000):
            rng = np.random.default_rng(n)
            x, w, b = whole(rng, 37, 8), whole(rng, n, 8), whole(rng, n)
            x[0], x[4], x[20] = nan, 0, nan
            b[rng.random(n) < 0.1], b[rng.random(n) < 0.1] = nan, -inf
            cases.append(self.case({"x": x}, {"w": w, "b": b}, f"""
    %y = gpt.linear %x, %w bias %b : tensor<?x8xf32>, {tensor(w.shape)}, {tensor(b.shape)} -> tensor<?x{n}xf32>
    %t = gpt.argmax %y : tensor<?x{n}xf32> -> tensor<?xi32>""", np.float64(x) @ np.float64(w).T + b))
        check_all(self, cases, OPTIONS)

    # Rows of nothing but -inf, the largest in every place of a row, the same number everywhere.
    def test_places(self):
        n = 3 * BLOCK + 5
        cases = []
        for bias in ([-inf] * n, [nan] * 9 + [-inf] * (n - 9), [nan] * n, [0] * n, [nan] * (n - 1) + [-inf]):
            x, w, b = np.ones((37, 4), np.float32), np.zeros((n, 4), np.float32), np.array(bias, np.float32)
            cases.append(self.case({"x": x}, {"w": w, "b": b}, f"""
    %y = gpt.linear %x, %w bias %b : tensor<?x4xf32>, tensor<{n}x4xf32>, tensor<{n}xf32> -> tensor<?x{n}xf32>
    %t = gpt.argmax %y : tensor<?x{n}xf32> -> tensor<?xi32>""", np.broadcast_to(b, (37, n)).astype(np.float64)))
        # Row r has its largest at the column of its one 1; a later column has it again.
        x = np.eye(37, dtype=np.float32)
        w = np.zeros((n, 37), np.float32)
        for r in range(37):
            column = r * (n - 1) // 36
            w[column, r] = 1
            w[min(column + r, n - 1), r] = 1
        cases.append(self.case({"x": x}, {"w": w}, f"""
    %y = gpt.linear %x, %w : tensor<?x37xf32>, tensor<{n}x37xf32> -> tensor<?x{n}xf32>
    %t = gpt.argmax %y : tensor<?x{n}xf32> -> tensor<?xi32>""", np.float64(x) @ w.T))
        check_all(self, cases, OPTIONS)

    # What stands between, in both orientations; lanes.
    def test_epilogues(self):
        n, rng = 2 * BLOCK + 44, np.random.default_rng(5)
        x, w, v, b, p, row = whole(rng, 37, 8), whole(rng, n, 8), whole(rng, n, 8), whole(rng, n), whole(rng, 37, n), whole(rng, n)
        Y = f"tensor<?x{n}xf32>"
        y = np.float64(x) @ np.float64(w).T
        linear = f"\n    %y = gpt.linear %x, %w : tensor<?x8xf32>, tensor<{n}x8xf32> -> {Y}"
        last = f"\n    %t = gpt.argmax %z : {Y} -> tensor<?xi32>"
        check_all(self, [
            self.case({"x": x}, {"w": w.T, "b": b}, f"""
    %z = gpt.linear %x, %w bias %b in_out : tensor<?x8xf32>, tensor<8x{n}xf32>, tensor<{n}xf32> -> {Y}{last}""", y + b),
            self.case({"x": x}, {"w": w}, f"{linear}\n    %z = gpt.scale %y by -0.5 : {Y}{last}", -y),
            self.case({"x": x, "p": p}, {"w": w}, f"{linear}\n    %z = arith.addf %y, %p : {Y}{last}", y + p),
            self.case({"x": x}, {"w": w, "row": row}, f"""{linear}
    %r = gpt.broadcast %row like %y : tensor<{n}xf32>, {Y} -> {Y}
    %z = arith.mulf %y, %r : {Y}{last}""", y * row),
            self.case({"x": x}, {"w": w, "v": v}, f"""{linear}
    %u = gpt.linear %x, %v : tensor<?x8xf32>, tensor<{n}x8xf32> -> {Y}
    %z = arith.mulf %y, %u : {Y}{last}""", y * (np.float64(x) @ np.float64(v).T), gemms=2),
        ], OPTIONS)

    # The numbers and columns themselves, of any numbers, on any threads; sizes of the row blocks and what is beside them.
    def test_threads(self):
        K, n = 40, 11 * BLOCK + 33
        blocks = -(-n // BLOCK)
        rng = np.random.default_rng(9)
        w, x = rng.standard_normal((n, K)).astype(np.float32), rng.standard_normal((250, K)).astype(np.float32)
        model = written(f"""module attributes {{gpt.name = "blocks"}} {{
  ml_program.global private @w(#ml_program.extern<tensor<{n}x{K}xf32>>) : tensor<{n}x{K}xf32>
  func.func @f(%x: tensor<?x{K}xf32> {{gpt.arg = "x"}}) -> (tensor<?x{blocks}xf32> {{gpt.result = "v"}}, tensor<?x{blocks}xi32> {{gpt.result = "c"}}) {{
    %w = ml_program.global_load_const @w : tensor<{n}x{K}xf32>
    %v, %c = gpt.fused_gemm %x : tensor<?x{K}xf32> argmax {BLOCK} section %w : tensor<{n}x{K}xf32> -> (tensor<?x{blocks}xf32>, tensor<?x{blocks}xi32>)
    return %v, %c : tensor<?x{blocks}xf32>, tensor<?x{blocks}xi32>
  }}
}}
""")
        logits = np.float64(x) @ np.float64(w).T
        folder = compiled(model)
        with Package(folder).open({"w": w}) as opened:
            first = None
            for threads in (1, 2, 3):
                with opened.session(threads=threads) as session:
                    results = session.run("f", {"x": x}, ["v", "c"])
                    first = first or results
                    for rows in (1, 3, 37, 250):
                        part = session.run("f", {"x": x[:rows]}, ["v", "c"])
                        for name in "vc":
                            self.assertTrue(same_bits(part[name], first[name][:rows]), (threads, rows))
        columns = first["c"].view(np.int32)
        for block in range(blocks):
            of = logits[:, block * BLOCK : (block + 1) * BLOCK]
            largest = np.sort(of, -1)
            clear = largest[:, -1] - largest[:, -2] > 1e-4
            self.assertTrue(np.all((columns[:, block] == block * BLOCK + of.argmax(-1))[clear]))
            np.testing.assert_allclose(first["v"][:, block], largest[:, -1], rtol=0, atol=1e-4)

    # Greedy decoding of golden models, whose logits another implementation computed, by an entry that gives tokens.
    def test_golden(self):
        for case in ("gpt2-hf", "gpt2-hf-bf16", "gpt2-hf-f16-sharded", "llama-hf", "llama-hf-bf16-sharded", "llama-gguf-f32", "llama-gguf-f16",
                     "llama-gguf-bf16", "llama-gguf-q8-0", "llama-gguf-q4-0", "llama-gguf-q4-1"):
            for level in (2, 0):
                with self.subTest(case=case, level=level):
                    self.greedy(case, level)

    def greedy(self, case, level):
        folder = compiled(choosing(case), level)
        listed = manifest(folder)
        argument = listed["entries"][0]["inputs"][0]["name"]
        self.assertEqual(sum("argmax" in kernel["name"] for kernel in listed["kernels"]), 2 if level else 1)
        # The logits are no tensor of the package.
        vocab = golden(case)["model"]["vocab"]
        self.assertEqual(any(["d0", vocab] == result["shape"] for kernel in listed["kernels"] for result in kernel["results"]), level == 0)
        with Package(folder).open() as opened, opened.session() as session:
            run = lambda ids: session.run("forward", {argument: np.array(ids, np.int32)}, ["next"])["next"].view(np.int32).tolist()
            for prompt in golden(case)["prompts"]:
                expected = np.load(os.path.join(GOLDEN, case, prompt["logits"]))
                largest = np.sort(expected, -1)
                clear = largest[:, -1] - largest[:, -2] > 1e-3
                self.assertGreater(clear.sum(), 0.9 * len(clear))
                self.assertTrue(np.all((run(prompt["ids"]) == expected.argmax(-1))[clear]))
                greedy = prompt.get("greedy")
                if not greedy:
                    continue
                ids = list(prompt["ids"])
                until = min(greedy["ambiguous_at"], default=len(greedy["tokens"]))
                for token in greedy["tokens"][:until]:
                    self.assertEqual(run(ids)[-1], token)
                    ids.append(token)


if __name__ == "__main__":
    main()
