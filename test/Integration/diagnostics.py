"""Errors that can be read (B40): exit 1, at most 4 KB, file:line:col and the op, no stack trace, no file; also in debug builds.

Needs gptc only: `python3 diagnostics.py build/debug/bin` runs it with assertions.
"""
import os
import re
import subprocess
import tempfile

from harness import BIN, DOCS, TEMPORARY, checkpoint, main, run, unittest, written

with open(os.path.join(DOCS, "picogpt.mlir"), encoding="utf-8") as picogpt:
    PICOGPT = picogpt.read()
# Words of a stack trace, of an assertion, of a sanitizer, and of another tool's options.
NOISE = re.compile(r"stack dump|Stack trace|PLEASE submit|Assertion|#0 0x|LLVM ERROR|AddressSanitizer|runtime error|internal error"
                   r"|allow-unregistered")


def model(body, arguments='%x: tensor<4x8xf32> {gpt.arg = "x"}, %g: tensor<8xf32> {gpt.arg = "g"}', module='gpt.name = "m"'):
    """A module of one entry; its body begins on line 3."""
    return f"""module attributes {{{module}}} {{
func.func @f({arguments}) -> (tensor<4x8xf32> {{gpt.result = "y"}}) {{
{body}
return %y : tensor<4x8xf32>
}}
}}
"""


def numbers(count):
    """That many floats, ten megabytes of them in hexadecimal with 8 digits each."""
    return '"0x' + "3F8CCCCD" * count + '"'


