"""--target=cuda on the emulator: every kernel that the compiler can write, launched at least once and compared with numpy: each storage
format in each loop, each scalar op, epilogues, blocks of models fused and unfused."""
import glob
import os
import re

import numpy as np

import fusion_blocks
import fusion_cases
from attention_graphs import AttentionTest, model
from attention_reports import head_sizes, stale_keys
from cases import Case, check_all, tensor
from emulated import Fresh, counted, cuda, needs_gpu, ptx_only, recorded
from fusion_numpy import Numbers, erf, sigmoid
from harness import HERE, compiled, main, packages
from package import Package
from stored import KINDS, declared, exact, linear

ptx_only()
SOURCES = os.path.join(HERE, "..", "..", "lib", "Target", "CUDA")


def source(name):
    with open(os.path.join(SOURCES, name), encoding="utf-8") as f:
        return f.read()


N, K = 40, 96  # no whole tile of either


def storages_text():
    kind, X, Y = tensor((N, K)), tensor(("?", K)), tensor(("?", N))
    text = ""
    for s in KINDS:
        text += declared(s, s, N, K) + linear("linear_" + s, s, N, K) + f"""  func.func @embedding_{s}(%x: tensor<?xi32> {{gpt.arg = "x"}}) -> ({X} {{gpt.result = "y"}}) {{
    %w = ml_program.global_load_const @{s} : {kind}
    %y = gpt.embedding %w, %x : {kind}, tensor<?xi32> -> {X}
    return %y : {X}
  }}
"""
    # Two lanes of different formats, one of which may be copied as it is.
    for a, b in (("bf16", "q8_0"), ("q4_1", "f16")):
        text += f"""  func.func @both_{a}_{b}(%x: {X} {{gpt.arg = "x"}}) -> ({Y} {{gpt.result = "y"}}) {{
    %a = ml_program.global_load_const @{a} : {kind}
    %b = ml_program.global_load_const @{b} : {kind}
    %g = gpt.linear %x, %a : {X}, {kind} -> {Y}
    %u = gpt.linear %x, %b : {X}, {kind} -> {Y}
    %r = arith.maximumf %g, %u : {Y}
    %y = arith.addf %r, %u : {Y}
    return %y : {Y}
  }}
"""
    return 'module attributes {gpt.name = "storages"} {\n' + text + "}\n"


def limit(y, x):
    """What -inf times a sigmoid of 0 tends to."""
    return np.where(x == -np.inf, 0, y)


# Every op of Scalars.cpp on x, y, z in f32, i and j in i32, p in i1, and what it means. Functions of math.cuh are compared within their bounds.
SCALARS = {
    "arith.AddFOp": ("arith.addf %x, %y : !f", lambda v: v["x"] + v["y"]), "arith.SubFOp": ("arith.subf %x, %y : !f", lambda v: v["x"] - v["y"]),
    "arith.MulFOp": ("arith.mulf %x, %y : !f", lambda v: v["x"] * v["y"]), "arith.DivFOp": ("arith.divf %x, %y : !f", lambda v: v["x"] / v["y"]),
    "arith.AddIOp": ("arith.addi %i, %j : !i", lambda v: v["i"] + v["j"]), "arith.SubIOp": ("arith.subi %i, %j : !i", lambda v: v["i"] - v["j"]),
    "arith.NegFOp": ("arith.negf %x : !f", lambda v: -v["x"]), "arith.MaximumFOp": ("arith.maximumf %x, %y : !f", lambda v: np.maximum(v["x"], v["y"])),
    "arith.MinimumFOp": ("arith.minimumf %x, %y : !f", lambda v: np.minimum(v["x"], v["y"])),
    "math.FmaOp": ("math.fma %x, %y, %z : !f", lambda v: np.float64(v["x"]) * v["y"] + v["z"]),
    "math.ExpOp": ("math.exp %x : !f", lambda v: np.exp(np.float64(v["x"]))), "math.TanhOp": ("math.tanh %x : !f", lambda v: np.tanh(np.float64(v["x"]))),
    "math.ErfOp": ("math.erf %x : !f", lambda v: erf(v["x"])), "math.SqrtOp": ("math.sqrt %x : !f", lambda v: np.sqrt(v["x"])),
    "math.RsqrtOp": ("math.rsqrt %x : !f", lambda v: 1 / np.sqrt(np.float64(v["x"]))), "math.AbsFOp": ("math.absf %x : !f", lambda v: np.abs(v["x"])),
    "gpt.GeluOp": ("gpt.gelu quick %x : !f", lambda v: limit(v["x"] * sigmoid(1.702 * np.float64(v["x"])), v["x"])),
    "gpt.SiluOp": ("gpt.silu %x : !f", lambda v: limit(v["x"] * sigmoid(np.float64(v["x"])), v["x"])),
    "gpt.SoftcapOp": ("gpt.softcap %x at 3.0 : !f", lambda v: 3 * np.tanh(np.float64(v["x"]) / 3)),
    "gpt.ScaleOp": ("gpt.scale %x by 0.25 : !f", lambda v: v["x"] / 4),
    "arith.SelectOp": ("arith.select %p, %x, %y : !b, !f", lambda v: np.where(v["p"], v["x"], v["y"])),
    "arith.AndIOp": ("arith.andi %i, %j : !i", lambda v: v["i"] & v["j"]), "arith.OrIOp": ("arith.ori %i, %j : !i", lambda v: v["i"] | v["j"]),
    "arith.XOrIOp": ("arith.xori %i, %j : !i", lambda v: v["i"] ^ v["j"]),
    "arith.ConstantOp": ("arith.addf %x, %c : !f", lambda v: v["x"] + np.float32(0.1))}
