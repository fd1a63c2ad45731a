"""GEMMs and what is fused into them, at -O0 and -O2: every gate and epilogue, packed weights of every layout."""
import numpy as np

from cases import Case, check_all, tensor
from fusion_numpy import ACTIVATIONS, Numbers, attend, heads, inf, merged, nan, rope
from harness import main, same_bits


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
        for (kind, beta), K, N, lanes in ((("layer", True), 40, 960, 1), (("layer", False), 33, 480, 2), (("rms", False), 16, 1000, 1), (("rms", False), 7, 944, 1),
                                           (("sample", True), 24, 960, 1), (("sample", False), 5, 944, 1)):
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
                x[4] *= np.float32(1e-3)  # where eps counts
                deviation = x - (np.float64(x).mean(-1, keepdims=True) if kind != "rms" else 0)
                square = (deviation ** 2).sum(-1, keepdims=True)
                n = deviation / (np.sqrt(square / (K - 1)) + 1e-3 if kind == "sample" else np.sqrt(square / K + 1e-3)) * d["g"] + d.get("b", 0)
                expected = n @ d["w"].T * (n @ d["v"].T if lanes == 2 else 1)
                whole = entry(x=x)["out" if lanes == 2 else "y"]
                self.close(whole, expected, 3e-5)
                for first, rows in ((0, 1), (3, 1), (5, 3), (2, 5), (1, 13), (0, 33)):
                    self.assertTrue(same_bits(entry(x=x[first : first + rows])["out" if lanes == 2 else "y"], whole[first : first + rows]))
                self.gemms(entry, 1 if entry.level else lanes)
                self.assertEqual(entry.kernels().get("norm", 0), 0 if entry.level and N * lanes >= 960 else 1)

            cases.append(Case({"x": X}, arrays, f"""
    %n = gpt.{"rms" if kind == "rms" else "layer"}_norm {operands} {"sample" if kind == "sample" else ""} eps 1.0e-3 : {X}, {vectors}
    %y = gpt.linear %n, %w : {X}, tensor<{N}x{K}xf32> -> {Y}{second}""", {"out" if lanes == 2 else "y": Y}, check))
        check_all(self, cases, ((2,), (0,), (2, "-march=x86-64"), (2, "-march=x86-64-v3")))

    # In the last row probabilities are too small for f32; their logarithms are not.
    def test_log_softmax(self):
        cases = []
        for n in (1, 2, 15, 17, 300):
            x = self.random(8, n, seed=n) * np.float32(10)
            x[1] = 3
            x[2, : n // 2] = -inf
            x[3] = -inf
            x[4] += np.float32(1e4)
            x[5, 0] = nan
            x[7, 1:] -= np.float32(300)
            d = np.float64(x) - np.where(np.isinf(x.max(-1)), 0, x.max(-1))[:, None]
            with np.errstate(divide="ignore"):
                expected = d - np.where(x.max(-1) == -inf, 0, np.log(np.exp(d).sum(-1)))[:, None]

            def check(entry, x=x, expected=expected):
                y = entry(x=x)["y"]
                self.assertTrue(np.isnan(y[5]).all())
                hidden = np.isinf(expected)
                self.assertTrue((y[hidden] == -inf).all())
                self.assertTrue(np.isfinite(y[~hidden & ~np.isnan(expected)]).all())
                self.close(np.where(hidden, 0, y)[[0, 1, 2, 3, 4, 6, 7]], np.where(hidden, 0, expected)[[0, 1, 2, 3, 4, 6, 7]], 1e-6)
                self.assertTrue(same_bits(entry(x=x[6:7])["y"], y[6:7]))
                self.assertEqual(entry.kernels(), {"softmax": 1})

            T = tensor(("?", n))
            cases.append(Case({"x": T}, {}, f"    %y = gpt.log_softmax %x : {T}", {"y": T}, check))
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


if __name__ == "__main__":
    main()
