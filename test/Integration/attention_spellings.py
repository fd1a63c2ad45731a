"""Every spelling of masks and scales, windows, softcap and ALiBi, at -O0 and -O2, against numpy; over named tensors and
over the KV cache."""
import itertools

import numpy as np

from attention_graphs import LEVELS, Case, attention, inf, oracle, tensor
from harness import compiled, main, manifest, run, same_bits, written
from package import Package


class Spellings(Case):
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
        for window in (1, 3, 64, 100):
            self.check(f"    %m = gpt.causal_mask %s window {window} : !s", causal=True, window=window)

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

    def test_boolean_padding_beside_causal(self):
        self.check("    %c = gpt.causal_mask %s : !s\n    %m = gpt.mask %c, %mask : !s, tensor<?xi1>", more={"mask": (("?",), "i1")},
                   given=lambda r, sq, sk: {"mask": r.random(sk) < 0.7}, mask=lambda extra, sq, sk: extra["mask"], causal=True)

    def test_subtracted_mask(self):
        self.check("    %w = gpt.broadcast %mask like %s : tensor<?x?xf32>, !s -> !s\n    %m = arith.subf %s, %w : !s", more={"mask": ("?", "?")},
                   given=lambda r, sq, sk: {"mask": np.where(r.random((sq, sk)) < 0.3, 1e9, r.normal(size=(sq, sk)))},
                   mask=lambda extra, sq, sk: -np.asarray(extra["mask"], np.float32).astype(np.float64), sizes=((5, 5), (70, 131), (1, 3)))

    def test_several_masks(self):
        # Causal and padding as the tensors that other runtimes hand over; those of one kind become one mask.
        lower = lambda sq, sk: np.arange(sk) <= np.arange(sq)[:, None] + sk - sq
        add = lambda visible: np.where(visible, 0, -inf)
        inputs = {"causal": (("?", "?"), "f32", lambda r, sq, sk: add(lower(sq, sk))), "see": (("?", "?"), "i1", lambda r, sq, sk: lower(sq, sk)),
                  "pad": (("?",), "f32", lambda r, sq, sk: add(np.arange(sk) < max(1, sk - 2))), "keep": ((1, "?"), "i1", lambda r, sq, sk: np.arange(sk)[None] < max(1, sk - 2)),
                  "bias": ((4, "?", "?"), "f32", lambda r, sq, sk: r.normal(size=(4, sq, sk)))}
        for names in (("causal", "pad"), ("pad", "see"), ("keep", "see"), ("pad", "causal", "bias")):
            lines, last = [], "%s"
            for i, name in enumerate(names):
                lines.append(f"    %{'m' if i == len(names) - 1 else f'm{i}'} = gpt.mask {last}, %{name} : !s, {tensor(inputs[name][0], inputs[name][1])}")
                last = f"%m{i}"
            given = lambda r, sq, sk, names=names: {name: np.asarray(inputs[name][2](r, sq, sk), bool if inputs[name][1] == "i1" else np.float32) for name in names}
            total = lambda extra, sq, sk: sum(add(x) if x.dtype == bool else x.astype(np.float64) for x in extra.values())
            self.check("\n".join(lines), more={name: inputs[name][:2] for name in names}, given=given, mask=total, sizes=((5, 5), (70, 131), (1, 3)),
                       fuses=len({inputs[name][1] for name in names}) == 1)

    def test_boolean_mask_that_is_computed(self):
        # Keys of one document see each other. The mask takes its sizes from the scores, so they are computed.
        ids = {"given": lambda r, sq, sk: {"iq": r.integers(0, 3, (sq, 1)).astype(np.int32), "ik": r.integers(0, 3, sk).astype(np.int32)},
               "more": {"iq": (("?", 1), "i32"), "ik": (("?",), "i32")}, "mask": lambda extra, sq, sk: extra["iq"] == extra["ik"], "sizes": ((5, 5), (70, 131))}
        words, bits = tensor((4, "?", "?"), "i32"), tensor((4, "?", "?"), "i1")
        self.check(f"    %a = gpt.broadcast %iq like %s : tensor<?x1xi32>, !s -> {words}\n    %b = gpt.broadcast %ik like %s : tensor<?xi32>, !s -> {words}\n"
                   f"    %e = arith.cmpi eq, %a, %b : {words}\n    %m = gpt.mask %s, %e : !s, {bits}", fuses=False, **ids)
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


class Step(Case):
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
                              "    %w = gpt.mask %b, %mask fill -1.0e4 : !s, tensor<?xi1>\n    %m = gpt.causal_mask %w window 9 : !s", more={"mask": (("?",), "i1")})
            random = np.random.default_rng(2)
            inputs = written("", "inputs.npz")
            np.savez(inputs, q=random.normal(size=(4, 40, 8)).astype(np.float32) * 4, k=random.normal(size=(2, 50, 8)).astype(np.float32),
                     v=random.normal(size=(2, 50, 8)).astype(np.float32), mask=(random.random(50) < 0.8).astype(np.int32))
            run("gptc-check", entry.mlir, "--package", entry.folder, "--entry", "main", "--inputs", inputs)


main()
