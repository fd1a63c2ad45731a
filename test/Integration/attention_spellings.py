"""Every spelling of masks and scales, windows, softcap and ALiBi, at -O0 and -O2, against numpy; over named tensors and
over the KV cache."""
import itertools

import numpy as np

from attention_graphs import LEVELS, AttentionTest, attention, inf, oracle, tensor
from harness import compiled, main, manifest, run, same_bits, written
from package import Package


class Spellings(AttentionTest):
    """Masks, windows, softcap and ALiBi against numpy; fused, unfused, on one and two threads."""

    def check(self, middle, more=None, given=None, heads=4, kv_heads=2, sizes=((5, 5), (1, 70), (70, 70), (3, 200), (130, 131), (9, 4)), d=8,
              dynamic=True, fuses=True, mask=None, q_scale=1.0, **meaning):
        random = np.random.default_rng(5)
        for level, (sq, sk) in itertools.product(LEVELS, sizes):
            shape = ("?", "?") if dynamic else (sq, sk)
            entry = attention(level, heads, kv_heads, *shape, d, middle(sq, sk) if callable(middle) else middle, more=more)
            if fuses:
                self.fused(entry, level)
            arrays = {"q": random.normal(size=(heads, sq, d)) * q_scale, "k": random.normal(size=(kv_heads, sk, d)), "v": random.normal(size=(kv_heads, sk, d))}
            extra = given(random, sq, sk) if given else {}
            rounded = {name: np.asarray(x, np.float32).astype(np.float64) for name, x in arrays.items()}
            expected = oracle(*rounded.values(), mask=mask(extra, sq, sk) if mask else None, **meaning)
            got = entry(**arrays, **extra)
            with self.subTest(level=level, sq=sq, sk=sk):
                self.close(got, expected, 2e-5 * max(1.0, q_scale))
                self.assertTrue(same_bits(got, entry(**arrays, **extra, threads=2)))

    def test_window(self):
        for window in (1, 3, 64, 100, 2**31, 2**63 - 1):
            self.check(f"    %m = gpt.causal_mask %s window {window} : !s", causal=True, window=min(window, 1000))

    def test_softcap(self):
        self.check("    %t = gpt.scale %s by 0.35355339059327379 : !s\n    %c = gpt.softcap %t at 5.0 : !s\n    %m = gpt.causal_mask %c : !s",
                   scale=8 ** -0.5, cap=5.0, causal=True, q_scale=5.0)

    def test_softcap_spelled_out(self):
        self.check(lambda sq, sk: "    %t = gpt.scale %s by 0.02 : !s\n    %h = math.tanh %t : !s\n    %c = gpt.scale %h by 50.0 : !s\n    %m = gpt.causal_mask %c : !s",
                   cap=50.0, causal=True, q_scale=20.0)

    def test_alibi(self):
        slopes = [2.0 ** -i for i in (2, 4, 6, 8)]
        self.check(f"    %b = gpt.alibi %s slopes {slopes} : !s\n    %m = gpt.causal_mask %b : !s", slopes=slopes, causal=True)
        self.check(f"    %m = gpt.alibi %s slopes {slopes} : !s", slopes=slopes)

    def test_everything_together(self):
        slopes = [0.5, 0.25, 0.0, -0.125]
        for batch in (False, True):
            mask_type = tensor(("?", "?"), "i1")
            self.check(f"    %t = gpt.scale %s by 0.5 : !s\n    %c = gpt.softcap %t at 3.0 : !s\n    %b = gpt.alibi %c slopes {slopes} : !s\n"
                       f"    %w = gpt.mask %b, %mask : !s, {mask_type}\n    %m = gpt.causal_mask %w window 20 : !s",
                       more={"mask": (("?", "?"), "i1")}, given=lambda r, sq, sk: {"mask": r.random((sq, sk)) < 0.7}, mask=lambda extra, sq, sk: extra["mask"],
                       scale=0.5, cap=3.0, slopes=slopes, causal=True, window=20)

    def test_additive_masks(self):
        masks = {("?", "?"): lambda r, sq, sk: r.normal(size=(sq, sk)), (4, "?", "?"): lambda r, sq, sk: np.where(r.random((4, sq, sk)) < 0.3, -inf, 1.0),
                 ("?",): lambda r, sq, sk: np.where(r.random(sk) < 0.3, -inf, 0), (4, 1, "?"): lambda r, sq, sk: r.normal(size=(4, 1, sk)),
                 ("?", 1): lambda r, sq, sk: np.where(r.random((sq, 1)) < 0.3, -inf, 0)}
        for shape, make in masks.items():
            self.check(f"    %m = gpt.mask %s, %mask : !s, {tensor(shape)}", more={"mask": shape}, given=lambda r, sq, sk: {"mask": make(r, sq, sk)},
                       mask=lambda extra, sq, sk: np.asarray(extra["mask"], np.float32).astype(np.float64), sizes=((5, 5), (70, 131), (1, 3)))

    def test_additive_mask_as_a_sum(self):
        self.check("    %w = gpt.broadcast %mask like %s : tensor<?x?xf32>, !s -> !s\n    %c = gpt.causal_mask %s : !s\n    %m = arith.addf %w, %c : !s",
                   more={"mask": ("?", "?")}, given=lambda r, sq, sk: {"mask": r.normal(size=(sq, sk)).astype(np.float32)},
                   mask=lambda extra, sq, sk: extra["mask"].astype(np.float64), causal=True)

    def test_additive_mask_of_two_numbers(self):
        self.check("    %z = arith.constant dense<0.0> : !s\n    %n = arith.constant dense<0xFF800000> : !s\n"
                   "    %b = arith.select %mask, %z, %n : tensor<4x3x5xi1>, !s\n    %m = arith.addf %s, %b : !s", more={"mask": ((4, 3, 5), "i1")}, dynamic=False,
                   given=lambda r, sq, sk: {"mask": r.random((4, sq, sk)) < 0.7}, mask=lambda extra, sq, sk: extra["mask"], sizes=((3, 5),))

    def test_boolean_padding_beside_causal(self):
        self.check("    %c = gpt.causal_mask %s : !s\n    %m = gpt.mask %c, %mask : !s, tensor<?xi1>", more={"mask": (("?",), "i1")},
                   given=lambda r, sq, sk: {"mask": r.random(sk) < 0.7}, mask=lambda extra, sq, sk: extra["mask"], causal=True)

    def test_subtracted_mask(self):
        self.check("    %w = gpt.broadcast %mask like %s : tensor<?x?xf32>, !s -> !s\n    %m = arith.subf %s, %w : !s", more={"mask": ("?", "?")},
                   given=lambda r, sq, sk: {"mask": np.where(r.random((sq, sk)) < 0.3, 1e9, r.normal(size=(sq, sk)))},
                   mask=lambda extra, sq, sk: -np.asarray(extra["mask"], np.float32).astype(np.float64), sizes=((5, 5), (70, 131), (1, 3)))

    def test_several_masks(self):
        # Causal and padding as the tensors that other runtimes hand over; rows and columns, of which neither has the dimensions of the other.
        lower = lambda sq, sk: np.arange(sk) <= np.arange(sq)[:, None] + sk - sq
        add = lambda visible: np.where(visible, 0, -inf)
        inputs = {"causal": (("?", "?"), "f32", lambda r, sq, sk: add(lower(sq, sk))), "see": (("?", "?"), "i1", lambda r, sq, sk: lower(sq, sk)),
                  "pad": (("?",), "f32", lambda r, sq, sk: add(np.arange(sk) < max(1, sk - 2))), "keep": ((1, "?"), "i1", lambda r, sq, sk: np.arange(sk)[None] < max(1, sk - 2)),
                  "bias": ((4, "?", "?"), "f32", lambda r, sq, sk: r.normal(size=(4, sq, sk))), "rows": (("?", 1), "f32", lambda r, sq, sk: add(np.arange(sq)[:, None] != 1))}
        for names in (("causal", "pad"), ("pad", "see"), ("see", "pad"), ("keep", "see"), ("pad", "causal", "bias"), ("rows", "pad"), ("bias", "keep", "rows", "see")):
            lines, last = [], "%s"
            for i, name in enumerate(names):
                lines.append(f"    %{'m' if i == len(names) - 1 else f'm{i}'} = gpt.mask {last}, %{name} : !s, {tensor(inputs[name][0], inputs[name][1])}")
                last = f"%m{i}"
            given = lambda r, sq, sk, names=names: {name: np.asarray(inputs[name][2](r, sq, sk), bool if inputs[name][1] == "i1" else np.float32) for name in names}
            total = lambda extra, sq, sk: sum(add(x) if x.dtype == bool else x.astype(np.float64) for x in extra.values())
            self.check("\n".join(lines), more={name: inputs[name][:2] for name in names}, given=given, mask=total, sizes=((5, 5), (70, 131), (1, 3)))

    def masked(self, lines, masks, oracle_of, sizes=((5, 5), (70, 131), (3, 9)), atol=2e-5):
        """Attention with `lines` between, the scores of numpy through `oracle_of`; masks: name -> (shape, element, maker)."""
        random = np.random.default_rng(17)
        for level, (sq, sk) in itertools.product(LEVELS, sizes):
            entry = attention(level, 2, 2, "?", "?", 8, lines, more={name: spec[:2] for name, spec in masks.items()})
            self.fused(entry, level)
            q, k, v = (random.normal(size=(2, n, 8)).astype(np.float32) for n in (sq, sk, sk))
            given = {name: spec[2](random, sq, sk) for name, spec in masks.items()}
            with np.errstate(invalid="ignore"):
                scores = oracle_of(q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2), **given)
                largest = scores.max(-1, keepdims=True)
                weights = np.exp(scores - np.where(largest == -inf, 0, largest))
                expected = weights @ v / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
            got = np.asarray(entry(q=q, k=k, v=v, **given), np.float64)
            self.assertTrue(np.array_equal(np.isnan(got), np.isnan(expected)), f"-O{level} {sq} {sk}")
            known = ~np.isnan(expected)
            self.close(got[known], expected[known], atol)

    def test_masks_keep_their_order(self):
        numbers = (("?", "?"), "f32", lambda r, sq, sk: r.normal(size=(sq, sk)).astype(np.float32))
        see = (("?", "?"), "i1", lambda r, sq, sk: r.random((sq, sk)) < 0.6)
        keep = (("?",), "i1", lambda r, sq, sk: r.random(sk) < 0.6)
        bits, keys = tensor(("?", "?"), "i1"), tensor(("?",), "i1")
        # What fills with a finite number, below and behind what is added.
        self.masked(f"    %a = gpt.mask %s, %see fill -2.0 : !s, {bits}\n    %m = gpt.mask %a, %add : !s, tensor<?x?xf32>", {"see": see, "add": numbers},
                    lambda s, see, add: np.where(see, s, -2) + add)
        self.masked(f"    %a = gpt.mask %s, %add : !s, tensor<?x?xf32>\n    %m = gpt.mask %a, %see fill -2.0 : !s, {bits}", {"see": see, "add": numbers},
                    lambda s, see, add: np.where(see, s + add, -2))
        # Between two that fill alike: the second was scaled with the scores.
        self.masked(f"    %a = gpt.mask %s, %keep fill -4.0 : !s, {keys}\n    %h = gpt.scale %a by 0.5 : !s\n    %b = gpt.mask %h, %add : !s, tensor<?x?xf32>\n"
                    f"    %c = gpt.mask %b, %see fill -2.0 : !s, {bits}\n    %m = gpt.mask %c, %add : !s, tensor<?x?xf32>", {"see": see, "add": numbers, "keep": keep},
                    lambda s, see, add, keep: np.where(see, np.where(keep, s, -4) / 2 + add, -2) + add)

    def test_masks_with_nan(self):
        # A boolean mask hides a NaN that was added before; one that is added behind it shows, and is hidden by the causal mask wherever that stands.
        def some(number):
            def make(r, sq, sk):
                mask = r.normal(size=(sq, sk)).astype(np.float32)
                mask[1, 1] = mask[0, sk - 1] = number
                return mask
            return make

        def see(r, sq, sk):
            mask = np.ones((sq, sk), bool)
            mask[1, 1] = mask[0, sk - 1] = False
            return mask
        bits = tensor(("?", "?"), "i1")
        boolean, numbers = (("?", "?"), "i1", see), (("?", "?"), "f32", some(np.nan))
        self.masked(f"    %a = gpt.mask %s, %add : !s, tensor<?x?xf32>\n    %m = gpt.mask %a, %see : !s, {bits}", {"see": boolean, "add": numbers},
                    lambda s, see, add: np.where(see, s + np.where(see, add, 0), -inf))
        self.masked(f"    %a = gpt.mask %s, %see : !s, {bits}\n    %m = gpt.mask %a, %add : !s, tensor<?x?xf32>", {"see": boolean, "add": numbers},
                    lambda s, see, add: np.where(see, s, -inf) + add)
        later = lambda s: np.arange(s.shape[2]) > np.arange(s.shape[1])[:, None] + s.shape[2] - s.shape[1]
        hidden = {"add": numbers, "bias": (("?",), "f32", lambda r, sq, sk: r.normal(size=sk).astype(np.float32))}
        self.masked("    %a = gpt.mask %s, %add : !s, tensor<?x?xf32>\n    %b = gpt.causal_mask %a : !s\n    %m = gpt.mask %b, %bias : !s, tensor<?xf32>", hidden,
                    lambda s, add, bias: np.where(later(s), -inf, s + add) + bias)
        both = {"add": (("?", "?"), "f32", some(inf)), "take": (("?", "?"), "f32", some(-inf))}
        self.masked("    %a = gpt.mask %s, %add : !s, tensor<?x?xf32>\n    %m = gpt.mask %a, %take : !s, tensor<?x?xf32>", both,
                    lambda s, add, take: s + add + take)

    def test_boolean_mask_that_is_computed(self):
        # Keys of one document see each other. The mask takes its sizes from the scores, which are not computed for that.
        ids = {"given": lambda r, sq, sk: {"iq": r.integers(0, 3, (sq, 1)).astype(np.int32), "ik": r.integers(0, 3, sk).astype(np.int32)},
               "more": {"iq": (("?", 1), "i32"), "ik": (("?",), "i32")}, "mask": lambda extra, sq, sk: extra["iq"] == extra["ik"], "sizes": ((5, 5), (70, 131))}
        words, bits = tensor((4, "?", "?"), "i32"), tensor((4, "?", "?"), "i1")
        self.check(f"    %a = gpt.broadcast %iq like %s : tensor<?x1xi32>, !s -> {words}\n    %b = gpt.broadcast %ik like %s : tensor<?xi32>, !s -> {words}\n"
                   f"    %e = arith.cmpi eq, %a, %b : {words}\n    %m = gpt.mask %s, %e : !s, {bits}", **ids)
        # The keys alone, and a number for each query and head, likewise.
        self.check(f"    %a = gpt.broadcast %ik like %s : tensor<?xi32>, !s -> {words}\n    %n = arith.constant dense<1> : tensor<i32>\n"
                   f"    %b = gpt.broadcast %n like %s : tensor<i32>, !s -> {words}\n    %e = arith.cmpi sle, %a, %b : {words}\n    %m = gpt.mask %s, %e : !s, {bits}",
                   **(ids | {"mask": lambda extra, sq, sk: np.broadcast_to(extra["ik"] <= 1, (sq, sk))}))
        self.check("    %a = gpt.broadcast %x like %s : tensor<4x1x1xf32>, !s -> !s\n    %b = gpt.broadcast %y like %s : tensor<?xf32>, !s -> !s\n"
                   "    %e = arith.mulf %a, %b : !s\n    %m = arith.addf %s, %e : !s", more={"x": (4, 1, 1), "y": ("?",)},
                   given=lambda r, sq, sk: {"x": r.normal(size=(4, 1, 1)).astype(np.float32), "y": r.normal(size=sk).astype(np.float32)},
                   mask=lambda extra, sq, sk: extra["x"].astype(np.float64) * extra["y"], sizes=((5, 5), (70, 131)))
        # The same, sizes from an argument; and comparisons put together: ids equal, and a number above 0, or not below -1.
        words, bits, numbers = (tensor(("?", "?"), element) for element in ("i32", "i1", "f32"))
        self.check(f"    %a = gpt.broadcast %iq like %x : tensor<?x1xi32>, {numbers} -> {words}\n    %b = gpt.broadcast %ik like %x : tensor<?xi32>, {numbers} -> {words}\n"
                   f"    %e = arith.cmpi eq, %a, %b : {words}\n    %z = arith.constant dense<0.0> : tensor<f32>\n"
                   f"    %zs = gpt.broadcast %z like %x : tensor<f32>, {numbers} -> {numbers}\n    %g = arith.cmpf ogt, %x, %zs : {numbers}\n"
                   f"    %o = arith.constant dense<-1.0> : tensor<1xf32>\n    %os = gpt.broadcast %o like %x : tensor<1xf32>, {numbers} -> {numbers}\n"
                   f"    %l = arith.cmpf olt, %x, %os : {numbers}\n    %both = arith.andi %e, %g : {bits}\n    %see = arith.ori %both, %l : {bits}\n"
                   f"    %m = gpt.mask %s, %see : !s, {bits}", **(ids | {
                       "more": ids["more"] | {"x": ("?", "?")}, "given": lambda r, sq, sk: ids["given"](r, sq, sk) | {"x": r.normal(size=(sq, sk))},
                       "mask": lambda extra, sq, sk: (extra["iq"] == extra["ik"]) & (extra["x"] > 0) | (extra["x"] < -1)}))

    def test_masked_fill(self):
        # select(hide, -inf, s): true hides; and select(see, s, -1e9).
        self.check("    %n = arith.constant dense<0xFF800000> : tensor<f32>\n    %f = gpt.broadcast %n like %s : tensor<f32>, !s -> !s\n"
                   "    %h = gpt.broadcast %hide like %s : tensor<?x?xi1>, !s -> " + tensor((4, "?", "?"), "i1") +
                   "\n    %m = arith.select %h, %f, %s : " + tensor((4, "?", "?"), "i1") + ", !s",
                   more={"hide": (("?", "?"), "i1")}, given=lambda r, sq, sk: {"hide": r.random((sq, sk)) < 0.5}, mask=lambda extra, sq, sk: ~extra["hide"],
                   sizes=((5, 5), (70, 131)))
        self.check("    %n = arith.constant dense<-1.0e9> : tensor<f32>\n    %f = gpt.broadcast %n like %s : tensor<f32>, !s -> !s\n"
                   "    %h = gpt.broadcast %see like %s : tensor<?x?xi1>, !s -> " + tensor((4, "?", "?"), "i1") +
                   "\n    %m = arith.select %h, %s, %f : " + tensor((4, "?", "?"), "i1") + ", !s",
                   more={"see": (("?", "?"), "i1")}, given=lambda r, sq, sk: {"see": r.random((sq, sk)) < 0.4},
                   # A row that sees nothing is an even mixture, by the finite number.
                   mask=lambda extra, sq, sk: np.where(extra["see"], 0, -1e30), sizes=((5, 3), (70, 131)))

    def test_constant_masks(self):
        def constant(mask):
            return f"    %c = arith.constant dense<{np.array(mask).tolist()}> : {tensor(np.shape(mask), 'i1')}\n    %m = gpt.mask %s, %c : !s, {tensor(np.shape(mask), 'i1')}".replace(
                "True", "true").replace("False", "false")
        rules = {"causal": lambda i, j: j <= i, "band": lambda i, j: (j <= i) & (j > i - 3), "checkered": lambda i, j: (i + j) % 2 == 0}
        for rule in rules.values():
            square = lambda sq, sk: rule(np.arange(sq)[:, None] + sk - sq, np.arange(sk))
            self.check(lambda sq, sk: constant(square(sq, sk)), mask=lambda extra, sq, sk: square(sq, sk), dynamic=False, sizes=((5, 5), (3, 7), (66, 66)))

    def test_constant_masks_together(self):
        # Two arrays of one kernel.
        odd, third = "[" + ", ".join(str(j % 2 == 0).lower() for j in range(7)) + "]", "[" + ", ".join(str(j % 3 / 2) for j in range(7)) + "]"
        self.check(f"    %a = arith.constant dense<{odd}> : tensor<7xi1>\n    %b = arith.constant dense<{third}> : tensor<7xf32>\n"
                   "    %c = gpt.mask %s, %a : !s, tensor<7xi1>\n    %m = gpt.mask %c, %b : !s, tensor<7xf32>", dynamic=False, sizes=((3, 7), (7, 7)),
                   mask=lambda extra, sq, sk: np.where(np.arange(7) % 2 == 0, np.arange(7) % 3 / 2, -inf) + np.zeros((sq, 1)))

    def test_compared_positions(self):
        # Positions that are counted, as constants; queries end where keys end.
        def counted(sq, sk, compare):
            rows, columns = [[i + sk - sq] for i in range(sq)], list(range(sk))
            words, bits = tensor((4, sq, sk), "i32"), tensor((4, sq, sk), "i1")
            i, j = (f"    %{name} = arith.constant dense<{numbers}> : {kind}\n    %{name}w = gpt.broadcast %{name} like %s : {kind}, !s -> {words}\n"
                    for name, numbers, kind in (("i", rows, tensor((sq, 1), "i32")), ("j", columns, tensor((sk,), "i32"))))
            return i + j + compare.replace("!w", words).replace("!b", bits)
        least = "    %e = arith.cmpi sge, %iw, %jw : !w\n    %m = gpt.mask %s, %e : !s, !b"
        near = ("    %far = arith.subi %iw, %jw : !w\n    %n = arith.constant dense<3> : !w\n    %x = arith.cmpi sge, %far, %n : !w\n    %y = arith.cmpi slt, %iw, %jw : !w\n"
                "    %e = arith.ori %x, %y : !b\n    %f = arith.constant dense<0xFF800000> : !s\n    %m = arith.select %e, %f, %s : !b, !s")
        others = "    %one = arith.constant dense<1> : !w\n    %next = arith.addi %jw, %one : !w\n    %e = arith.cmpi sge, %iw, %next : !w\n    %m = gpt.mask %s, %e : !s, !b"
        sizes = ((5, 5), (3, 7), (66, 70), (7, 3))
        self.check(lambda sq, sk: counted(sq, sk, least), dynamic=False, sizes=sizes, causal=True)
        self.check(lambda sq, sk: counted(sq, sk, near), dynamic=False, sizes=sizes, causal=True, window=3)
        # A query that does not see itself: no causal mask, but one that is computed.
        self.check(lambda sq, sk: counted(sq, sk, others), dynamic=False, sizes=sizes,
                   mask=lambda extra, sq, sk: np.arange(sk) < np.arange(sq)[:, None] + sk - sq)

    def test_compared_positions_of_tokens(self):
        # gpt.positions along rows and columns: the mask of the stateless function, and of its steps.
        before = ("    %pos = gpt.positions %tokens : tensor<?xi32>\n    %zero = arith.constant 0 : index\n    %count = tensor.dim %tokens, %zero : tensor<?xi32>\n"
                  "    %column = tensor.expand_shape %pos [[0, 1]] output_shape [%count, 1] : tensor<?xi32> into tensor<?x1xi32>\n")
        words, bits = tensor((4, "?", "?"), "i32"), tensor((4, "?", "?"), "i1")
        compare = (f"    %i = gpt.broadcast %column like %s : tensor<?x1xi32>, !s -> {words}\n    %j = gpt.broadcast %pos like %s : tensor<?xi32>, !s -> {words}\n"
                   f"    %e = arith.cmpi sle, %j, %i : {words}\n    %m = gpt.mask %s, %e : !s, {bits}")
        self.check(before + "----\n" + compare, more={"tokens": (("?",), "i32")}, given=lambda r, sq, sk: {"tokens": np.zeros(sq, np.int32)},
                   sizes=((5, 5), (70, 70), (131, 131)), causal=True)
        # A window as a mask of its own; keys before the query alone, which is no causal mask but one that is computed.
        given = {"more": {"tokens": (("?",), "i32")}, "given": lambda r, sq, sk: {"tokens": np.zeros(sq, np.int32)}, "sizes": ((5, 5), (70, 70), (131, 131))}
        rows = compare.replace("%m = gpt.mask", "%a = gpt.mask")
        window = (f"\n    %three = arith.constant dense<3> : tensor<1xi32>\n    %wide = gpt.broadcast %three like %s : tensor<1xi32>, !s -> {words}\n"
                  f"    %end = arith.addi %j, %wide : {words}\n    %near = arith.cmpi sgt, %end, %i : {words}\n    %m = gpt.mask %a, %near : !s, {bits}")
        self.check(before + "----\n" + rows + window, causal=True, window=3, **given)
        self.check(before + "----\n" + compare.replace("sle", "slt"), mask=lambda extra, sq, sk: np.arange(sk) < np.arange(sq)[:, None], **given)
        text = STEP.replace("    %m = gpt.causal_mask %b window 70 : tensor<4x?x?xf32>\n", before + compare.replace("gpt.mask %s", "gpt.mask %b").replace(
            "!s", tensor((4, "?", "?"))))
        self.assertNotIn("causal_mask", text)
        for level in LEVELS:
            kinds = [kernel["kind"] for kernel in manifest(compiled(written(text), level))["kernels"]]
            self.assertEqual((kinds.count("attention"), kinds.count("matmul"), kinds.count("kv_cache")), (1, 0, 0) if level else (0, 2, 2), kinds)

    def test_runtime_scale_for_each_head(self):
        random = np.random.default_rng(8)
        for level in LEVELS:
            entry = attention(level, 4, 2, "?", "?", 8, "    %w = gpt.broadcast %t like %s : tensor<4x1x1xf32>, !s -> !s\n    %d = arith.divf %s, %w : !s\n"
                              "    %m = gpt.causal_mask %d : !s", more={"t": (4, 1, 1)})
            self.fused(entry, level)
            q, k, v = random.normal(size=(4, 20, 8)), random.normal(size=(2, 20, 8)), random.normal(size=(2, 20, 8))
            t = np.array([0.5, 1, 2, -4]).reshape(4, 1, 1)
            self.close(entry(q=q, k=k, v=v, t=t), oracle(q / t, k, v, causal=True), 2e-5)