class Diagnostics(unittest.TestCase):
    def refused(self, text, *words, line=None, column=None):
        """One error, at that place of the text, with these words in it."""
        path = written(text)
        output = tempfile.mkdtemp(dir=TEMPORARY)
        done = subprocess.run([os.path.join(BIN, "gptc"), path, "-o", os.path.join(output, "kernels")], capture_output=True, check=False)
        error = done.stderr.decode()  # cut between characters, not in one
        self.assertEqual(done.returncode, 1, error[:2000])
        self.assertEqual(done.stdout, b"")
        self.assertLessEqual(len(done.stderr), 4096)
        self.assertIsNone(NOISE.search(error), error)
        self.assertEqual(os.listdir(output), [])
        found = re.match(r"(.*):(\d+):(\d+): error: (.*)\n", error)
        self.assertTrue(found and found[1] == path, error)
        self.assertEqual(error.count("error: "), 1, error)
        if line:
            self.assertEqual(int(found[2]), line, error)
        if column:
            self.assertEqual(int(found[3]), column, error)
        for word in words:
            self.assertIn(word, error)
        # The caret stands below the column, in whatever window of the line.
        lines = error.splitlines()
        self.assertLess(max(map(len, lines)), 1024)
        source = (text.splitlines() or [""])[int(found[2]) - 1]
        if len(source) < 120 and source.isprintable():
            self.assertEqual(lines[1:3], [source, " " * (int(found[3]) - 1) + "^"])
        return error

    def test_large_constant(self):
        """B40 (a): 10 MB in one constant and a wrong type in the last op; also all on one line, and the line of the constant shown."""
        count = 10 * 1024 * 1024 // 8
        right, wrong = f"tensor<{count}xf32>", f"tensor<{count + 1}xf32>"
        lines = ['module attributes {gpt.name = "m"} {', f'func.func @f(%x: {right} {{gpt.arg = "x"}}) -> ({right} {{gpt.result = "y"}}) {{',
                 f"%c = arith.constant dense<{numbers(count)}> : {right}", f"%s = arith.addf %x, %c : {right}", f"%y = gpt.silu %s : {wrong}",
                 f"return %y : {right}", "}", "}"]
        error = self.refused("\n".join(lines), "gpt.silu", right, wrong, line=5, column=lines[4].index("%s") + 1)
        self.assertIn("note: prior use here", error)
        oneline = " ".join(lines)
        self.refused(oneline, "gpt.silu %s", right, wrong, line=1, column=oneline.index("gpt.silu %s") + len("gpt.silu ") + 1)
        # The note points at the constant.
        lines[3:5] = [f"%y = gpt.silu %c : {wrong}"]
        self.assertIn("arith.constant", self.refused("\n".join(lines), "gpt.silu", line=4))
        # The constant is in the way itself.
        lines[2:4] = [f'%z = "gpt.silu"(%x) {{a = dense<{numbers(count)}> : {right}}} : ({right}) -> {wrong} %y = gpt.silu %x : {right}']
        self.refused("\n".join(lines), "gpt.silu", line=3)
        self.refused(model("%y = gpt.silu %x : tensor<4x8xf32>", module=f'gpt.name = "{"n" * 10 ** 7}"'), "gpt.name", line=1)
        self.refused(model("%y = gpt.silu %x : tensor<4x8xf32>", module=f'gpt.name = "{"ä" * 10 ** 6}"'), "gpt.name", line=1)

    def test_many_errors(self):
        """Ten weights that the checkpoint has not, in a file of a long name."""
        names = ["n" * 1000 + str(i) for i in range(10)]
        weights = "\n".join(f'ml_program.global private @w{i}(#ml_program.extern<tensor<8x8xf32>>) : tensor<8x8xf32> '
                            f'{{gpt.stored = #gpt.stored<"model.safetensors", "{name}", f32>}}' for i, name in enumerate(names))
        loads = "\n".join(f"%w{i} = ml_program.global_load_const @w{i} : tensor<8x8xf32>\n%y{i} = gpt.linear %{f'y{i - 1}' if i else 'x'}, %w{i} "
                          ": tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>" for i in range(10))
        text = model(loads + "\n%y = gpt.silu %y9 : tensor<4x8xf32>").replace("func.func", weights + "\nfunc.func")
        done = run("gptc", written(text, "m" * 200 + ".mlir"), "-o", os.path.join(TEMPORARY, "none"), "--checkpoint", checkpoint("gpt2-hf"), status=1)
        self.assertLessEqual(len(done.stderr), 4096)
        self.assertGreater(done.stderr.count(": error: "), 2)
        self.assertTrue(done.stderr.endswith("gptc: note: further messages are left out\n"), done.stderr)

    def test_absent_blob(self):
        """B40 (b)."""
        use = "\n%y = arith.addf %x, %c : tensor<4x8xf32>"
        words = "arith.constant", "dense_resource<absent>", "expected"
        self.refused(model("%c = arith.constant dense_resource<absent> : tensor<4x8xf32>" + use), *words, line=3, column=6)
        self.refused(model("%y = arith.constant dense_resource<absent> : tensor<4x8xf32>"), *words, line=3, column=6)
        self.refused(model("%c = ml_program.global_load_const @w : tensor<4x8xf32>\n%y = arith.addf %x, %c : tensor<4x8xf32>").replace("func.func", "ml_program.global private @w("
                           "dense_resource<absent> : tensor<4x8xf32>) : tensor<4x8xf32>\nfunc.func"), "ml_program.global", "expected", line=2)
        # Blobs that are there, of every size, are not read either.
        for size in (1, 32, 33):
            self.refused(model("%c = arith.constant dense_resource<absent> : tensor<4x8xf32>" + use) +
                         '{-#\ndialect_resources: { builtin: { absent: "0x04000000' + "0000803F" * size + '" } }\n#-}\n', *words, line=3)
        self.refused(model("%c = arith.constant sparse<[[0, 0]], [1.0]> : tensor<4x8xf32>" + use), "arith.constant", "dense<", line=3)

    def test_constants(self):
        """Constants where kernels read memory: they were compiled, and read other memory."""
        for kind, use in (("tensor<8xf32>", "gpt.rms_norm %x, %c eps 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>"),
                          ("tensor<8x8xf32>", "gpt.linear %x, %c : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>"),
                          ("tensor<4x8xf32>", "gpt.softmax %c : tensor<4x8xf32>"),
                          ("tensor<4xi32>", "gpt.select_rows %x, %c : tensor<4x8xf32>, tensor<4xi32> -> tensor<4x8xf32>")):
            value = "1" if "i32" in kind else "1.0"
            with self.subTest(use):
                self.refused(model(f"%c = arith.constant dense<{value}> : {kind}\n%y = {use}"), "op expected operand", "got a constant", line=4, column=6)

    def test_heads(self):
        """B40 (c): n_head 0, -1, not dividing n_embd."""
        for heads, words in ((0, ["gpt.split_heads", "H = 0", "got 8"]), (-1, ["gpt.split_heads", "tensor<-1x"]), (3, ["gpt.split_heads", "H = 3", "got 8"])):
            with self.subTest(heads):
                kind = f"tensor<{heads}x4x2xf32>"
                self.refused(model(f"%h = gpt.split_heads %x : tensor<4x8xf32> -> {kind}\n%y = gpt.merge_heads %h : {kind} -> tensor<4x8xf32>"), *words, line=3)
        for groups, what in ((0, "at least 1, got 0"), (-1, "at least 1, got -1"), (3, "to divide the 4 heads"), (2 ** 32 + 2, "to divide the 4 heads")):
            with self.subTest(groups):
                q, k = "tensor<4x4x2xf32>", "tensor<2x4x2xf32>"
                self.refused(model(f"%s = gpt.matmul %q, %k transpose_b groups {groups} : {q}, {k} -> tensor<4x4x4xf32>\n%y = gpt.silu %x : tensor<4x8xf32>",
                                   f"%x: tensor<4x8xf32>, %q: {q}, %k: {k}"), "gpt.matmul", "expected groups", what, line=3, column=6)

    def test_rope(self):
        """B40 (c): an odd rope dim, and others that are none."""
        for dim in (7, 0, -2, 2 ** 63 - 1, 2 ** 20 + 2):
            with self.subTest(dim):
                self.refused(model(f"%r = gpt.rope %q, %p <base 10000.0, pairs half, dim {dim}> : tensor<1x4x8xf32>, tensor<4xi32>\n"
                                   "%y = gpt.merge_heads %r : tensor<1x4x8xf32> -> tensor<4x8xf32>", "%q: tensor<1x4x8xf32>, %p: tensor<4xi32>"),
                             "gpt.rope", "expected an even dim", f"got {dim}", line=3)
        self.refused(model("%r = gpt.rope %q, %p <base 10000.0, pairs half, dim 6> : tensor<1x4x8xf32>, tensor<4xi32>\n"
                           "%y = gpt.merge_heads %r : tensor<1x4x8xf32> -> tensor<4x8xf32>", "%q: tensor<1x4x8xf32>, %p: tensor<4xi32>"),
                     "gpt.rope", "dim", line=3)

    def test_eps(self):
        """B40 (c): eps negative or NaN, infinite, 0, of another type."""
        for op in ("rms_norm", "layer_norm"):
            for eps in ("-1.0e-5", "0x7FF8000000000000", "0xFFF8000000000000", "0x7FF0000000000000", "0.0", "-0.0", "1.0e-300"):
                with self.subTest(op=op, eps=eps):
                    words = f"gpt.{op}", "expected an eps from 1.2e-38 to 3.4e38"
                    self.refused(model(f"%y = gpt.{op} %x, %g eps {eps} : tensor<4x8xf32>, tensor<8xf32>"), *words, line=3, column=6)
                    self.refused(model(f'%y = "gpt.{op}"(%x, %g) {{eps = {eps} : f64}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>'), *words, line=3)
            self.refused(model(f'%y = "gpt.{op}"(%x, %g) {{eps = 1.0 : f32}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>'), f"gpt.{op}", "eps", line=3)
            self.refused(model(f'%y = "gpt.{op}"(%x, %g) {{eps = "e"}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>'), f"gpt.{op}", "eps", line=3)
            self.refused(model(f"%y = gpt.{op} %x, %g eps 1 : tensor<4x8xf32>, tensor<8xf32>"), f"gpt.{op}", "floating point", line=3)

    def test_short_lists(self):
        """B40 (c): attribute lists too short, or none at all."""
        gemm = ('%y = "gpt.fused_gemm"(%x, %w) <{{appends = {}, has_bias = {}, in_out = {}, operandSegmentSizes = array<i32: {}>, '
                'resultSegmentSizes = array<i32: {}>, ropes = {}}}> ({{\n^bb0(%acc: f32):\ngpt.yield %acc : f32\n}}) : '
                '(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>')
        right = ["[#gpt<append none>]", "array<i1: false>", "array<i1: false>", "1, 1, 0, 0, 0, 0, 0, 0, 0, 0", "1, 0", "[unit]"]
        for index, short in enumerate(["[]", "array<i1>", "array<i1>", "1, 1, 0, 0", "1", "[]"]):
            with self.subTest(short, index=index):
                lists = right[:index] + [short] + right[index + 1:]
                self.refused(model(gemm.format(*lists), "%x: tensor<4x8xf32>, %w: tensor<8x8xf32>"), "gpt.fused_gemm", "size mismatch" if index in (3, 4) else "expected", line=3)
        for op, more in (("layer_norm", ""), ("rms_norm", ""), ("scale", "")):
            arguments, types = ("(%x)", "(tensor<4x8xf32>)") if op == "scale" else ("(%x, %g)", "(tensor<4x8xf32>, tensor<8xf32>)")
            self.refused(model(f'%y = "gpt.{op}"{arguments} : {types} -> tensor<4x8xf32>'), f"gpt.{op}", "requires attribute", line=3)
        self.refused(model('%y = "gpt.flash_attention"(%x) {operandSegmentSizes = array<i32: 1>, scale = 1.0 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>'),
                     "gpt.flash_attention", line=3)
        self.refused(model("%r = gpt.rope %q, %p <base 10000.0, pairs half> : tensor<1x4x8xf32>, tensor<4xi32>", "%q: tensor<1x4x8xf32>, %p: tensor<4xi32>"),
                     "gpt.rope", line=3)
        self.refused(model('%y = gpt.silu %x : tensor<4x8xf32>').replace("gpt.name", "gpt.extra_ends = array<i64>, gpt.nam"), "gpt.nam", "gpt.name", line=1)

    def test_cut(self):
        """B40 (d): the model cut at every 1/16 of its length, and on and beside every bracket."""
        places = [len(PICOGPT) * i // 16 for i in range(16)]
        places += [m.start() + 1 for m in list(re.finditer(r"[<>(){}%@:]", PICOGPT))[::37]]
        for place in places:
            with self.subTest(place):
                self.refused(PICOGPT[:place])
        with open(written(PICOGPT[:-4]), "rb") as cut:
            self.refused(cut.read().decode() + "\0\xff\x1b[2J")

    def test_terminal(self):
        """What a model holds does not reach the terminal raw."""
        error = self.refused(model("%y = gpt.silu %x \x1b[31m\x07 : tensor<4x8xf32>"))
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", error))

    def test_foreign_place(self):
        """A place in another file is named, and that file is not read."""
        secret = written("the secret\n", "secret")
        text = model(f'%y = "gpt.silu"(%x) : (tensor<4x8xf32>) -> tensor<4x9xf32> loc("{secret}":1:1)\n%z = gpt.silu %x : tensor<4x8xf32>').replace("%y : t", "%z : t")
        done = run("gptc", written(text), "-o", os.path.join(TEMPORARY, "none"), status=1)
        self.assertIn(f"{secret}:1:1: error: 'gpt.silu' op", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_long_arguments(self):
        for arguments in (["--" + "x" * 100000], ["--emit=" + "x" * 100000], ["-march=" + "x" * 100000], ["x" * 100000, "y"]):
            self.assertLess(len(run("gptc", *arguments, status=2).stderr), 4096)
        self.assertLess(len(run("gptc", "x" * 100000, "-o", "y", status=1, cwd=TEMPORARY).stderr), 4096)

    def test_did_you_mean(self):
        for body in ("gpt.sofmax %x : tensor<4x8xf32>", '"gpt.sofmax"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>', "gtp.softmax %x : tensor<4x8xf32>",
                     "softmax %x : tensor<4x8xf32>"):
            self.refused(model("%y = " + body), "; did you mean 'gpt.softmax'?", line=3, column=6)
        self.refused(model('%y = "gtp.softmax"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>'), "gtp.softmax", "unregistered dialect", line=3)
        self.refused(model("%y = arith.adf %x, %x : tensor<4x8xf32>"), "; did you mean 'arith.addf'?", line=3)
        self.assertNotIn("did you mean", self.refused(model("%y = gpt.convolution %x : tensor<4x8xf32>"), "gpt.convolution", line=3))


main()