ORDERED = {"eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "ne": np.not_equal}
SIGNED = {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal}


def comparisons():
    nan = lambda v: np.isnan(v["x"]) | np.isnan(v["y"])
    for name, function in ORDERED.items():
        yield "arith.CmpFOp", f"arith.cmpf o{name}, %x, %y : !f", lambda v, f=function: f(v["x"], v["y"]) & ~nan(v)
        yield "arith.CmpFOp", f"arith.cmpf u{name}, %x, %y : !f", lambda v, f=function: f(v["x"], v["y"]) | nan(v)
    yield "arith.CmpFOp", "arith.cmpf ord, %x, %y : !f", lambda v: ~nan(v)
    yield "arith.CmpFOp", "arith.cmpf uno, %x, %y : !f", nan
    for name, function in SIGNED.items():
        yield "arith.CmpIOp", f"arith.cmpi {name}, %i, %j : !i", lambda v, f=function: f(v["i"], v["j"])
        if name[0] == "s":
            yield "arith.CmpIOp", f"arith.cmpi u{name[1:]}, %i, %j : !i", lambda v, f=function: f(v["i"].view(np.uint32), v["j"].view(np.uint32))


def run_test(case, test, *options, **more):
    """Runs a test of that class with these options."""
    case = type(case.__name__, (case,), {"options": options, **more})(test)
    getattr(case, test)()


@needs_gpu
class Instances(Fresh, AttentionTest, Numbers):
    def storages(self, precision):
        """Every format in every loop; 1, 5, 9 and 70 rows take different ways."""
        random = np.random.default_rng(7)
        weights = {s: exact(random, s, N, K) for s in KINDS}
        folder = compiled(model(storages_text()), *cuda(precision), "--no-weights")
        with Package(folder).open(weights) as opened, opened.session() as session:
            for s in KINDS:
                ids = random.integers(0, N, 50).astype(np.int32)
                got = session.run(f"embedding_{s}", {"x": ids}, ["y"])["y"]
                self.assertTrue(np.array_equal(got, weights[s].values[ids]), (precision, s))
            for rows in (1, 5, 9, 70):
                x = random.integers(-4, 5, (rows, K)).astype(np.float32)
                run = lambda name: session.run(name, {"x": x}, ["y"])["y"]
                for s in KINDS:
                    self.assertTrue(np.array_equal(run("linear_" + s), x @ weights[s].values.T), (precision, s, rows))
                for a, b in (("bf16", "q8_0"), ("q4_1", "f16")):
                    g, u = x @ weights[a].values.T, x @ weights[b].values.T
                    self.assertTrue(np.array_equal(run(f"both_{a}_{b}"), np.maximum(g, u) + u), (precision, a, b, rows))

    def scalars(self):
        ops = [(name, *op) for name, op in SCALARS.items()] + list(comparisons())
        written = set(re.findall(r"Case\(\[&\]\((\w+::\w+)", source("Scalars.cpp")))
        self.assertEqual({name for name, *_ in ops}, {name.replace("::", ".") for name in written}, "ops with no test")
        special = np.float32([0, -0.0, 1, -1, 0.3, -2.7, 1e-3, 9, -20, np.inf, -np.inf, np.nan, 1e30])
        x, y = (part.ravel() for part in np.meshgrid(special, special))
        integers = np.random.default_rng(2).integers(-2**31, 2**31, len(x)).astype(np.int32)
        v = {"x": x, "y": y, "z": x[::-1].copy(), "i": integers, "j": np.where(np.arange(len(x)) % 3, integers[::-1], integers), "p": (np.arange(len(x)) % 2).astype(np.int32)}
        n = len(x)
        F, I, B = (f"tensor<{n}x{t}>" for t in ("f32", "i32", "i1"))
        cases = []
        for name, text, meaning in ops:
            kind = B if "cmp" in text else I if text.endswith("!i") else F
            body = (f"    %c = arith.constant dense<0.1> : {F}\n" if "%c" in text else "") + "    %out = " + text.replace("!f", F).replace("!i", I).replace("!b", B)
            used = {each: {"i": I, "j": I, "p": B}.get(each, F) for each in v if re.search(f"%{each}\\b", text)}

            def check(entry, name=name, kind=kind, used=used, meaning=meaning):
                got = entry(**{each: v[each] for each in used})["out"]
                with np.errstate(all="ignore"):
                    expected = meaning(v)
                    expected = expected.astype(np.float32) if kind == F else expected.astype(np.int32)
                if kind != F:
                    self.assertEqual(got.view(np.int32).tolist(), expected.tolist(), name)
                    return
                near = np.isclose(got, expected, rtol=4e-7, atol=6e-7, equal_nan=True) | (got == expected)
                self.assertTrue(near.all(), (name, got[~near][:4], expected[~near][:4], x[~near][:4], y[~near][:4]))

            cases.append(Case(used, {}, body, {"out": kind}, check))
        check_all(self, cases, (cuda("f32", 0),))

    def rows(self):
        """Norms, softmax and argmax by themselves, broadcasts and masks."""
        T, V = tensor(("?", 50)), tensor((50,))
        x = self.random(9, 50)
        d = np.float64(x)
        cases = []

        def add(body, expected, kind=T, weights=None):
            def check(entry):
                got = entry(x=x)["y"]
                self.close(got if kind is T else got.view(np.int32), expected, 2e-6)
            cases.append(Case({"x": T}, weights or {}, "    %y = " + body, {"y": kind}, check))
        gamma, beta = self.random(50, seed=1), self.random(50, seed=2)
        centred = d - d.mean(-1, keepdims=True)
        normed = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)
        add(f"gpt.layer_norm %x, %g, %b eps 1.0e-5 : {T}, {V}, {V}", normed * gamma + beta, weights={"g": gamma, "b": beta})
        add(f"gpt.layer_norm %x, %g eps 1.0e-5 : {T}, {V}", normed * gamma, weights={"g": gamma})
        add(f"gpt.rms_norm %x, %g eps 1.0e-5 : {T}, {V}", d / np.sqrt((d ** 2).mean(-1, keepdims=True) + 1e-5) * gamma, weights={"g": gamma})
        sampled = centred / (d.std(-1, ddof=1, keepdims=True) + 0.25)
        add(f"gpt.layer_norm %x, %g, %b sample eps 0.25 : {T}, {V}, {V}", sampled * gamma + beta, weights={"g": gamma, "b": beta})
        e = np.exp(d - d.max(-1, keepdims=True))
        add(f"gpt.softmax %x : {T}", e / e.sum(-1, keepdims=True))
        add(f"gpt.log_softmax %x : {T}", np.log(e / e.sum(-1, keepdims=True)))
        add(f"gpt.argmax %x : {T} -> tensor<?xi32>", d.argmax(-1), "tensor<?xi32>")
        check_all(self, cases, (cuda("f32"),))

    def test_every_kernel(self):
        """Every format, every scalar op, every building block and every function of one that the compiler names."""
        formats = re.search(r"enum class Format {([^}]*)}", source("Kernels/weights.cuh"))[1]
        self.assertEqual(tuple(name.strip() for name in formats.split(",")), KINDS, "formats with no test")
        with recorded(self):
            for precision in ("f32", "bf16", "f16"):
                self.storages(precision)
            self.scalars()
            self.rows()
            run_test(fusion_cases.Epilogues, "test_gates", cuda("f32"), layouts=("separate",))
            run_test(fusion_cases.Epilogues, "test_chains", cuda("f32"))
            run_test(fusion_blocks.Blocks, "test_gptj", cuda("f32"), cuda("f32", 0))
            check_all(self, head_sizes(self, "bf16", (46,)), (cuda("bf16"),))
            stale_keys(self, *cuda("f16"))
        text = ""
        for folder in packages:
            path, = glob.glob(os.path.join(glob.escape(folder), "*.cu"))
            with open(path, encoding="utf-8") as f:
                text += f.read()
        for path in glob.glob(os.path.join(SOURCES, "Kernels", "*.cuh")):
            self.assertIn(f"===- {os.path.basename(path)} -", text, "a building block with no test")


