"""A crash in any phase: exit 70, one line with the phase and the reproducer, which its own first line runs again; nothing else is left."""
import os
import re
import shutil
import subprocess
import tempfile

from harness import BIN, TEMPORARY, checkpoint, imported, main, run, unittest, written

PHASES = ["parse", "stepping", "fusion", "kernel", "schedule", "cpu", "llvm", "package"]


def new_folder(*names):
    folder = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), *names)
    os.makedirs(folder, exist_ok=True)
    return folder


class Reproducer(unittest.TestCase):
    def crashed(self, *args, temporary=None, **keywords):
        """Phase and reproducer, which has been run again; args name the output 'kernels' in cwd."""
        temporary = temporary or new_folder("t 'm' p %s\n")
        done = run("gptc", *args, status=70, env={**os.environ, "TMPDIR": temporary}, **keywords)
        self.assertEqual(done.stdout, "")
        found = re.fullmatch(r"gptc: internal error: the phase '(\w+)' crashed; please report it with the reproducer ([^\x00]*)\n", done.stderr)
        self.assertTrue(found, done.stderr)
        return found[1], found[2]

    def test_every_phase(self):
        """The model lies in another folder, with a checkpoint that is named relative to it."""
        folder = new_folder("it's $(touch PWNED) `here`")
        shutil.copytree(checkpoint("gpt2-hf"), os.path.join(folder, "in", "golden"))
        run("gptc-import", "in/golden", "--name", "model", "-o", "in/model.mlir", cwd=folder)
        with open(os.path.join(folder, "in", "model.mlir"), encoding="utf-8") as f:
            source = f.read()
        self.assertIn('gpt.checkpoint = "golden"', source)
        for phase in PHASES:
            with self.subTest(phase):
                reproducer = os.path.join(new_folder(), "re pro.mlir")
                self.assertEqual(self.crashed("in/model.mlir", "-o", "kernels", "-O0", f"--test-crash={phase}", "--reproducer", reproducer, cwd=folder),
                                 (phase, reproducer))
                self.assertEqual(os.listdir(folder), ["in"])
                with open(reproducer, encoding="utf-8") as f:
                    first, rest = f.read().split("\n", 1)
                # The text is read in the first phase; before, there is none.
                self.assertEqual(rest, source if phase != "parse" else "")
                self.assertTrue(first.startswith("// cd "), first)
                again = subprocess.run(["sh", "-c", first.removeprefix("// ")], cwd="/", capture_output=True, text=True, check=False,
                                       env={**os.environ, "PATH": BIN + os.pathsep + os.environ["PATH"], "TMPDIR": os.path.dirname(reproducer)})
                self.assertEqual(again.returncode, 70, again.stderr)
                self.assertIn(f"the phase '{phase}' crashed", again.stderr)
                self.assertEqual(os.listdir(folder), ["in"])
        # Without the crash it compiles: weights and all.
        whole = subprocess.run(["sh", "-c", first.removeprefix("// ").replace(f" --test-crash={phase}", "")], capture_output=True, text=True, check=False)
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(os.path.join(folder, "kernels"))), ["libmodel.a", "libmodel.so", "manifest.json", "model.h", "model.weights"])

    def test_temporary_folder(self):
        """Without --reproducer it lies in the temporary folder, whatever that is called."""
        folder, temporary = new_folder(), new_folder("t 'm' p %s")
        mlir = imported(checkpoint("gpt2-hf"), "model")
        _, reproducer = self.crashed(mlir, "-o", "kernels", "--test-crash=fusion", cwd=folder, temporary=temporary)
        self.assertEqual((os.listdir(folder), os.listdir(temporary)), ([], [os.path.basename(reproducer)]))
        # None can be written: told so, and still 70.
        environment = {**os.environ, "TMPDIR": os.path.join(folder, "none")}
        done = run("gptc", mlir, "-o", "kernels", "--test-crash=fusion", cwd=folder, env=environment, status=70)
        self.assertEqual(done.stderr, "gptc: internal error: the phase 'fusion' crashed; no reproducer could be written\n")
        self.assertEqual(os.listdir(folder), [])

    def test_earlier_package(self):
        """A package that was there stays."""
        folder = new_folder()
        mlir = imported(checkpoint("gpt2-hf"), "model")
        run("gptc", mlir, "-o", "kernels", "-O0", cwd=folder)
        before = sorted(os.listdir(os.path.join(folder, "kernels")))
        for phase in ("cpu", "package"):
            self.crashed(mlir, "-o", "kernels", f"--test-crash={phase}", cwd=folder)
        self.assertEqual((os.listdir(folder), sorted(os.listdir(os.path.join(folder, "kernels")))), (["kernels"], before))

    def test_on_demand(self):
        """--reproducer=FILE writes it for a good and for a refused model too."""
        folder = new_folder()
        file = os.path.join(folder, "again.mlir")
        mlir = imported(checkpoint("gpt2-hf"), "model")
        done = run("gptc", mlir, "--emit=fused", f"--reproducer={file}", cwd=folder)
        with open(file, encoding="utf-8") as f, open(mlir, encoding="utf-8") as m:
            first, rest = f.read().split("\n", 1)
            self.assertEqual(rest, m.read())
        again = subprocess.run(["sh", "-c", first.removeprefix("// ")], capture_output=True, text=True, check=True)
        self.assertEqual(again.stdout, done.stdout)
        self.assertEqual(os.listdir(folder), ["again.mlir"])

        wrong = written("module {")
        run("gptc", wrong, "-o", "kernels", f"--reproducer={file}", cwd=folder, status=1)
        with open(file, encoding="utf-8") as f:
            self.assertEqual(f.read().split("\n", 1)[1], "module {")
        self.assertEqual(os.listdir(folder), ["again.mlir"])
        self.assertIn("another file", run("gptc", wrong, "-o", "kernels", f"--reproducer={wrong}", cwd=folder, status=2).stderr)
        with open(wrong, encoding="utf-8") as f:
            self.assertEqual(f.read(), "module {")
        self.assertIn("/proc/none", run("gptc", mlir, "--emit=fused", "--reproducer=/proc/none", cwd=folder, status=1).stderr)

    def test_hidden(self):
        self.assertNotIn("test-crash", run("gptc", "--help").stdout)
        self.assertNotIn("test-crash", run("gptc", "--test-crush=x", status=2).stderr)


main()
