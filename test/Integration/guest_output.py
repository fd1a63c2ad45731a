"""All of a package or none of it: killed compiles, a full disk, folders that cannot be written, odd names, several at once (B46).

GPTC_KILLS: how many compiles are killed (100).
"""
import concurrent.futures
import contextlib
import fcntl
import functools
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from harness import BIN, TEMPORARY, checkpoint, imported, main, run, unittest, written

KILLS = int(os.environ.get("GPTC_KILLS", "100"))
ROOT = os.geteuid() == 0


# One product with a matrix of a golden model: what is killed a hundred times must be small.
MODEL = """module attributes {gpt.checkpoint = "CHECKPOINT", gpt.name = "model"} {
  ml_program.global private @w(#ml_program.extern<tensor<64x256xf32>>) : tensor<64x256xf32> {gpt.stored = #gpt.stored<"model.safetensors", "h.0.mlp.c_fc.weight", f32>}
  func.func @f(%x: tensor<1x64xf32> {gpt.arg = "x"}) -> (tensor<1x256xf32> {gpt.result = "y"}) {
    %w = ml_program.global_load_const @w : tensor<64x256xf32>
    %y = gpt.linear %x, %w in_out : tensor<1x64xf32>, tensor<64x256xf32> -> tensor<1x256xf32>
    return %y : tensor<1x256xf32>
  }
}
"""


@functools.cache
def model():
    return written(MODEL.replace("CHECKPOINT", os.path.abspath(checkpoint("gpt2-hf"))))


def contents(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def new_folder():
    return tempfile.mkdtemp(dir=TEMPORARY)


def start(*args, **keywords):
    keywords = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **keywords}
    return subprocess.Popen([os.path.join(BIN, "gptc"), *args], stdin=subprocess.DEVNULL, **keywords)


