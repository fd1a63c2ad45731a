"""Random graphs of gptc-fuzz-fusion as compiled code: at -O0 and -O2 every kernel and every result agrees with the graph as it is spelled."""
import os
import re
import subprocess

import numpy as np

from harness import BIN, TEMPORARY, main, manifest, run, unittest, written

FUZZER = os.path.join(BIN, "gptc-fuzz-fusion")
GRAPHS = 7
ARGUMENT = re.compile(r'%\w+: tensor<((?:[?\d]+x)*)(f32|i32|i1)> \{gpt\.arg = "(\w+)"\}')


def graph(seed):
    return subprocess.run([FUZZER, "--seed", str(seed)], capture_output=True, text=True, check=True).stdout


def inputs(text, path):
    """Arguments of an entry; every open size is 5."""
    random = np.random.default_rng(0)
    arrays = {}
    for sizes, element, name in ARGUMENT.findall(text):
        shape = [5 if size == "?" else int(size) for size in sizes.split("x")[:-1]]
        if name == "positions":
            arrays[name] = np.arange(shape[0], dtype=np.int32)
        elif element == "i32":
            arrays[name] = random.integers(0, 11, shape, dtype=np.int32)
        elif element == "i1":
            arrays[name] = (random.random(shape) < 0.7).astype(np.uint8)
        else:
            arrays[name] = random.uniform(-1, 1, shape).astype(np.float32)
    np.savez(path, **arrays)


@unittest.skipUnless(os.path.exists(FUZZER), "no gptc-fuzz-fusion")
class FuzzCompile(unittest.TestCase):
    def checked(self, text, level):
        """False if the compiler refuses the graph: what kernels do not cover (tensor.concat, another result of a step), with its place."""
        model = written(text)
        package = os.path.join(os.path.dirname(model), "kernels")
        done = subprocess.run([os.path.join(BIN, "gptc"), model, "-o", package, level], capture_output=True, text=True)
        if done.returncode == 1:
            self.assertRegex(done.stderr, r"model.mlir:\d+:\d+: error: ")
            return False
        self.assertEqual(done.returncode, 0, done.stderr)
        arguments = []
        entry = manifest(package)["entries"][0]["name"]
        if entry != "step":
            inputs(text, os.path.join(TEMPORARY, "inputs.npz"))
            arguments = ["--entry", entry, "--inputs", os.path.join(TEMPORARY, "inputs.npz")]
        run("gptc-check", model, "--package", package, *arguments)
        return True

    def test_graphs(self):
        checked = seed = 0
        while checked < GRAPHS:
            seed += 1
            self.assertLessEqual(seed, 3 * GRAPHS, "most graphs are refused")
            text = graph(seed)
            with self.subTest(seed=seed):
                checked += self.checked(text, "-O2") and self.checked(text, "-O0")


main()