WIDE, DEEP = 256, 128


@needs_gpu
class Memory(Fresh):
    """What the banks of shared memory and the sectors of global memory cost: nothing where a comment of the kernels says so, elsewhere no
    more than is stated here."""

    def counts(self, precision):
        H = tensor((2, "?", 64))
        text = f"""  func.func @attention(%q: {H} {{gpt.arg = "x"}}) -> ({H} {{gpt.result = "y"}}) {{
    %o = gpt.flash_attention %q, %q, %q causal scale 0.125 : {H}, {H}
    return %o : {H}
  }}
"""
        weights = {s: exact(np.random.default_rng(1), s, WIDE, DEEP) for s in ("bf16", "q8_0", "q4_0")}
        text += "".join(declared(s, s, WIDE, DEEP) + linear("linear_" + s, s, WIDE, DEEP) for s in weights)
        folder = compiled(model('module attributes {gpt.name = "memory"} {\n' + text + "}\n"), *cuda(precision), "--no-weights")
        with counted() as kernels, Package(folder).open(weights) as opened, opened.session() as session:
            for s in weights:
                for rows in (1, 8, 128):
                    session.run(f"linear_{s}", {"x": np.ones((rows, DEEP), np.float32)}, ["y"])
            session.run("attention", {"x": np.ones((2, 128, 64), np.float32)}, ["y"])
        return kernels

    def at_most(self, kernels, conflicts):
        for name, most in conflicts.items():
            self.assertLessEqual(kernels[name]["conflicts"], most, name)

    def test_tensor_cores(self):
        kernels = self.counts("bf16")
        for name, counts in kernels.items():
            # Swizzled, or of an odd number of chunks.
            self.assertEqual((counts["matrix_conflicts"], counts["copy_conflicts"]), (0, 0), name)
        copied = kernels["gemm_k128_n256_bf16"]
        self.assertEqual(copied["copy_sectors"], copied["copy_requests"] * 16)
        self.assertEqual(copied["copy_sectors"] * 32, WIDE * DEEP * 2 * 2)  # by each of two tiles of rows
        # Of 128 rows: accumulators on their way to the epilogue, and nibbles, which are stored by the pair.
        self.at_most(kernels, {"gemm_k128_n256_bf16": 64, "gemm_k128_n256_q8_0": 64, "gemm_k128_n256_q4_0": 3136, "attention_h2_d64_causal": 1152})

    def test_multiply_adds(self):
        kernels = self.counts("f32")
        for storage, bits in (("bf16", 16), ("q8_0", 8.5), ("q4_0", 4.5)):
            one = f"gemm_k128_n256_{storage}_rows1"
            # Eight rows of sums leave a warp by the pitch of the tile.
            self.at_most(kernels, {one: 0, f"gemm_k128_n256_{storage}_rows8": 1536})
            # A weight is read once, with its scales; then x, 16 sectors, by each of 16 blocks, and the result.
            self.assertLessEqual(kernels[one]["sectors"], WIDE * DEEP * bits / 8 / 32 + 16 * 16 + 32, storage)
        self.at_most(kernels, {"gemm_k128_n256_bf16": 12288, "gemm_k128_n256_q8_0": 12288, "gemm_k128_n256_q4_0": 4096, "attention_h2_d64_causal": 22784})


if __name__ == "__main__":
    main()
