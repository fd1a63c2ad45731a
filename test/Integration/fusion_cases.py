"""GEMMs and what is fused into them, at -O0 and -O2: the cases of public bug reports with their numbers, every gate and epilogue, packed
weights of every layout, whole blocks. The oracle is numpy in double and shares nothing with the compiler."""
import os

import numpy as np

from cases import Case, check_all, tensor
from harness import HERE, compiled, main, manifest, same_bits, unittest, written
from package import Package

LEVELS = (2, 0)
inf, nan = np.inf, np.nan
BLOCKS = os.path.join(HERE, "..", "Fusion")


def erf(x):
    """Abramowitz and Stegun's series and continued fraction, in double."""
    x = np.asarray(x, np.float64)
    n = np.arange(0, 110)
    term = lambda v: 2 / np.sqrt(np.pi) * np.sum([(-1.0) ** i * v ** (2 * i + 1) / (np.prod(np.arange(1, i + 1, dtype=np.float64)) * (2 * i + 1)) for i in n])
    return np.vectorize(lambda v: np.sign(v) if abs(v) > 4.5 else term(v), otypes=[float])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "gpt.silu {}": lambda x: x * sigmoid(x),
    "gpt.gelu erf {}": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gpt.gelu tanh {}": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))) / 2,
    "gpt.gelu quick {}": lambda x: x * sigmoid(1.702 * x),
    "arith.maximumf {}, %zero": lambda x: np.maximum(x, 0),
}