STEP = """module attributes {gpt.name = "step", gpt.context = 512 : i64, gpt.vocab = 24 : i64} {
  ml_program.global private @wte(#ml_program.extern<tensor<24x16xf32>>) : tensor<24x16xf32>
  ml_program.global private @qkv(#ml_program.extern<tensor<32x16xf32>>) : tensor<32x16xf32>
  ml_program.global private @t(#ml_program.extern<tensor<1xf32>>) : tensor<1xf32>
  func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x24xf32> {gpt.result = "logits"}) {
    %wte = ml_program.global_load_const @wte : tensor<24x16xf32>
    %w = ml_program.global_load_const @qkv : tensor<32x16xf32>
    %x = gpt.embedding %wte, %tokens : tensor<24x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
    %qkv = gpt.linear %x, %w : tensor<?x16xf32>, tensor<32x16xf32> -> tensor<?x32xf32>
    %q0, %k0, %v0 = gpt.split %qkv : tensor<?x32xf32> -> tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>
    %q1 = gpt.scale %q0 by 2.0 : tensor<?x16xf32>
    %q = gpt.split_heads %q1 : tensor<?x16xf32> -> tensor<4x?x4xf32>
    %k = gpt.split_heads %k0 : tensor<?x8xf32> -> tensor<2x?x4xf32>
    %v = gpt.split_heads %v0 : tensor<?x8xf32> -> tensor<2x?x4xf32>
    %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<4x?x4xf32>, tensor<2x?x4xf32> -> tensor<4x?x?xf32>
    %t = ml_program.global_load_const @t : tensor<1xf32>
    %wt = gpt.broadcast %t like %s : tensor<1xf32>, tensor<4x?x?xf32> -> tensor<4x?x?xf32>
    %r = arith.mulf %s, %wt : tensor<4x?x?xf32>
    %c = gpt.softcap %r at 4.0 : tensor<4x?x?xf32>
    %b = gpt.alibi %c slopes [0.25, 0.0625, 0.015625, 0.0] : tensor<4x?x?xf32>
    %m = gpt.causal_mask %b window 70 : tensor<4x?x?xf32>
    %p = gpt.softmax %m : tensor<4x?x?xf32>
    %o = gpt.matmul %p, %v groups 2 : tensor<4x?x?xf32>, tensor<2x?x4xf32> -> tensor<4x?x4xf32>
    %y = gpt.merge_heads %o : tensor<4x?x4xf32> -> tensor<?x16xf32>
    %z = arith.addf %x, %y : tensor<?x16xf32>
    %l = gpt.linear %z, %wte : tensor<?x16xf32>, tensor<24x16xf32> -> tensor<?x24xf32>
    %capped = gpt.softcap %l at 3.0 : tensor<?x24xf32>
    return %capped : tensor<?x24xf32>
  }
}
"""


