"""Attention in the cases of public bug reports (B01 ...), with their numbers, at -O0 and -O2."""
import itertools

import numpy as np

from attention_graphs import CAUSAL, LEVELS, AttentionTest, Entry, attention, attention_text, oracle, tensor
from attention_reports import reports, stale_keys
from cases import check_all
from harness import main, run, same_bits, written


class Reports(AttentionTest):
    """Cases of public reports: bottom-right masks, tails, empty rows, range, head sizes, groups, views, users, scales."""

    def test_b01_to_b07(self):
        for level in LEVELS:
            check_all(self, reports(self, level), ((level,),))

    def test_b02_stale_keys(self):
        for level in LEVELS:
            stale_keys(self, level)

    def test_b07_wrong_groups(self):
        for heads, kv_heads, groups, message in ((6, 4, 2, "expected heads of b to be 3, got 4"), (6, 4, 4, "expected groups to divide the 6 heads of a, got 4"),
                                                 (6, 0, 1, "expected heads of b to be 6, got 0"), (2, 4, 1, "expected heads of b to be 2, got 4")):
            q, k, s = tensor((heads, 1, 8)), tensor((kv_heads, 1, 8)), tensor((heads, 1, 1))
            text = f"func.func @f(%q: {q}, %k: {k}) -> {s} {{\n  %s = gpt.matmul %q, %k transpose_b groups {groups} : {q}, {k} -> {s}\n  return %s : {s}\n}}"
            done = run("gptc", written(text), "--emit=gpt", status=1)
            self.assertIn(message, done.stderr)

    def test_b09_packed_views(self):
        body = "    %q, %k, %v1 = gpt.split %x : tensor<2x3x18xf32> -> tensor<2x3x6xf32>, tensor<2x3x6xf32>, tensor<2x3x6xf32>\n" + "".join(
            f"    %{a}h = gpt.split_heads %{a} : tensor<2x3x6xf32> -> tensor<2x3x3x2xf32>\n" for a in ("q", "k", "v1"))
        for level in LEVELS:
            text = body + attention_text(3, 3, 3, 3, 2, CAUSAL, (2,), "%qh", "%kh").replace("%v", "%v1h").replace("%out", "%o") \
                + "\n    %out = gpt.merge_heads %o : tensor<2x3x3x2xf32> -> tensor<2x3x6xf32>"
            entry = Entry(level, {"x": (2, 3, 18)}, text, {"out": (2, 3, 6)})
            self.fused(entry, level)
            b, s, h = np.ogrid[:2, :3, :3]
            v = np.repeat(100 * b + 10 * h + s, 2, axis=2).astype(float)
            x = np.concatenate([np.zeros((2, 3, 6)), np.random.default_rng(1).normal(size=(2, 3, 6)), v], axis=-1)
            got = entry(x=x)
            self.close(got, np.repeat(100 * b + 10 * h + s / 2, 2, axis=2))
            self.close(got[1, :, 4], [120, 120.5, 121])
            self.assertTrue(same_bits(got, entry(x=x, threads=2)))

    def test_b19_values_with_another_user(self):
        rope = "    %r = gpt.rope %k, %pos <base 1.0e4, pairs half, dim 4> : !k, tensor<5xi32>\n----\n"
        random = np.random.default_rng(3)
        arrays = {name: random.normal(size=(2, 5, 4)) for name in "qkv"}
        arrays["pos"] = np.arange(5, dtype=np.int32)
        scaled = "    %t = gpt.scale %s by 0.5 : !s\n    %m = gpt.causal_mask %t : !s"
        found = {}
        for extra, shape, fuses in (("s", (2, 5, 5), False), ("m", (2, 5, 5), False), ("p", (2, 5, 5), False), ("r", (2, 5, 4), True)):
            for level in LEVELS:
                text = attention_text(2, 2, 5, 5, 4, rope + scaled, k="%r")
                entry = Entry(level, {"q": (2, 5, 4), "k": (2, 5, 4), "v": (2, 5, 4), "pos": ((5,), "i32")}, text, {"out": (2, 5, 4), extra: shape})
                counts = entry.kernels()
                if level and fuses:
                    self.fused(entry, level)
                else:
                    self.assertEqual((counts.get("attention", 0), counts["matmul"]), (0, 2), counts)
                found[level] = entry(**arrays)
            for name in ("out", extra):
                finite = np.isfinite(found[0][name])
                self.assertTrue(np.array_equal(finite, np.isfinite(found[2][name])))
                self.close(found[2][name][finite], found[0][name][finite], 1e-6)
            # Independent of both paths: angle = position * base^(-2i / D), pairs (i, i + 2).
            angle = np.arange(5)[:, None] * np.array([1, 1e4 ** -0.5])
            a, b = arrays["k"][..., :2], arrays["k"][..., 2:]
            k = np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)
            self.close(found[2]["out"], oracle(arrays["q"], k, arrays["v"], 0.5, causal=True))

    def test_b20_scales(self):
        half = 0.5 ** 0.5
        once, none, twice = 0.8807971, 0.9820138, 0.7310586
        spellings = {
            "absent": ("", {}, none),
            "after the product": ("    %m = gpt.scale %s by 0.5 : !s", {}, once),
            "a product with a constant": ("    %c = arith.constant dense<0.5> : !s\n    %m = arith.mulf %c, %s : !s", {}, once),
            "a division": ("    %c = arith.constant dense<2.0> : !s\n    %m = arith.divf %s, %c : !s", {}, once),
            "folded in q": ("    %c = arith.constant dense<0.5> : !q\n    %qs = arith.mulf %q, %c : !q\n----\n", {"q": "%qs"}, once),
            "on q and on the scores": ("    %qs = gpt.scale %q by 0.5 : !q\n----\n    %m = gpt.scale %s by 0.5 : !s", {"q": "%qs"}, twice),
            "split over q and k": (f"    %qs = gpt.scale %q by {half!r} : !q\n    %ks = gpt.scale %k by {half!r} : !k\n----\n", {"q": "%qs", "k": "%ks"}, once),
            "on k, negated twice": ("    %ks = gpt.scale %k by -0.5 : !k\n----\n    %m = arith.negf %s : !s", {"k": "%ks"}, once),
            "a scalar at run time": ("    %w = gpt.broadcast %t like %s : tensor<f32>, !s -> !s\n    %m = arith.mulf %s, %w : !s", {"more": {"t": ()}}, once),
            "a tensor at run time": ("    %w = gpt.broadcast %t like %s : tensor<1x1x1xf32>, !s -> !s\n    %m = arith.mulf %w, %s : !s",
                                     {"more": {"t": (1, 1, 1)}}, once),
            "an extracted number": ("    %e = tensor.extract %t[] : tensor<f32>\n    %w = tensor.splat %e : !s\n    %m = arith.mulf %s, %w : !s", {"more": {"t": ()}}, once),
            "zero": ("    %m = gpt.scale %s by 0.0 : !s", {}, 0.5),
        }
        for (name, (middle, keywords, expected)), level in itertools.product(spellings.items(), LEVELS):
            with self.subTest(name, level=level):
                entry = attention(level, 1, 1, 1, 2, 4, middle, **keywords)
                self.fused(entry, level)
                arrays = {"q": np.ones((1, 1, 4)), "k": [[[1] * 4, [0] * 4]], "v": [[[1] * 4, [0] * 4]]}
                if "more" in keywords:
                    shape = keywords["more"]["t"]
                    self.close(entry(t=np.full(shape, 0.25), **arrays), np.full((1, 1, 4), twice))
                    arrays["t"] = np.full(shape, 0.5)
                self.close(entry(**arrays), np.full((1, 1, 4), expected))

    def test_b20_scaled_q_with_another_user(self):
        for level in LEVELS:
            text = attention_text(1, 1, 1, 2, 4, "    %qs = gpt.scale %q by 0.5 : !q\n    %extra = gpt.silu %qs : !q\n----\n", q="%qs", last="%s")
            entry = Entry(level, {"q": (1, 1, 4), "k": (1, 2, 4), "v": (1, 2, 4)}, text, {"out": (1, 1, 4), "extra": (1, 1, 4)})
            self.fused(entry, level)
            got = entry(q=np.ones((1, 1, 4)), k=[[[1] * 4, [0] * 4]], v=[[[1] * 4, [0] * 4]])
            self.close(got["out"], np.full((1, 1, 4), 0.8807971))
            self.close(got["extra"], np.full((1, 1, 4), 0.5 / (1 + np.exp(-0.5))))

    def test_b11_pairs(self):
        c, s = 0.540302, 0.841471
        expected = {"adjacent": ([c, s, 0, 0], [-s, c, 0, 0]), "half": ([c, 0, s, 0], [0, 0.999950, 0, 0.0099998])}
        for level, pairs in itertools.product(LEVELS, expected):
            entry = Entry(level, {"x": (1, "?", 4), "pos": (("?",), "i32")},
                          f"    %out = gpt.rope %x, %pos <base 1.0e4, pairs {pairs}, dim 4> : tensor<1x?x4xf32>, tensor<?xi32>", {"out": (1, "?", 4)})
            x = np.eye(4)[None, :2]
            self.close(entry(x=x, pos=np.array([1, 1], np.int32))[0], expected[pairs], 1e-6)
            self.assertTrue(np.array_equal(entry(x=x, pos=np.array([0, 0], np.int32)), x))
            turned = entry(x=np.repeat(x, 50, axis=1)[:, :100], pos=np.arange(100, dtype=np.int32))
            self.close(np.linalg.norm(turned[0], axis=-1), np.ones(100), 1e-6)

    def test_b12_positions_enter_by_their_difference(self):
        rope = "".join(f"    %{x}r = gpt.rope %{x}, %p{x} <base 1.0e4, pairs half, dim 2> : tensor<1x1x2xf32>, tensor<1xi32>\n" for x in "qk")
        for level in LEVELS:
            entry = Entry(level, {"q": (1, 1, 2), "k": (1, 1, 2), "pq": ((1,), "i32"), "pk": ((1,), "i32")},
                          rope + "    %out = gpt.matmul %qr, %kr transpose_b : tensor<1x1x2xf32>, tensor<1x1x2xf32> -> tensor<1x1x1xf32>", {"out": (1, 1, 1)})
            at = lambda p: np.array([p], np.int32)
            self.close(entry(q=[[[1, 0]]], k=[[[1, 0]]], pq=at(7), pk=at(4)), [[[-0.989992]]], 1e-6)


main()
