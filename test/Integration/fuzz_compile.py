"""Random graphs of gptc-fuzz-fusion as compiled code: at -O0 and -O2 every kernel and every result agrees with the graph as it is spelled."""
import os
import re
import subprocess

import numpy as np

from harness import BIN, TEMPORARY, main, manifest, run, unittest, written

FUZZER = os.path.join(BIN, "gptc-fuzz-fusion")
SEEDS = range(1, 9)
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
    def test_seeds(self):
        compiled = 0
        for seed in SEEDS:
            text = graph(seed)
            model = written(text)
            for level in ("-O0", "-O2"):
                with self.subTest(seed=seed, level=level):
                    package = os.path.join(os.path.dirname(model), "kernels" + level)
                    done = subprocess.run([os.path.join(BIN, "gptc"), model, "-o", package, level], capture_output=True, text=True)
                    if done.returncode == 1:  # what kernels do not cover is refused, with its place
                        self.assertRegex(done.stderr, r"model.mlir:\d+:\d+: error: ")
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    compiled += 1
                    arguments = []
                    entry = manifest(package)["entries"][0]["name"]
                    if entry != "step":
                        inputs(text, os.path.join(TEMPORARY, "inputs.npz"))
                        arguments = ["--entry", entry, "--inputs", os.path.join(TEMPORARY, "inputs.npz")]
                    run("gptc-check", model, "--package", package, *arguments)
        self.assertGreater(compiled, len(SEEDS))  # half of them


main()
