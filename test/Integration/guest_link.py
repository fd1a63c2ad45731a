"""Packages share a program: other weights, and one model under two names, linked and loaded (B42)."""
import os
import shutil
import subprocess

import numpy as np

from harness import HERE, checkpoint, compiled, imported, main, run, same_bits, unittest
from package import Package

NAMES = (("one", "gpt2-hf"), ("two", "llama-hf"), ("same", "gpt2-hf"))
COMPILERS = (("cc", "-std=c99", "-pedantic"), ("cc", "-std=c11"), ("c++", "-x", "c++", "-std=c++17", "-pedantic"))
ROUNDS, PROMPT = 3, [5, 4, 3, 2, 1]


def folders():
    return {name: compiled(imported(checkpoint(case), name)) for name, case in NAMES}


def alone(folder):
    """What the program writes of one package, by ctypes: the last rows of a prompt and of two steps."""
    with Package(folder).open() as model, model.session(threads=1) as session:
        rows = [session.step(PROMPT)[-1]]
        rows += [session.step(PROMPT[:1], [len(PROMPT) + i])[0] for i in range(ROUNDS - 1)]
    return rows


class Link(unittest.TestCase):
    def check(self, program, *libraries):
        packages = folders()
        weights = [os.path.join(packages[name], name + ".weights") for name, _ in NAMES]
        done = subprocess.run([program, *weights, *libraries], capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = np.frombuffer(done.stdout, np.float32)
        expected = {name: alone(packages[name]) for name, _ in NAMES}
        at = 0
        for turn in range(ROUNDS):
            for name, _ in NAMES:
                row = expected[name][turn]
                self.assertTrue(same_bits(written[at:at + len(row)], row), f"{name}, turn {turn}")
                at += len(row)
        self.assertEqual(at, len(written))
        for one, same in zip(expected["one"], expected["same"]):
            self.assertTrue(same_bits(one, same), "one model under two names")

    def build(self, compiler, *more):
        packages = folders()
        program = os.path.join(packages["one"], "..", "guest_link")
        run(shutil.which(compiler[0]), *compiler[1:], "-Wall", "-Wextra", "-Werror", os.path.join(HERE, "guest_link.c"),
            *(f"-I{packages[name]}" for name, _ in NAMES), "-x", "none", *more, "-o", program)
        return os.path.abspath(program)

    def test_linked(self):
        packages = folders()
        archives = [os.path.join(packages[name], f"lib{name}.a") for name, _ in NAMES]
        for compiler in COMPILERS:
            with self.subTest(compiler):
                self.check(self.build(compiler, "-DLINKED", *archives))

    def test_loaded(self):
        packages = folders()
        libraries = [os.path.join(packages[name], f"lib{name}.so") for name, _ in NAMES]
        for compiler in COMPILERS:
            with self.subTest(compiler):
                self.check(self.build(compiler), *libraries)

    def test_only_prefixed_names(self):
        for name, folder in folders().items():
            for options, file in ((["-g"], f"lib{name}.a"), (["-g"], f"lib{name}.so"), (["-D"], f"lib{name}.so")):
                done = run(shutil.which("nm"), *options, "--defined-only", "--format=posix", os.path.join(folder, file))
                symbols = [line.split()[0] for line in done.stdout.splitlines() if line and not line.endswith(":")]
                self.assertGreaterEqual(len(symbols), 10)
                self.assertEqual([s for s in symbols if not s.startswith(name + "_")], [], file)


main()
