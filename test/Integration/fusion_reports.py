"""GEMMs and what is fused into them in the cases of public bug reports, with their numbers, at -O0 and -O2."""
import numpy as np

from cases import Case, check_all, tensor
from fusion_numpy import ACTIVATIONS, Numbers, attend, heads, inf, layer_norm, merged, nan, rope
from harness import main, same_bits


class Reports(Numbers):
    # B15, norm cancellation: a mean that is large beside the deviation, behind a GEMM with a residual.
    def test_b15_norms_of_large_numbers(self):
        cases = []
        rows = {"a": np.arange(40000.0, 40004), "b": np.full(256, 1234.0), "c": np.float32(1000 + 0.001 * np.arange(16))}
        for name, row in rows.items():
            n = len(row)
            T = tensor((1, n))
            expected = {"a": [-1.341635, -0.447212, 0.447212, 1.341635], "b": np.zeros(n), "c": layer_norm(np.float64(row), 1e-5)}[name]

            def check(entry, name=name, row=row, expected=expected):
                found = entry(x=np.zeros((1, len(row))), r=row[None])
                self.assertTrue(same_bits(found["s"], np.float32(row[None])))
                self.close(found["n"][0], expected, {"a": 2e-6, "b": 0, "c": 2e-3}[name])
                if name == "c":
                    self.assertLess(abs(found["n"][0, 0] + 1.3416), 0.002)

            # The GEMM adds 0 to the residual, which is the row.
            cases.append(Case({"x": T, "r": T}, {"w": np.eye(n), "g": np.ones(n), "b": np.zeros(n)}, f"""
    %y = gpt.linear %x, %w : {T}, tensor<{n}x{n}xf32> -> {T}
    %s = arith.addf %r, %y : {T}
    %n = gpt.layer_norm %s, %g, %b eps 1.0e-5 : {T}, tensor<{n}xf32>, tensor<{n}xf32>""", {"n": T, "s": T}, check))
        for row, first in ((np.full(768, 300.0), 1.0), (np.zeros(768), 0.0), (np.r_[100.0, np.zeros(4095)], 63.99987)):
            n = len(row)
            T = tensor((1, n))
            check = lambda entry, row=row, first=first: self.assertAlmostEqual(float(entry(x=row[None])["n"][0, 0]), first, delta=2e-5)
            cases.append(Case({"x": T}, {"g": np.ones(n)}, f"    %n = gpt.rms_norm %x, %g eps 1.0e-5 : {T}, tensor<{n}xf32>", {"n": T}, check))
        check_all(self, cases)

    # B02 (c), tails of K: a linear of ones sums K of them, whatever K is.
    def test_b02_all_ones(self):
        cases = []
        for k in (2044, 770, 65, 1):
            X = tensor(("?", k))
            check = lambda entry, k=k: [self.close(entry(x=np.ones((rows, k)))["y"], np.full((rows, 5), k), 0) for rows in (1, 4, 40)]
            cases.append(Case({"x": X}, {"w": np.ones((5, k))}, f"    %y = gpt.linear %x, %w : {X}, tensor<5x{k}xf32> -> tensor<?x5xf32>", {"y": "tensor<?x5xf32>"}, check))
        check_all(self, cases)

    # B16, epsilon: each norm keeps its own, whatever is fused around it; a row of zeros gives beta.
    def test_b16_each_norm_keeps_its_epsilon(self):
        T, C = tensor(("?", 2)), "tensor<2xf32>"
        expected = {"1.0e-12": 0.7071068, "1.0e-5": 3.16228e-4, "1.0e-8": 9.9995e-3}
        norms = "".join(f"""
    %n{i} = gpt.layer_norm %s, %g, %b eps {eps} : {T}, {C}, {C}
    %y{i} = gpt.linear %n{i}, %w : {T}, tensor<2x2xf32> -> {T}""" for i, eps in enumerate(expected))

        def check(entry):
            found = entry(x=[[1e-6, -1e-6], [0, 0]], r=np.zeros((2, 2)))
            self.close(found["s"], [[1e-6, -1e-6], [0, 0]], 1e-12)
            for i, number in enumerate(expected.values()):
                self.close(found[f"y{i}"][0] - np.float32([0.25, -0.5]), [number, -number], 1e-7)
                self.close(found[f"y{i}"][1], [0.25, -0.5], 0)
            self.gemms(entry, 4)

        check_all(self, [Case({"x": T, "r": T}, {"w": np.eye(2), "g": [1, 1], "b": [0.25, -0.5]}, f"""
    %p = gpt.linear %x, %w : {T}, tensor<2x2xf32> -> {T}
    %s = arith.addf %p, %r : {T}{norms}""", {"y0": T, "y1": T, "y2": T, "s": T}, check)])

    # B17, GELU in an epilogue: numbers, tails, signs; a vector body and its tail agree.
    def test_b17_gelu_in_the_epilogue(self):
        x = np.float32([0, 1, -1, 2, -2, -3, -4, -5, -6, -13.24, 21.657723, 100, -100, 1e4, -1e4, inf, -inf, nan])
        at = lambda value: int(np.flatnonzero(x == np.float32(value))[0])
        known = {"erf": {1: 0.8413447, -3: -0.00404969, -6: -5.92e-9}, "tanh": {1: 0.8411920, -3: -0.00363739, -6: -8.44e-11},
                 "quick": {1: 0.8457958, -3: -0.0180713}}
        found, cases = {}, []
        body = """
    %y = gpt.linear %x, %w : tensor<1x1xf32>, tensor<{n}x1xf32> -> {T}
    %g = gpt.gelu {kind} %y : {T}"""
        for kind, numbers in known.items():
            T = tensor((1, len(x)))

            def check(entry, kind=kind, numbers=numbers):
                result = entry(x=[[1]])
                g = result["g"][0]
                self.gemms(entry, 1)
                self.assertTrue(np.array_equal(result["y"][0], x, equal_nan=True))
                for value, number in numbers.items():
                    self.assertAlmostEqual(float(g[at(value)]), number, delta=abs(number) * 2e-2 if abs(number) < 1e-7 else 2e-7 + 2e-5 * abs(number))
                self.assertEqual((g[at(21.657723)], g[at(1e4)], g[at(inf)]), (np.float32(21.657723), np.float32(1e4), inf))
                for value in (0, -100, -1e4, -inf):
                    self.assertEqual(g[at(value)], 0, (kind, value))
                self.assertTrue(np.isnan(g[-1]))
                self.assertEqual(found.setdefault(kind, g.tobytes()), g.tobytes(), "the epilogue changes bits")

            # One summand: 1 * x.
            cases.append(Case({"x": tensor((1, 1))}, {"w": x[:, None]}, body.format(n=len(x), T=T, kind=kind), {"g": T, "y": T}, check))
        for n in (1, 7, 8, 15, 16, 17, 33):
            T = tensor((1, n))
            check = lambda entry: self.assertEqual(len(set(entry(x=[[1]])["g"][0].tolist())), 1, "body and tail differ")
            cases.append(Case({"x": tensor((1, 1))}, {"w": np.full((n, 1), -2.7)}, body.format(n=n, T=T, kind="tanh"), {"g": T}, check))
        check_all(self, cases)

    # B19, values with other users: each is a result too, and no GEMM runs twice. QKV of two heads of 8, rope, attention, MLP.
    BODY = """
    %n = gpt.rms_norm %x, %g eps 1.0e-6 : !x, tensor<16xf32>
    %q = gpt.linear %n, %wq : !x, tensor<16x16xf32> -> !x
    %k = gpt.linear %n, %wk : !x, tensor<16x16xf32> -> !x
    %v = gpt.linear %n, %wv : !x, tensor<16x16xf32> -> !x
    %other = gpt.linear %n, %wn : !x, tensor<16x16xf32> -> !x
    %qh = gpt.split_heads %q : !x -> !h
    %kh = gpt.split_heads %k : !x -> !h
    %vh = gpt.split_heads %v : !x -> !h
    %qr = gpt.rope %qh, %pos <base 10000.0, pairs half, dim 8> : !h, tensor<?xi32>
    %kr = gpt.rope %kh, %pos <base 10000.0, pairs half, dim 8> : !h, tensor<?xi32>
    %s = gpt.matmul %qr, %kr transpose_b : !h, !h -> !s
    %ss = gpt.scale %s by 0.5 : !s
    %m = gpt.causal_mask %ss : !s
    %p = gpt.softmax %m : !s
    %o = gpt.matmul %p, %vh : !s, !h -> !h
    %c = gpt.merge_heads %o : !h -> !x
    %a = gpt.linear %c, %wo : !x, tensor<16x16xf32> -> !x
    %sum = arith.addf %x, %a : !x
    %n2 = gpt.rms_norm %sum, %g eps 1.0e-6 : !x, tensor<16xf32>
    %pre = gpt.linear %n2, %wu : !x, tensor<32x16xf32> -> !f
    %act = gpt.gelu tanh %pre : !f
    %down = gpt.linear %act, %wd : !f, tensor<16x32xf32> -> !x
    %out = arith.addf %sum, %down : !x"""

    def test_b19_values_with_other_users(self):
        T = 7
        kinds = {"!x": tensor(("?", 16)), "!h": tensor((2, "?", 8)), "!s": tensor((2, "?", "?")), "!f": tensor(("?", 32))}
        shapes = {"g": (16,), "wq": (16, 16), "wk": (16, 16), "wv": (16, 16), "wn": (16, 16), "wo": (16, 16), "wu": (32, 16), "wd": (16, 32)}
        w = {name: self.random(*shape, seed=i) * (0.25 if len(shape) > 1 else 1) for i, (name, shape) in enumerate(shapes.items())}
        x, pos = self.random(T, 16, seed=9), np.arange(3, 3 + T)
        d = {name: np.float64(array) for name, array in w.items()}
        rms = lambda v: v / np.sqrt((v ** 2).mean(-1, keepdims=True) + 1e-6) * d["g"]
        n = rms(np.float64(x))
        q, k, v, other = (n @ d[name].T for name in ("wq", "wk", "wv", "wn"))
        qr, kr = (rope(heads(value, 2), pos, 1e4, "half", 8) for value in (q, k))
        scores, weights, o = attend(qr, kr, heads(v, 2), 0.5)
        total = np.float64(x) + merged(o) @ d["wo"].T
        pre = rms(total) @ d["wu"].T
        act = ACTIVATIONS["gpt.gelu tanh {}"](pre)
        values = {"s": ("!s", scores * 2), "p": ("!s", weights), "pre": ("!f", pre), "sum": ("!x", total), "kr": ("!h", kr), "kh": ("!h", heads(k, 2)),
                  "q": ("!x", q), "v": ("!x", v), "n": ("!x", n), "other": ("!x", other), "act": ("!f", act)}
        out = total + act @ d["wd"].T
        body = self.BODY
        for short, kind in kinds.items():
            body = body.replace(short, kind)
        cases = []
        for extra in [[], *([name] for name in values), list(values)]:
            other = "other" in extra
            used = body if other else body.replace(next(line for line in body.splitlines() if "%other =" in line), "")

            def check(entry, extra=extra, other=other):
                found = entry(x=x, pos=pos)
                self.close(found["out"], out)
                for name in extra:
                    self.close(found[name], values[name][1])
                # q, k and v are one kernel when fused; none runs twice.
                self.gemms(entry, (4 if entry.level else 6) + other)
                if entry.level:
                    whole = not {"s", "p"} & set(extra)
                    counts = entry.kernels()
                    self.assertEqual((counts.get("attention", 0), counts.get("matmul", 0)), (1, 0) if whole else (0, 2), counts)

            cases.append(Case({"x": kinds["!x"], "pos": "tensor<?xi32>"}, {name: array for name, array in w.items() if other or name != "wn"}, used,
                              {"out": kinds["!x"], **{name: kinds[values[name][0]] for name in extra}}, check))
        check_all(self, cases)

    # B23, broadcasts: what repeats keeps its shape and its numbers, fused or not.
    def test_b23_factors_that_repeat(self):
        # (a) Behind a norm of one channel; the result has the factor's shape.
        cases = [Case({"x": tensor((1, 1)), "like": tensor((1, 2))}, {"one": [1], "gamma": [3, 5]}, """
    %n = gpt.rms_norm %x, %one eps 1.0e-5 : tensor<1x1xf32>, tensor<1xf32>
    %wide = gpt.broadcast %n like %like : tensor<1x1xf32>, tensor<1x2xf32> -> tensor<1x2xf32>
    %g = gpt.broadcast %gamma like %like : tensor<2xf32>, tensor<1x2xf32> -> tensor<1x2xf32>
    %y = arith.mulf %wide, %g : tensor<1x2xf32>""", {"y": tensor((1, 2))}, lambda entry: self.close(entry(x=[[4]], like=[[0, 0]])["y"], [[3, 5]]))]
        S, H = 3, 4
        w, x0 = self.random(H, H, seed=1), self.random(S, H, seed=2)
        y = np.float64(x0) @ np.float64(w).T
        for shape in ((1,), (H,), (1, H), (S, H), (S, 1)):
            for operands in ("%g, %y", "%y, %g"):
                T, gamma = tensor((S, H)), self.random(*shape)

                def check(entry, gamma=gamma):
                    self.close(entry(x=x0, gamma=gamma)["z"], y * gamma)
                    self.gemms(entry, 1)

                cases.append(Case({"x": T, "gamma": tensor(shape)}, {"w": w}, f"""
    %y = gpt.linear %x, %w : {T}, {tensor((H, H))} -> {T}
    %g = gpt.broadcast %gamma like %y : {tensor(shape)}, {T} -> {T}
    %z = arith.mulf {operands} : {T}""", {"z": T}, check))
        # (b) A residual of smaller rank, before a norm; the sum is a result.
        B = S = H = 2
        x = np.broadcast_to(10.0 * np.arange(B)[:, None, None], (B, S, H))
        r = np.arange(S)[:, None] + np.arange(H)
        T = tensor((B, S, H))
        for residual, total in ((r, x + r), (r[None], x + r), (np.arange(H)[None, None], x + np.arange(H))):
            for operands in ("%y, %wide", "%wide, %y"):

                def check(entry, residual=residual, total=total):
                    found = entry(x=x, r=np.float32(residual))
                    self.close(found["s"], total, 0)
                    self.close(found["n"], layer_norm(total, 1e-5))

                cases.append(Case({"x": T, "r": tensor(residual.shape)}, {"w": np.eye(H), "g": np.ones(H), "b": np.zeros(H)}, f"""
    %y = gpt.linear %x, %w : {T}, tensor<{H}x{H}xf32> -> {T}
    %wide = gpt.broadcast %r like %y : {tensor(residual.shape)}, {T} -> {T}
    %s = arith.addf {operands} : {T}
    %n = gpt.layer_norm %s, %g, %b eps 1.0e-5 : {T}, tensor<{H}xf32>, tensor<{H}xf32>""", {"s": T, "n": T}, check))
        check_all(self, cases)


if __name__ == "__main__":
    main()
