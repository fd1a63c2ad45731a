"""Standard streams that are full or closed: no tool aborts, output that is lost is an error, and no file gets the number of a closed stream."""
import os
import subprocess
import unittest

import numpy as np

from harness import BIN, DOCS, checkpoint, compiled_case, imported, main, run, written
from models import new_folder

SOFTMAX = """module attributes {gpt.name = "s"} {
  func.func @f(%x: tensor<?x8xf32> {gpt.arg = "x"}) -> (tensor<?x8xf32> {gpt.result = "y"}) {
    %y = gpt.softmax %x : tensor<?x8xf32>
    return %y : tensor<?x8xf32>
  }
}
"""


def started(call, closed=(), **streams):
    """The tool with these descriptors closed."""
    def close():
        for descriptor in closed:
            os.close(descriptor)
    tool, *args = call
    return subprocess.run([os.path.join(BIN, tool), *map(str, args)], preexec_fn=close, check=False,
                          **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | streams)


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model, cls.package = imported(checkpoint("gpt2-hf"), "model"), compiled_case("gpt2-hf")
        cls.small = written(SOFTMAX)
        cls.inputs = os.path.join(new_folder(), "x.npz")
        np.savez(cls.inputs, x=np.ones((2, 8), np.float32))

    def test_printing(self):
        """What prints a product, and what prints none: every tool, --help, an error of each kind."""
        entry = "--entry", "f", "--inputs", self.inputs
        prints = [("gptc-run", self.package, "--tokens", "1,2", "-n", "3", "--print-tokens"), ("gptc-bench", self.package, "--prefill", 4, "--decode", 2, "--runs", 1),
                  ("gptc", self.small, "--emit=fused"), ("gptc", "--list-targets"), ("gptc", "--list-fusions"), ("gptc-import", checkpoint("gpt2-hf")),
                  ("gptc-import", checkpoint("gpt2-hf"), "--dry-run"), ("gptc-opt", self.small), ("gptc-check", self.small, *entry)]
        prints += [(tool, "--help") for tool in ("gptc", "gptc-import", "gptc-run", "gptc-bench", "gptc-check", "gptc-opt")]
        prints += [(tool, "--version") for tool in ("gptc", "gptc-import", "gptc-run", "gptc-bench", "gptc-check")]
        none = {("gptc", "nothing.mlir", "-o", "x"): 1, ("gptc", "--emit"): 2, ("gptc-import", "nothing"): 1, ("gptc-import", "--what"): 2, ("gptc-opt", "nothing.mlir"): 1,
                ("gptc-run", self.package, "--tokens", "999"): 1, ("gptc-run", self.package): 2, ("gptc-bench", self.package + "x"): 1,
                ("gptc-check", "nothing.mlir"): 1, ("gptc-check", "--what"): 2, ("gptc-lsp-server",): 1}
        with open("/dev/full", "wb") as full:
            for call in prints:
                with self.subTest(call):
                    self.lost(call, 0, stderr=full)
                    self.lost(call, 0, closed=[2])
                    # LLVM's own parser of options ends gptc-opt --help.
                    why = "." if call == ("gptc-opt", "--help") else r"(error: standard output: cannot write: {}\n)$"
                    self.assertRegex(self.lost(call, 1, stdout=full, stderr=subprocess.PIPE), why.format("No space left on device"))
                    self.assertRegex(self.lost(call, 1, closed=[1], stderr=subprocess.PIPE), why.format("Bad file descriptor"))
                    self.lost(call, 1, stdout=full, stderr=full)
                    self.lost(call, 1, closed=[0, 1, 2])
            for call, status in none.items():
                with self.subTest(call):
                    self.lost(call, status, stdout=full, stderr=full)
                    self.lost(call, status, closed=[0, 1, 2])

    def lost(self, call, status, **streams):
        done = started(call, **streams)
        self.assertEqual(done.returncode, status, (done.stderr or b"").decode())
        return (done.stderr or b"").decode()

    def test_files(self):
        """Files get what is theirs while every standard stream is closed."""
        folder = new_folder()
        path = lambda name: os.path.join(folder, name)
        calls = {"a.mlir": ("gptc-import", checkpoint("gpt2-hf"), "--name", "model", "-v", "-o"), "opt.mlir": ("gptc-opt", self.small, "-o"),
                 "y.npz": ("gptc-run", self.small_package(), "--entry", "f", "--inputs", self.inputs, "--outputs"),
                 "logits.npy": ("gptc-run", self.package, "--tokens", "1,2", "-n", "3", "--print-tokens", "--logits")}
        for name, call in calls.items():
            with self.subTest(call):
                expected = started((*call, path("open " + name)))
                closed = started((*call, path(name)), closed=[0, 1, 2])
                self.assertEqual((expected.returncode, closed.returncode), (0, 1 if "--print-tokens" in call else 0))
                with open(path("open " + name), "rb") as a, open(path(name), "rb") as b:
                    self.assertEqual(a.read(), b.read())
        call = "gptc", os.path.join(DOCS, "picogpt.mlir"), "-v", "--timing", "--remarks=fusion", "-o"
        self.assertEqual((started((*call, path("p1"))).returncode, started((*call, path("p2")), closed=[0, 1, 2]).returncode), (0, 0))
        self.assertEqual(sorted(os.listdir(path("p1"))), sorted(os.listdir(path("p2"))))
        for name in os.listdir(path("p1")):
            with open(os.path.join(path("p1"), name), "rb") as a, open(os.path.join(path("p2"), name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)

    def small_package(self):
        folder = os.path.join(new_folder(), "kernels")
        run("gptc", self.small, "-o", folder)
        return folder

    def test_closed_input(self):
        """A model from a closed standard input is an error that says so."""
        for call in (("gptc", "-", "--emit=fused"), ("gptc-opt", "-"), ("gptc-opt",)):
            with self.subTest(call):
                done = started(call, closed=[0], stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, b"error: .*Bad file descriptor")


main()
