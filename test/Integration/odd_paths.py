"""Folders of any name do; an output that is a pipe is written in place, not replaced."""
import os
import shutil
import stat
import tempfile
import threading

from emulated import NVCC
from harness import TEMPORARY, checkpoint, compiled_case, main, run, unittest, written

NAMES = ["sp ace 100%", "%s%%%n'quote\"", "$(touch pwned)`x`;*?", "new\nline \u00e9\u6f22", "-dash"]


class OddPaths(unittest.TestCase):
    def test_names(self):
        for name in NAMES:
            with self.subTest(name):
                folder = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), name)
                os.mkdir(folder)
                mlir, package, logits = (os.path.join(folder, name + end) for end in (".mlir", "", ".npy"))
                run("gptc-import", checkpoint("gpt2-hf"), "-o", mlir, "--name", "odd", cwd=folder)
                run("gptc", mlir, "-O0", "-o", package, cwd=folder)
                run("gptc-run", package, "--tokens", "1,2", "-n", "1", "--print-tokens", "--logits", logits, cwd=folder)
                self.assertEqual(sorted(os.listdir(folder)), sorted(os.path.basename(p) for p in (mlir, package, logits)))

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_nvcc(self):
        """nvcc itself pastes the folder for temporary files into command lines."""
        model = written("""module attributes {gpt.name = "odd"} {
          func.func @f(%x: tensor<4xf32> {gpt.arg = "x"}) -> (tensor<4xf32> {gpt.result = "y"}) {
            %y = gpt.silu %x : tensor<4xf32>
            return %y : tensor<4xf32>
          }
        }
        """)
        plain, odd = (os.path.join(tempfile.mkdtemp(dir=TEMPORARY), name) for name in ("plain", "".join(NAMES)))
        made = []
        for folder in (plain, odd):
            os.mkdir(folder)
            here = {"cwd": folder, "env": {**os.environ, "TMPDIR": folder}}
            source = shutil.copy(model, os.path.join(folder, os.path.basename(folder) + ".mlir"))
            run("gptc", source, "--target=cuda", "--emit=cu,ptx,fatbin", "-o", os.path.join(folder, "made"), **here)
            self.assertEqual(sorted(os.listdir(folder)), sorted([os.path.basename(source), "made"]))
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "made"))), ["odd.cu", "odd.fatbin", "odd.ptx"])
            with open(os.path.join(folder, "made", "odd.fatbin"), "rb") as f:
                made.append(f.read())
        self.assertTrue(made[0] == made[1])

    def piped(self, tool, *args):
        """What `tool` writes to the pipe that stands for {} in args."""
        pipe = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "pipe")
        os.mkfifo(pipe)
        got = []

        def drain():
            with open(pipe, "rb") as f:
                got.append(f.read())

        reader = threading.Thread(target=drain, daemon=True)
        reader.start()
        run(tool, *(pipe if a == "{}" else a for a in args))
        reader.join(timeout=20)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        self.assertEqual(os.listdir(os.path.dirname(pipe)), ["pipe"])
        return got[0]

    def test_pipes(self):
        self.assertIn(b"module", self.piped("gptc-import", checkpoint("gpt2-hf"), "-o", "{}"))
        package = compiled_case("gpt2-hf")
        self.assertTrue(self.piped("gptc-run", package, "--tokens", "1,2", "-n", "0", "--logits", "{}").startswith(b"\x93NUMPY"))


main()