@contextlib.contextmanager
def mounted(size, *options):
    """A file system of that many bytes; root only."""
    folder = new_folder()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "none", folder], capture_output=True)
    if done.returncode:
        raise unittest.SkipTest("mount is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.packages = {}
        for level in "02":
            folder = os.path.join(new_folder(), "kernels")
            begin = time.monotonic()
            run("gptc", model(), "-o", folder, "-O" + level)
            cls.seconds = time.monotonic() - begin
            cls.packages[level] = contents(folder)

    def whole(self, folder, levels="2"):
        found = contents(folder)  # assertIn would print megabytes
        self.assertTrue(found in [self.packages[level] for level in levels], f"not a whole package: {sorted(found)}")

    def killed(self, folder, number, how, randomness):
        """Kills a compile: a quarter of them while it writes its files, most as it begins, some anywhere."""
        before = set(os.listdir(folder))
        process = start(model(), "-o", os.path.join(folder, "kernels"))
        if number % 4:
            time.sleep(randomness.uniform(0, self.seconds if number % 8 == 1 else 0.1))
        else:
            written = False
            while process.poll() is None and not written:
                with contextlib.suppress(FileNotFoundError):
                    written = any(os.listdir(os.path.join(folder, name)) for name in set(os.listdir(folder)) - before)
                time.sleep(0.002)
            time.sleep(randomness.uniform(0, 0.02))
        process.send_signal(how)
        return process.wait()

    def kill_many(self, earlier):
        randomness = random.Random(4 + earlier)
        folder = new_folder()
        output = os.path.join(folder, "kernels")
        if earlier:
            run("gptc", model(), "-o", output, "-O0")
        ended = []
        for number in range(KILLS // 2):
            ended.append(self.killed(folder, number, signal.SIGKILL, randomness))
            if earlier or os.path.exists(output):
                self.whole(output, "02")
            if not earlier and ended[-1] == 0:
                shutil.rmtree(output)
        self.assertGreater(ended.count(-signal.SIGKILL), len(ended) // 2)
        self.assertLessEqual(len([name for name in os.listdir(folder) if name != "kernels"]), 2, "killed runs accumulate")
        run("gptc", model(), "-o", output)
        self.whole(output)
        self.assertEqual(os.listdir(folder), ["kernels"])

    def test_killed(self):
        """Without and with an earlier package, side by side."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in [pool.submit(self.kill_many, earlier) for earlier in (False, True)]:
                done.result()

    def test_terminated(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            folder = new_folder()
            status = self.killed(folder, 0, how, random.Random(1))
            self.assertNotEqual(status, 1)
            self.assertLessEqual(set(os.listdir(folder)), {"kernels"})

    def test_killed_import(self):
        """What a signal interrupts is removed, what a killed run has left the next one removes; the earlier file stays till the end."""
        folder = new_folder()
        arguments = ["gptc-import", checkpoint("gpt2-hf"), "--name", "model", "-o", "model.mlir"]
        with open(imported(checkpoint("gpt2-hf"), "model"), "rb") as f:
            expected = f.read()
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (len(expected) // 2, len(expected) // 2))
        for earlier in ([], ["model.mlir"]):
            run(*arguments, cwd=folder, status=-signal.SIGXFSZ, preexec_fn=limit)  # in the middle of the file
            self.assertEqual(os.listdir(folder), earlier)
            with open(os.path.join(folder, ".gptc-killed.tmp"), "wb"), open(os.path.join(folder, ".gptc-abcdef.tmp"), "wb") as held:
                fcntl.flock(held, fcntl.LOCK_EX)  # by a run that is still at work
                run(*arguments, cwd=folder)
                self.assertEqual(sorted(os.listdir(folder)), [".gptc-abcdef.tmp", "model.mlir"])
            run(*arguments, cwd=folder)
            self.assertEqual(contents(folder), {"model.mlir": expected})
        # At any moment.
        for number in range(KILLS // 5):
            process = subprocess.Popen([os.path.join(BIN, arguments[0]), *arguments[1:]], cwd=folder, stderr=subprocess.DEVNULL)
            time.sleep(0.004 * number)
            process.kill()
            process.wait()
            self.assertEqual(contents(folder)["model.mlir"], expected)
        run(*arguments, cwd=folder)
        self.assertEqual(contents(folder), {"model.mlir": expected})

    def test_imports_at_once(self):
        folder = new_folder()
        arguments = [os.path.join(BIN, "gptc-import"), checkpoint("gpt2-hf"), "--name", "model", "-o", "model.mlir"]
        runs = [subprocess.Popen(arguments, cwd=folder, stderr=subprocess.DEVNULL) for _ in range(12)]
        self.assertEqual([process.wait() for process in runs], [0] * 12)
        self.assertEqual(os.listdir(folder), ["model.mlir"])

    @contextlib.contextmanager
    def nvcc(self, text):
        """The environment where nvcc is this shell script, and an empty folder for temporary files."""
        home, temporary = new_folder(), new_folder()
        os.mkdir(os.path.join(home, "bin"))
        with open(os.path.join(home, "bin", "nvcc"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(f.name, 0o755)
        yield {**os.environ, "CUDA_HOME": home, "TMPDIR": temporary}, temporary

    def test_killed_nvcc(self):
        """While nvcc is at work: a signal removes what there is, and what a killed run has left the next one removes."""
        folder = new_folder()
        output = os.path.join(folder, "kernels")
        with self.nvcc("echo > begun; : > \"$TMPDIR/tmpxft\"; exec sleep 3") as (environment, temporary):
            for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
                process = start(model(), "-o", output, "--target=cuda", env=environment)
                while not any(name == "tmpxft" for _, _, names in os.walk(temporary) for name in names):
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                process.send_signal(how)
                self.assertEqual(process.wait(), -how)
                if how != signal.SIGKILL:
                    self.assertEqual((os.listdir(temporary), os.listdir(folder)), ([], []))
            self.assertEqual(len(os.listdir(temporary)), 1)
            with self.nvcc("exit 1") as (failing, _):
                self.refused(model(), "-o", output, "--target=cuda", env={**failing, "TMPDIR": temporary})
            self.assertEqual((os.listdir(temporary), os.listdir(folder)), ([], []))

    def test_full_temporary(self):
        with self.nvcc("exit 1") as (environment, _), mounted(1 << 14) as temporary:
            self.assertIn("No space left", self.refused(model(), "--emit=ptx", "--target=cuda", env={**environment, "TMPDIR": temporary}))
            self.assertEqual(os.listdir(temporary), [])

    def refused(self, *args, **keywords):
        done = run("gptc", *args, status=1, **keywords)
        self.assertIn("error: ", done.stderr)
        self.assertLess(len(done.stderr), 4096)
        return done.stderr

    def test_full_disk(self):
        total = sum(map(len, self.packages["2"].values()))
        for part in (0.02, 0.4, 0.9):
            with self.subTest(part), mounted(int(total * part)) as folder:
                self.assertIn("No space left", self.refused(model(), "-o", os.path.join(folder, "kernels")))
                self.assertEqual(os.listdir(folder), [])
                if part > 0.5:
                    subprocess.run(["mount", "-o", f"remount,size={3 * total}", folder], check=True)
                    run("gptc", model(), "-o", os.path.join(folder, "kernels"))
                    self.whole(os.path.join(folder, "kernels"))
        with mounted(int(total * 1.5)) as folder:
            run("gptc", model(), "-o", os.path.join(folder, "kernels"), "-O0")
            self.refused(model(), "-o", os.path.join(folder, "kernels"))
            self.whole(os.path.join(folder, "kernels"), "0")
            self.assertEqual(os.listdir(folder), ["kernels"])

    def test_file_size_limit(self):
        # Python ignores SIGXFSZ, and so does what it starts: a write fails.
        sizes = sorted(map(len, self.packages["2"].values()))
        for size in (1000, sizes[-2] - 1, sizes[-1] - 1):
            with self.subTest(size):
                folder = new_folder()
                limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
                self.refused(model(), "-o", os.path.join(folder, "kernels"), preexec_fn=limit, restore_signals=False)
                self.assertEqual(os.listdir(folder), [])

    def test_full_stdout(self):
        with open("/dev/full", "wb") as full:
            for option in ("--emit=mlir", "--emit=asm", "--explain-fusion", "--verify-fusions", "--emit=cu"):
                process = start(model(), option, *(["--target=cuda"] if option == "--emit=cu" else []), stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(process.communicate()[1], "gptc: error: standard output: cannot write: No space left on device\n", option)
                self.assertEqual(process.returncode, 1, option)

    def test_folders(self):
        folder = new_folder()
        path = lambda *names: os.path.join(folder, *names)
        self.refused(model(), "-o", path("missing", "kernels"))
        self.assertEqual(os.listdir(folder), [])
        with open(path("file"), "w", encoding="utf-8") as f:
            f.write("mine")
        self.refused(model(), "-o", path("file"))
        self.refused(model(), "-o", path("file", "kernels"))
        os.mkdir(path("notes"))
        with open(path("notes", "note"), "w", encoding="utf-8") as f:
            f.write("mine")
        self.refused(model(), "-o", path("notes"))
        self.assertEqual(contents(path("notes")), {"note": b"mine"})
        os.mkdir(path("package"))
        os.symlink("package", path("link"))
        for level in "02":  # an empty folder, then a package
            run("gptc", model(), "-o", path("link"), "-O" + level)
            self.whole(path("package"), level)
            run("gptc", model(), "-o", path("package") + "/", "-O" + level)
            self.whole(path("package"), level)
        self.assertTrue(os.path.islink(path("link")))
        self.assertEqual(sorted(os.listdir(folder)), ["file", "link", "notes", "package"])

    def test_read_only(self):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(mounted(1 << 20, "ro")) if ROOT else new_folder()
            os.chmod(folder, 0o555) if not ROOT else None
            message = self.refused(model(), "-o", os.path.join(folder, "kernels"))
            self.assertIn("Read-only" if ROOT else "denied", message)
            self.assertEqual(os.listdir(folder), [])

    def test_names(self):
        folder = os.path.join(new_folder(), "Modèle 模型 'x' \"y\"")
        temporary = os.path.join(new_folder(), "t m p")
        os.mkdir(folder)
        os.mkdir(temporary)
        environment = {**os.environ, "TMPDIR": temporary}
        here = {"cwd": folder, "env": environment}
        weights = ["--checkpoint", checkpoint("gpt2-hf")]  # the copies lie elsewhere than the model they are of

        def check(output, name):
            found = contents(os.path.join(folder, output))
            found["manifest.json"] = found["manifest.json"].replace(name.encode(), b"model.mlir")
            self.assertTrue(found == self.packages["0"], output)
            shutil.rmtree(os.path.join(folder, output))

        for name in ("my model (v2) & $(touch PWNED).mlir", "-model.mlir", "`touch PWNED`;.mlir"):
            shutil.copy(model(), os.path.join(folder, name))
            out = "out of " + name
            if name[0] == "-":
                self.assertIn("unknown option", run("gptc", "-O0", "-o", out, name, status=2, **here).stderr)
            run("gptc", "-O0", "-o", out, *weights, "./" + name, **here)
            check(out, name)
            os.remove(os.path.join(folder, name))
        with open(model(), encoding="utf-8") as f:
            done = subprocess.run([os.path.join(BIN, "gptc"), "-O0", "-o", "of - stdin", *weights, "-"], stdin=f, capture_output=True, **here)
        self.assertEqual(done.returncode, 0, done.stderr)
        check("of - stdin", "<stdin>")
        self.assertEqual((os.listdir(folder), os.listdir(temporary)), ([], []))
        self.assertEqual(os.listdir(os.path.dirname(folder)), [os.path.basename(folder)])

    def test_at_once(self):
        folder = new_folder()
        for again in range(2):  # a new name, then a package that is there all the time
            outputs = ["kernels"] * 3 + ["other"]
            runs = [start(model(), "-O0", "-o", os.path.join(folder, o), stderr=subprocess.PIPE) for o in outputs]
            while again and any(process.poll() is None for process in runs):
                self.assertTrue(os.path.exists(os.path.join(folder, "kernels", "model.weights")), "no package for a moment")
            for process in runs:
                _, error = process.communicate()
                self.assertEqual((process.returncode, error), (0, b""))
            for output in set(outputs):
                self.whole(os.path.join(folder, output), "0")
            self.assertEqual(set(os.listdir(folder)), set(outputs))


main()
