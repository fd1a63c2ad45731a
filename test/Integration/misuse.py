"""Wrong calls give a status and a message, and the next valid call gives the usual bits."""
import os
import re
import shutil
import tempfile

import numpy as np

from harness import TEMPORARY, compiled, compiled_case, main, random_tokens, run, same_bits, unittest, written
from package import BAD_WEIGHTS, INVALID_ARGUMENT, LIMIT, OUT_OF_RANGE, Error, Package


class Misuse(unittest.TestCase):
    def refused(self, statuses, call, *args, **keywords):
        with self.assertRaises(Error) as caught:
            call(*args, **keywords)
        self.assertIn(caught.exception.status, statuses, caught.exception.message)
        self.assertTrue(caught.exception.message)
        return caught.exception.message

    def each_model(self, check):
        for case in ("gpt2-hf", "llama-hf"):
            for level in (2, 0):
                with self.subTest(case=case, level=level):
                    check(Package(compiled_case(case, level)))

    def test_steps(self):
        def check(package):
            context, vocab = package.info.context, package.info.vocab
            text = random_tokens(9, vocab)
            with package.open() as model, model.session(tokens=context + 8, sequences=2) as session:
                usual = session.step(text)
                wrong = [
                    ("token id too large", [OUT_OF_RANGE], ([1, vocab],)),
                    ("negative token id", [OUT_OF_RANGE], ([1, -1],)),
                    ("prompt longer than the context", [OUT_OF_RANGE], ([1] * (context + 1),)),
                    ("position after the end", [OUT_OF_RANGE], ([1], [10])),
                    ("negative position", [OUT_OF_RANGE], ([1], [-1])),
                    ("gap between positions", [OUT_OF_RANGE, INVALID_ARGUMENT], ([1, 2], [0, 2])),
                    ("position twice", [OUT_OF_RANGE, INVALID_ARGUMENT], ([1, 2], [0, 0])),
                    ("sequence too large", [OUT_OF_RANGE], ([1], [0], [2])),
                    ("negative sequence", [OUT_OF_RANGE], ([1], [0], [-1])),
                    ("sequence in two places", [OUT_OF_RANGE, INVALID_ARGUMENT], ([1, 2, 3], [0, 0, 1], [0, 1, 0])),
                    ("row too large", [OUT_OF_RANGE], ([1], [0], [0], [1])),
                    ("negative row", [OUT_OF_RANGE], ([1], [0], [0], [-1])),
                    ("more tokens than the limit", [LIMIT], ([1] * (context + 9), [0] * (context + 9))),
                ]
                for what, statuses, args in wrong:
                    with self.subTest(what):
                        self.refused(statuses, session.step, *args)
                        self.assertTrue(same_bits(session.step(text[8:], [8]), usual[8:]), f"after {what}")
                for what, args in [("from an unknown sequence", (5, 0, 1)), ("to an unknown sequence", (0, 5, 1)),
                                   ("beyond the end", (0, 1, 10)), ("negative length", (0, 1, -1))]:
                    with self.subTest("fork " + what):
                        self.refused([OUT_OF_RANGE, INVALID_ARGUMENT], session.fork, *args)
                        self.assertTrue(same_bits(session.step(text[8:], [8]), usual[8:]), f"after fork {what}")
                self.refused([INVALID_ARGUMENT, OUT_OF_RANGE], session.run, "nowhere", {}, [])
                self.assertTrue(same_bits(session.step(text), usual))

        self.each_model(check)

    def test_pages_run_out(self):
        def check(package):
            text = random_tokens(int(package.info.page) + 1, package.info.vocab)
            with package.open() as model, model.session(sequences=2, pages=1, tokens=len(text)) as session:
                usual = session.step(text[:-1])
                self.refused([LIMIT], session.step, text)
                self.assertTrue(same_bits(session.step(text[:-1]), usual))

        self.each_model(check)

    def test_weights(self):
        package = Package(compiled_case("gpt2-hf"))
        with open(os.path.join(package.folder, package.name + ".weights"), "rb") as f:
            whole = f.read()
        middle = len(whole) // 2
        broken = {"empty": b"", "half": whole[:middle], "short by one": whole[:-1], "long by one": whole + b"\0",
                  "garbage": b"x" * len(whole), "flipped bit": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:]}
        for what, content in broken.items():
            with self.subTest(what):
                path = os.path.join(TEMPORARY, "broken.weights")
                with open(path, "wb") as f:
                    f.write(content)
                self.refused([BAD_WEIGHTS], package.open, path=path, verify=True)
        self.refused([BAD_WEIGHTS], package.open, path=os.path.join(TEMPORARY, "nowhere.weights"))
        other = compiled_case("llama-hf")
        self.refused([BAD_WEIGHTS], package.open, path=os.path.join(other, "model.weights"))
        package.open(verify=True).__exit__()

    def test_truncated_library(self):
        """It would fault where a page is missing."""
        folder = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "kernels")
        shutil.copytree(compiled_case("gpt2-hf"), folder)
        library = os.path.join(folder, "libmodel.so")
        size = os.path.getsize(library)
        for left in (size - 1, size - 4096, size // 2, 5000, 200, 64, 63, 10, 0):
            with self.subTest(left):
                os.truncate(library, left)
                for tool in (["gptc-run", folder, "--tokens", "1", "-n", "1"], ["gptc-bench", folder]):
                    self.assertRegex(run(*tool, status=1).stderr, rf"^{tool[0]}: error: .*libmodel.so: " + ("truncated: expected" if left >= 64 else "cannot be loaded"))

    def test_command_line(self):
        package = compiled_case("gpt2-hf")
        for tokens in ("257", "-1", "1,2,99999999999999999999", "1,,2", "x"):
            with self.subTest(tokens):
                done = run_wrong("gptc-run", package, f"--tokens={tokens}", "-n", "1")
                self.assertIn("error: ", done.stderr)
                self.assertEqual(done.stdout, "")
        done = run("gptc-run", package, "--tokens", ",".join(["1"] * 129), "-n", "0", status=1)
        self.assertIn("129", done.stderr)
        self.assertIn("128", done.stderr)
        run("gptc-run", os.path.join(TEMPORARY, "no package"), "--tokens", "1", "-n", "1", status=1)

    def test_arrays_of_an_entry(self):
        """An archive for --entry: names, element types and shapes that do not fit are named as the archive has them."""
        model = written("""module attributes {gpt.name = "rows"} {
          func.func @f(%x: tensor<?x8xf32> {gpt.arg = "x"}, %rows: tensor<?xi32> {gpt.arg = "rows"}) -> (tensor<?x8xf32> {gpt.result = "y"}) {
            %y = gpt.select_rows %x, %rows : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
            return %y : tensor<?x8xf32>
          }
        }""")
        package, inputs = compiled(model), os.path.join(os.path.dirname(model), "x.npz")
        tools = ("gptc-run", package, "--outputs", os.path.join(os.path.dirname(model), "y.npz")), ("gptc-check", model, "--package", package)
        x, rows = np.ones((3, 8), np.float32), np.array([2, 0])
        good = {"x": x, "rows": rows}, {"x": x.astype(np.float64), "rows": rows.astype(np.uint8), "y": x}, {"x": x, "rows": np.array([True])}
        bad = [({"x": x, "rows": rows, "row": rows}, "array 'row': entry 'f' has no input of that name, did you mean 'rows'?"),
               ({"x": x, "rows": rows, "unlike": rows}, "array 'unlike': entry 'f' has no input of that name, it has x, rows"),
               ({"x": x, "Rows": rows}, "array 'Rows': entry 'f' has no input of that name, did you mean 'rows'?"), ({"x": x}, "input 'rows' is missing"),
               ({"x": x, "rows": rows[None]}, "input 'rows': expected shape [any] (any: a size of 1 or more), got [1, 2]"),
               ({"x": x[:, :7], "rows": rows}, "input 'x': expected shape [3, 8], got [3, 7]")]
        bad += [({"x": x, "rows": rows.astype(kind)}, f"array 'rows': expected int32, or int64, uint8 or bool that are converted to it, got {kind}") for kind in ("float32", "float64")]
        bad += [({"x": x.astype(kind), "rows": rows}, f"array 'x': expected float32, or float64 that is rounded to it, got {kind}") for kind in ("int32", "int64", "bool")]
        for tool in tools:
            for arrays, message in [(arrays, None) for arrays in good] + bad:
                with self.subTest(tool=tool[0], message=message):
                    np.savez(inputs, **arrays)
                    done = run(*tool, "--entry", "f", "--inputs", inputs, status=1 if message else 0)
                    if message:
                        self.assertRegex(done.stderr, "error: .*" + re.escape(message) + r"\n$")


def run_wrong(*args):
    """Input that is wrong, or a command line that is: exit status 1 or 2."""
    try:
        return run(*args, status=1)
    except AssertionError:
        return run(*args, status=2)


main()