def rope(x, positions, base, pairs, rotary):
    """x [H, T, D]."""
    x = np.array(x, np.float64)
    angle = np.asarray(positions, np.float64)[:, None] * base ** (-2.0 * np.arange(rotary // 2) / rotary)
    a, b = (np.arange(rotary // 2), np.arange(rotary // 2) + rotary // 2) if pairs == "half" else (np.arange(0, rotary, 2), np.arange(1, rotary, 2))
    u, v = x[..., a].copy(), x[..., b].copy()
    x[..., a], x[..., b] = u * np.cos(angle) - v * np.sin(angle), v * np.cos(angle) + u * np.sin(angle)
    return x


def attend(q, k, v, scale=1.0, causal=True):
    """q [H, T, D], k and v [G, T, D]; scores, weights and output."""
    k, v = np.repeat(k, len(q) // len(k), 0), np.repeat(v, len(q) // len(v), 0)
    scores = scale * q @ k.transpose(0, 2, 1)
    masked = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -inf) if causal else scores
    weights = np.exp(masked - masked.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return scores, weights, weights @ v


def heads(x, count):
    return x.reshape(len(x), count, -1).transpose(1, 0, 2)


def merged(x):
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def layer_norm(x, eps, gamma=1.0, beta=0.0):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d ** 2).mean(-1, keepdims=True) + eps) * gamma + beta


class Numbers(unittest.TestCase):
    def close(self, got, expected, atol=1e-5):
        got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
        self.assertEqual(got.shape, expected.shape)
        self.assertTrue(np.all(np.abs(got - expected) <= atol * np.maximum(1, np.abs(expected))), f"got {got.ravel()[:12]}, expected {expected.ravel()[:12]}")

    def gemms(self, entry, count):
        self.assertEqual(entry.kernels().get("gemm"), count, entry.kernels())

    def random(self, *shape, seed=0):
        return np.random.default_rng([seed, *shape]).normal(0, 1, shape).astype(np.float32)


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


class Epilogues(Numbers):
    options, layouts = ((2,), (0,)), ("separate", "packed")

    def test_gates(self):
        T, K, N = 40, 12, 19
        x, wg, wu, b = self.random(T, K), self.random(N, K, seed=1), self.random(N, K, seed=2), self.random(N, seed=3)
        X, Y = tensor(("?", K)), tensor(("?", N))
        g, u = np.float64(x) @ np.float64(wg).T + b, np.float64(x) @ np.float64(wu).T
        cases = []
        for op, function in ACTIVATIONS.items():
            zero = f"    %z1 = arith.constant dense<0.0> : tensor<1xf32>\n    %zero = gpt.broadcast %z1 like %g : tensor<1xf32>, {Y} -> {Y}\n" if "zero" in op else ""
            separate = f"""
    %g = gpt.linear %x, %wg bias %b : {X}, {tensor((N, K))}, {tensor((N,))} -> {Y}
    %u = gpt.linear %x, %wu in_out : {X}, {tensor((K, N))} -> {Y}
{zero}    %a = {op.format("%g")} : {Y}
    %h = arith.mulf %u, %a : {Y}"""
            packed = f"""
    %y = gpt.linear %x, %w bias %bb : {X}, {tensor((2 * N, K))}, {tensor((2 * N,))} -> {tensor(("?", 2 * N))}
    %g, %u = gpt.split %y : {tensor(("?", 2 * N))} -> {Y}, {Y}
{zero}    %a = {op.format("%g")} : {Y}
    %h = arith.mulf %a, %u : {Y}"""
            bodies = {"separate": (separate, {"wg": wg, "wu": wu.T, "b": b}), "packed": (packed, {"w": np.r_[wg, wu], "bb": np.r_[b, np.zeros(N)]})}
            for body, weights in (bodies[layout] for layout in self.layouts):
                for results in ({"h": Y}, {"h": Y, "a": Y, "u": Y})[-len(self.layouts):]:

                    def check(entry, results=results, function=function):
                        for rows in (1, 5, T):
                            found = entry(x=x[:rows])
                            for name, expected in zip(results, (function(g) * u, function(g), u)):
                                self.close(found[name], expected[:rows])
                        if entry.level:
                            self.assertEqual(entry.kernels(), {"gemm": 1})

                    cases.append(Case({"x": X}, weights, body, results, check))
        check_all(self, cases, self.options)

    # Squared relu, a written out GELU, a layer scale and a residual on either side: one kernel.
    def test_chains(self):
        T, K, N = 9, 17, 16
        x, w, r, s, b = self.random(T, K), self.random(N, K, seed=1), self.random(T, N), self.random(N, seed=4), self.random(N, seed=5)
        X, Y, S = tensor((T, K)), tensor((T, N)), tensor((N,))
        body = f"""
    %zero = arith.constant dense<0.0> : {Y}
    %one = arith.constant dense<1.0> : {Y}
    %half = arith.constant dense<0.5> : {Y}
    %root = arith.constant dense<0.70710678> : {Y}
    %y0 = gpt.linear %x, %w : {X}, {tensor((N, K))} -> {Y}
    %bs = gpt.broadcast %b like %y0 : {S}, {Y} -> {Y}
    %y = arith.addf %bs, %y0 : {Y}
    %m = arith.maximumf %y, %zero : {Y}
    %sq = arith.mulf %m, %m : {Y}
    %u = arith.mulf %y, %root : {Y}
    %e = math.erf %u : {Y}
    %e1 = arith.addf %one, %e : {Y}
    %h = arith.mulf %half, %y : {Y}
    %g = arith.mulf %h, %e1 : {Y}
    %both = arith.subf %sq, %g : {Y}
    %ss = gpt.broadcast %s like %both : {S}, {Y} -> {Y}
    %t = arith.mulf %ss, %both : {Y}
    %out = arith.addf %r, %t : {Y}"""
        y = np.float64(x) @ np.float64(w).T + b
        g = ACTIVATIONS["gpt.gelu erf {}"](y)

        def check(entry):
            found = entry(x=x, r=r)
            self.close(found["g"], g)
            self.close(found["out"], r + s * (np.maximum(y, 0) ** 2 - g))
            if entry.level:
                self.assertEqual(entry.kernels(), {"gemm": 1})

        check_all(self, [Case({"x": X, "r": Y}, {"w": w, "s": s, "b": b}, body, {"out": Y, "g": Y}, check)], self.options)

    # A norm goes into a wide GEMM that is its only user; few rows and many go different ways there, and a row's bits are its own.
    def test_norms(self):
        cases = []
        for (kind, beta), K, N, lanes in ((("layer", True), 40, 960, 1), (("layer", False), 33, 480, 2), (("rms", False), 16, 1000, 1), (("rms", False), 7, 944, 1)):
            X, Y = tensor(("?", K)), tensor(("?", N))
            arrays = {"g": self.random(K), "w": self.random(N, K, seed=1), "v": self.random(N, K, seed=2), **({"b": self.random(K, seed=3)} if beta else {})}
            operands = "%x, %g" + (", %b" if beta else "")
            vectors = ", ".join([f"tensor<{K}xf32>"] * (1 + beta))
            second = "" if lanes == 1 else f"""
    %z = gpt.linear %n, %v : {X}, tensor<{N}x{K}xf32> -> {Y}
    %out = arith.mulf %y, %z : {Y}"""
            if lanes == 1:
                arrays.pop("v")

            def check(entry, kind=kind, K=K, N=N, lanes=lanes, arrays=arrays):
                d = {name: np.float64(array) for name, array in arrays.items()}
                x = self.random(150, K, seed=4) * np.float32(3) + np.float32(2)
                x[3] = 0
                mean = np.float64(x).mean(-1, keepdims=True) if kind == "layer" else 0
                n = (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-3) * d["g"] + d.get("b", 0)
                expected = n @ d["w"].T * (n @ d["v"].T if lanes == 2 else 1)
                whole = entry(x=x)["out" if lanes == 2 else "y"]
                self.close(whole, expected, 3e-5)
                for first, rows in ((0, 1), (3, 1), (5, 3), (2, 5), (1, 13), (0, 33)):
                    self.assertTrue(same_bits(entry(x=x[first : first + rows])["out" if lanes == 2 else "y"], whole[first : first + rows]))
                self.gemms(entry, 1 if entry.level else lanes)
                self.assertEqual(entry.kernels().get("norm", 0), 0 if entry.level and N * lanes >= 960 else 1)

            cases.append(Case({"x": X}, arrays, f"""
    %n = gpt.{kind}_norm {operands} eps 1.0e-3 : {X}, {vectors}
    %y = gpt.linear %n, %w : {X}, tensor<{N}x{K}xf32> -> {Y}{second}""", {"out" if lanes == 2 else "y": Y}, check))
        check_all(self, cases, ((2,), (0,), (2, "-march=x86-64"), (2, "-march=x86-64-v3")))

    # The lowest index of equal numbers; NaN is below every number.
    def test_argmax(self):
        cases = []
        for n in (1, 2, 15, 16, 17, 33, 300):
            x = np.random.default_rng(n).integers(-3, 4, (40, n)).astype(np.float32)
            x[1], x[2], x[3], x[6] = nan, -inf, 0, nan
            x[4, : n // 2], x[5, n // 2 :], x[6, -1] = nan, nan, -inf
            best = lambda row: max(range(len(row)), key=lambda j: (not np.isnan(row[j]), 0 if np.isnan(row[j]) else row[j], -j))
            check = lambda entry, x=x: self.assertEqual(entry(x=x)["t"].view(np.int32).tolist(), [best(row) for row in x])
            T = tensor(("?", n))
            cases.append(Case({"x": T}, {}, f"    %t = gpt.argmax %x : {T} -> tensor<?xi32>", {"t": "tensor<?xi32>"}, check))
        check_all(self, cases)


class Packed(Numbers):
    # Weights packed by section, head by head, group by group, in both orientations, with and without bias and rope.
    def test_layouts(self):
        T, C, H, D = 6, 24, 4, 8
        x, pos = self.random(T, C), np.arange(T)[::-1].copy()
        cases = []
        for groups in (1, 2):
            G = H // groups
            q, k, v = (self.random(count * D, C, seed=i) * 0.3 for i, count in enumerate((H, G, G)))
            bq, bk, bv = (self.random(count * D, seed=i + 5) for i, count in enumerate((H, G, G)))
            for pairs, rotary in ((None, 0), ("half", 8), ("adjacent", 8), ("half", 4), ("adjacent", 4), ("half", 2)):
                attr = f"<base 100.0, pairs {pairs}, dim {D}{f', rotary {rotary}' if rotary != D else ''}>"
                for bias in (False, True):
                    rows = [np.float64(x) @ np.float64(w).T + bias * np.float64(b) for w, b in ((q, bq), (k, bk), (v, bv))]
                    qh, kh, vh = heads(rows[0], H), heads(rows[1], G), heads(rows[2], G)
                    if pairs:
                        qh, kh = rope(qh, pos, 100.0, pairs, rotary), rope(kh, pos, 100.0, pairs, rotary)
                    expected = merged(attend(qh, kh, vh)[2])
                    for layout in ("sections", "heads", "kv"):
                        if layout == "kv" and (pairs == "adjacent" or bias):
                            continue
                        for in_out in (False, True):
                            cases.append(self.case(x, pos, (q, k, v), (bq, bk, bv), H, G, D, layout, in_out, bias, attr if pairs else None, expected))
        check_all(self, cases)

    def case(self, x, pos, weights, biases, H, G, D, layout, in_out, bias, attr, expected):
        C, per = x.shape[1], H // G
        total = (H + 2 * G) * D
        X, Q, K = tensor(("?", C)), tensor(("?", H * D)), tensor(("?", G * D))
        QH, KH, Y = tensor((H, "?", D)), tensor((G, "?", D)), tensor(("?", total))
        flag = " in_out" if in_out else ""
        turn = lambda w: w.T if in_out else w
        shape = lambda n: tensor((C, n) if in_out else (n, C))
        held = {}
        if layout == "heads":  # for each KV head: its query heads, its key, its value
            def pack(parts):
                return np.concatenate([part for g in range(G) for part in (parts[0][g * per * D:(g + 1) * per * D], parts[1][g * D:(g + 1) * D], parts[2][g * D:(g + 1) * D])])
            held["w"] = turn(pack(weights))
            if bias:
                held["b"] = pack(biases)
            width = (per + 2) * D
            body = f"""
    %y = gpt.linear %x, %w{" bias %b" if bias else ""}{flag} : {X}, {shape(total)}{f", {tensor((total,))}" if bias else ""} -> {Y}
    %h = gpt.split_heads %y : {Y} -> {tensor((G, "?", width))}
    %qs, %kh, %vh = gpt.split %h : {tensor((G, "?", width))} -> {tensor((G, "?", per * D))}, {KH}, {KH}
    %qm = gpt.merge_heads %qs : {tensor((G, "?", per * D))} -> {Q}
    %qh = gpt.split_heads %qm : {Q} -> {QH}"""
        else:
            if layout == "sections":
                held["w"] = turn(np.concatenate(weights))
                if bias:
                    held["b"] = np.concatenate(biases)
                body = f"""
    %y = gpt.linear %x, %w{" bias %b" if bias else ""}{flag} : {X}, {shape(total)}{f", {tensor((total,))}" if bias else ""} -> {Y}
    %q, %k, %v = gpt.split %y : {Y} -> {Q}, {K}, {K}"""
            else:  # queries apart, values before keys
                held = {"wq": weights[0], "wkv": turn(np.concatenate([weights[2], weights[1]]))}
                KV = tensor(("?", 2 * G * D))
                body = f"""
    %kv = gpt.linear %x, %wkv{flag} : {X}, {shape(2 * G * D)} -> {KV}
    %v, %k = gpt.split %kv : {KV} -> {K}, {K}
    %q = gpt.linear %x, %wq : {X}, {tensor((H * D, C))} -> {Q}"""
            body += f"""
    %kh = gpt.split_heads %k : {K} -> {KH}
    %qh = gpt.split_heads %q : {Q} -> {QH}
    %vh = gpt.split_heads %v : {K} -> {KH}"""
        if attr:
            body += f"""
    %qr = gpt.rope %qh, %pos {attr} : {QH}, tensor<?xi32>
    %kr = gpt.rope %kh, %pos {attr} : {KH}, tensor<?xi32>"""
        qn, kn = ("%qr", "%kr") if attr else ("%qh", "%kh")
        group = f" groups {per}" if per > 1 else ""
        S = tensor((H, "?", "?"))
        body += f"""
    %s = gpt.matmul {qn}, {kn} transpose_b{group} : {QH}, {KH} -> {S}
    %m = gpt.causal_mask %s : {S}
    %p = gpt.softmax %m : {S}
    %o = gpt.matmul %p, %vh{group} : {S}, {KH} -> {QH}
    %out = gpt.merge_heads %o : {QH} -> {Q}"""

        def check(entry):
            self.close(entry(x=x, pos=pos)["out"], expected)
            if entry.level:
                counts = entry.kernels()
                self.assertEqual((counts["gemm"], counts["attention"], counts.get("rope", 0)), (1, 1, 1 if attr else 0), counts)

        return Case({"x": X, "pos": "tensor<?xi32>"}, held, body, {"out": Q}, check)


class Blocks(Numbers):
    """The blocks of test/Fusion, as packages with weights from the host: -O2, -O0 and numpy agree."""
    options = (2,), (0,)

    def block(self, name, weights, reference, gemms, edit=lambda text: text):
        tokens = np.random.default_rng(3).integers(0, 96, 21).tolist()
        expected = reference(np.array(tokens), {key: np.float64(w) for key, w in weights.items()})
        with open(os.path.join(BLOCKS, f"block-{name}.mlir"), encoding="utf-8") as f:
            mlir = written(edit(f.read()))
        for level, *more in self.options:
            folder = compiled(mlir, level, *more)
            with Package(folder).open(weights) as model, model.session(sequences=4, tokens=84) as session:
                self.close(session.step(tokens), expected, 5e-5)
                session.step(tokens[:13])
                self.close(session.step(tokens[13:], range(13, 21)), expected[13:], 5e-5)
                self.close(session.step(tokens[20:], [20]), expected[20:], 5e-5)
                self.close(session.step(tokens * 4, [*range(21)] * 4, np.repeat(range(4), 21)), np.tile(expected, (4, 1)), 5e-5)
            kinds = {kernel["name"]: kernel["kind"] for kernel in manifest(folder)["kernels"]}
            called = [kinds[call["kernel"]] for call in manifest(folder)["entries"][0]["calls"]]
            if level:
                self.assertEqual((called.count("gemm"), called.count("attention"), called.count("elementwise")), gemms, called)

    def weights(self, shapes):
        return {name: self.random(*shape, seed=i) * (0.2 if len(shape) > 1 else 1) for i, (name, shape) in enumerate(shapes.items())}

    def test_nanogpt(self):
        w = self.weights({"wte": (96, 64), "wpe": (32, 64), "g": (64,), "b": (64,), "c_attn": (192, 64), "c_attn_b": (192,), "c_proj": (64, 64),
                          "c_fc": (256, 64), "c_fc_b": (256,), "mlp_proj": (64, 256)})

        def reference(tokens, w):
            norm = lambda x: layer_norm(x, 1e-5, w["g"], w["b"])
            x = w["wte"][tokens] + w["wpe"][:len(tokens)]
            q, k, v = (heads(part, 4) for part in np.split(norm(x) @ w["c_attn"].T + w["c_attn_b"], 3, -1))
            x = x + merged(attend(q, k, v, 0.25)[2]) @ w["c_proj"].T + w["b"]
            x = x + ACTIVATIONS["gpt.gelu erf {}"](norm(x) @ w["c_fc"].T + w["c_fc_b"]) @ w["mlp_proj"].T + w["b"]
            return norm(x) @ w["wte"].T

        self.block("nanogpt", w, reference, (5, 1, 1))

    LLAMA = {"emb": (96, 64), "attn_norm": (64,), "ffn_norm": (64,), "wq": (64, 64), "wk": (64, 32), "wv": (32, 64), "wo": (64, 64), "w1": (160, 64),
             "w2": (64, 160), "w3": (160, 64)}

    @staticmethod
    def llama(tokens, w):
        norm = lambda x, g: x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * w[g]
        at = np.arange(len(tokens))
        x = w["emb"][tokens]
        n = norm(x, "attn_norm")
        q, k = (rope(heads(n @ w[name], count), at, 5e5, "half", 16) for name, count in (("wq", 4), ("wk", 2)))
        v = n @ w["wv"].T
        x = x + merged(attend(q, k, heads(v, 2), 0.25)[2]) @ w["wo"].T
        if "wx" in w:
            x = x + merged(k) @ w["wx"].T + 0.5 * n @ w["wk"] @ w["wx"].T + v @ w["wx"].T
        n = norm(x, "ffn_norm")
        x = x + (ACTIVATIONS["gpt.silu {}"](n @ w["w1"].T) * (n @ w["w3"].T)) @ w["w2"].T
        return norm(x, "attn_norm") @ w["emb"].T

    def test_llama(self):
        self.block("llama", self.weights(self.LLAMA), self.llama, (5, 1, 0))

    # B19 in a step: keys before and after the rope, and values, go to the cache and to another projection.
    def test_keys_and_values_with_other_users(self):
        def edit(text):
            text = text.replace("  func.func @forward", "  ml_program.global private @wx(#ml_program.extern<tensor<64x32xf32>>) : tensor<64x32xf32>\n  func.func @forward")
            return text.replace("    %x1 = arith.addf %a, %x : tensor<?x64xf32>", """
    %wx = ml_program.global_load_const @wx : tensor<64x32xf32>
    %km = gpt.merge_heads %kr : tensor<2x?x16xf32> -> tensor<?x32xf32>
    %kx = gpt.linear %km, %wx : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    %k0 = gpt.linear %k, %wx : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    %k0x = gpt.scale %k0 by 0.5 : tensor<?x64xf32>
    %vx = gpt.linear %v, %wx : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    %xk = arith.addf %x, %kx : tensor<?x64xf32>
    %xkk = arith.addf %xk, %k0x : tensor<?x64xf32>
    %xkv = arith.addf %xkk, %vx : tensor<?x64xf32>
    %x1 = arith.addf %a, %xkv : tensor<?x64xf32>""")

        self.block("llama", self.weights({**self.LLAMA, "wx": (64, 32)}), self.llama, (8, 1, 0), edit)

    def test_gptj(self):
        w = self.weights({"wte": (96, 64), "g": (64,), "b": (64,), "q_proj": (64, 64), "k_proj": (64, 64), "v_proj": (64, 64), "out_proj": (64, 64),
                          "fc_in": (256, 64), "fc_in_b": (256,), "fc_out": (64, 256), "head_b": (96,)})

        def reference(tokens, w):
            norm = lambda x: layer_norm(x, 1e-5, w["g"], w["b"])
            at = np.arange(len(tokens))
            x = w["wte"][tokens]
            n = norm(x)
            q, k = (rope(heads(n @ w[name].T, 4), at, 1e4, "adjacent", 8) for name in ("q_proj", "k_proj"))
            attention = merged(attend(q, k, heads(n @ w["v_proj"].T, 4), 0.25)[2]) @ w["out_proj"].T
            x = x + attention + ACTIVATIONS["gpt.gelu tanh {}"](n @ w["fc_in"].T + w["fc_in_b"]) @ w["fc_out"].T + w["b"]
            return norm(x) @ w["wte"].T + w["head_b"]

        self.block("gptj", w, reference, (5, 1, 0))

    def test_annotated_transformer(self):
        w = self.weights({"wq": (64, 64), "wk": (64, 64), "wv": (64, 64), "wo": (64, 64), "w1": (256, 64), "w2": (64, 256), "b": (64,), "b1": (256,), "a_2": (64,)})
        x = self.random(11, 64, seed=50)
        mask = np.where(np.random.default_rng(4).random((11, 11)) < 0.3, -1e9, 0).astype(np.float32)
        np.fill_diagonal(mask, 0)
        d = {name: np.float64(array) for name, array in w.items()}
        q, k, v = (heads(np.float64(x) @ d[name].T + d["b"], 8) for name in ("wq", "wk", "wv"))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(8) + np.float64(mask)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        norm = lambda y: layer_norm(y, 1e-6, d["a_2"], d["b"])
        x1 = norm(np.float64(x) + merged(weights @ v) @ d["wo"].T + d["b"])
        expected = norm(x1 + np.maximum(x1 @ d["w1"].T + d["b1"], 0) @ d["w2"].T + d["b"])
        for level in LEVELS:
            folder = compiled(os.path.join(BLOCKS, "block-annotated-transformer.mlir"), level)
            with Package(folder).open(w) as model, model.session() as session:
                self.close(session.run("layer", {"x": x, "mask": mask}, ["y"])["y"], expected, 5e-5)


if __name__ == "__main__":
    main()