class Step(AttentionTest):
    """The same over the KV cache: window, softcap, ALiBi and a learned scale; whole, split, in a batch."""
    LENGTH = 300

    def setUp(self):
        random = np.random.default_rng(11)
        self.weights = {"wte": random.normal(size=(24, 16)) * 0.5, "qkv": random.normal(size=(32, 16)) * 0.7, "t": np.array([1.5])}
        self.weights = {name: w.astype(np.float32) for name, w in self.weights.items()}
        self.tokens = random.integers(0, 24, self.LENGTH).tolist()

    def expected(self, tokens):
        wte, qkv, t = (w.astype(np.float64) for w in self.weights.values())
        x = wte[tokens]
        heads = lambda part, h: part.reshape(len(tokens), h, 4).transpose(1, 0, 2)
        q, k, v = np.split(x @ qkv.T, (16, 24), axis=-1)
        y = oracle(heads(2 * q, 4) * t, heads(k, 2), heads(v, 2), cap=4.0, slopes=[0.25, 0.0625, 0.015625, 0.0], causal=True, window=70)
        return 3 * np.tanh((x + y.transpose(1, 0, 2).reshape(len(tokens), 16)) @ wte.T / 3)

    def test_step(self):
        for level in LEVELS:
            package = Package(compiled(written(STEP), level))
            kinds = [kernel["kind"] for kernel in manifest(package.folder)["kernels"]]
            self.assertEqual((kinds.count("attention"), kinds.count("matmul")), (1, 0) if level else (0, 2))
            if level:  # the runtime scale and the residual; the softcap of the logits is in its GEMM
                self.assertEqual(kinds.count("elementwise"), 2, kinds)
            with package.open(self.weights) as model:
                with model.session() as session:
                    whole = session.step(self.tokens)
                    self.close(whole, self.expected(self.tokens), 5e-5)
                    again = session.step(self.tokens[:1]), session.step(self.tokens[:1])
                    self.assertTrue(same_bits(*again) and same_bits(again[0], whole[:1]))
                for split in ((1, 299), (64, 236), (65, 1, 70, 164), (100, 100, 100), (299, 1)):
                    with model.session(threads=2) as session:
                        start = 0
                        for count in split:
                            got = session.step(self.tokens[start:start + count], range(start, start + count))
                            self.assertTrue(same_bits(got, whole[start:start + count]), f"split {split} at {start}, -O{level}")
                            start += count
                with model.session(sequences=3, tokens=600) as session:
                    other = self.tokens[::-1][:150]
                    got = session.step(other + self.tokens, [*range(150), *range(self.LENGTH)], [2] * 150 + [0] * self.LENGTH)
                    self.assertTrue(same_bits(got[150:], whole), f"beside another sequence, -O{level}")

    def test_check_agrees(self):
        """gptc-check compares every kernel with its meaning."""
        for level in LEVELS:
            entry = attention(level, 4, 2, "?", "?", 8, "    %c = gpt.softcap %s at 5.0 : !s\n    %b = gpt.alibi %c slopes [0.5, 0.25, 0.1, 0.0] : !s\n"
                              "    %w = gpt.mask %b, %mask fill -1.0e4 : !s, tensor<?xi1>\n    %y = gpt.mask %w, %add : !s, tensor<?x1xf32>\n"
                              "    %m = gpt.causal_mask %y window 9 : !s", more={"mask": (("?",), "i1"), "add": ("?", 1)})
            random = np.random.default_rng(2)
            inputs = written("", "inputs.npz")
            np.savez(inputs, q=random.normal(size=(4, 40, 8)).astype(np.float32) * 4, k=random.normal(size=(2, 50, 8)).astype(np.float32),
                     v=random.normal(size=(2, 50, 8)).astype(np.float32), mask=(random.random(50) < 0.8).astype(np.int32), add=random.normal(size=(40, 1)).astype(np.float32))
            run("gptc-check", entry.mlir, "--package", entry.folder, "--entry", "main", "--inputs", inputs)


main()
