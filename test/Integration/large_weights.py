"""Weights of more than 2^31 bytes (B35): they are never in the object, so that it links, and every address into them has 64 bits."""
import os
import pty
import re
import struct
import subprocess

import numpy as np

from harness import BIN, compiled, main, manifest, run, unittest, written
from models import header_of, safetensors
from package import Package

ROWS, K, N = 1_200_000, 512, 16  # 2.46 GB of f32; row 2^20 begins at byte 2^31
TEXT = f"""module attributes {{gpt.name = "large", gpt.checkpoint = "model.safetensors"}} {{
  ml_program.global private @table(#ml_program.extern : tensor<{ROWS}x{K}xf32>) : tensor<{ROWS}x{K}xf32> {{gpt.stored = #gpt.stored<"model.safetensors", "table", f32>}}
  ml_program.global private @behind(#ml_program.extern : tensor<{N}x{K}xf32>) : tensor<{N}x{K}xf32> {{gpt.stored = #gpt.stored<"model.safetensors", "behind", f32>}}
  func.func @rows(%ids: tensor<?xi32> {{gpt.arg = "ids"}}) -> (tensor<?x{K}xf32> {{gpt.result = "rows"}}, tensor<?x{N}xf32> {{gpt.result = "products"}}) {{
    %table = ml_program.global_load_const @table : tensor<{ROWS}x{K}xf32>
    %behind = ml_program.global_load_const @behind : tensor<{N}x{K}xf32>
    %rows = gpt.embedding %table, %ids : tensor<{ROWS}x{K}xf32>, tensor<?xi32> -> tensor<?x{K}xf32>
    %products = gpt.linear %rows, %behind : tensor<?x{K}xf32>, tensor<{N}x{K}xf32> -> tensor<?x{N}xf32>
    return %rows, %products : tensor<?x{K}xf32>, tensor<?x{N}xf32>
  }}
}}
"""
IDS = [0, 7, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, ROWS - 1]


def sparse_weights(folder, rows, behind):
    """The package's weights file, with these rows of the table and zeros, which the disk does not hold, between them."""
    whole = manifest(folder)
    table, last = whole["weights"]
    path = os.path.join(folder, "large.weights")
    with open(path, "wb") as f:
        f.truncate(whole["weights_bytes"])
        f.write(b"GPTCWT01" + struct.pack("<QQQ", int(whole["package_hash"], 16), whole["weights_bytes"], 0))
        for weight, values in ((table, rows), (last, dict(enumerate(behind)))):
            assert weight["layout"] == "panel"
            panel = weight["panel"]  # rows, of which element k lies side by side
            blocks = {}
            for row, numbers in values.items():
                blocks.setdefault(row // panel, np.zeros((K, panel), np.float32))[:, row % panel] = numbers
            for block, numbers in blocks.items():
                f.seek(weight["offset"] + 4 * K * panel * block)
                f.write(numbers.tobytes())
    return path


class Large(unittest.TestCase):
    def test_rows(self):
        random = np.random.default_rng(1)
        rows = {i: random.standard_normal(K).astype(np.float32) for i in IDS}
        behind = random.standard_normal((N, K)).astype(np.float32)
        mlir = written(TEXT)
        for level in (0, 2):
            folder = compiled(mlir, level, "--no-weights", "-march=x86-64-v2")
            self.assertGreater(manifest(folder)["weights"][1]["offset"], 1 << 31)
            for product in ("liblarge.so", "liblarge.a"):
                self.assertLess(os.path.getsize(os.path.join(folder, product)), 1 << 20)
            path = sparse_weights(folder, rows, behind)
            with Package(folder).open(path=path) as model, model.session() as session:
                got = session.run("rows", {"ids": np.array(IDS, np.int32)}, ["rows", "products"])
                alone = session.run("rows", {"ids": np.array(IDS[-1:], np.int32)}, ["rows", "products"])
            expected = np.array([rows[i] for i in IDS])
            np.testing.assert_array_equal(got["rows"], expected)
            np.testing.assert_allclose(got["products"], expected.astype(np.float64) @ behind.T.astype(np.float64), rtol=0, atol=1e-4)
            for name, result in got.items():
                self.assertEqual(result[-1:].tobytes(), alone[name].tobytes())

    def test_addresses(self):
        """No offset into an array is computed in 32 bits."""
        for level in (0, 2):
            text = run("gptc", written(TEXT), f"-O{level}", "--no-weights", "-march=x86-64-v2", "--emit=llvm").stdout
            offsets = re.findall(r"= getelementptr [^\n]*", text)
            self.assertGreater(len(offsets), 100)
            narrow = [line for line in offsets if re.search(r", i(?!64\b)\d+ %", line)]
            self.assertEqual(narrow, [])
            self.assertNotRegex(text, r"inttoptr i32")

    def test_progress(self):
        """On a terminal a line says how much is packed, and is gone in the end; elsewhere there is none."""
        rows = 10_000  # 20 MB
        mlir = written(TEXT.replace(str(ROWS), str(rows)))
        tensors = {"table": np.zeros((rows, K), np.float32), "behind": np.zeros((N, K), np.float32)}
        with open(os.path.join(os.path.dirname(mlir), "model.safetensors"), "wb") as f:
            f.write(safetensors(header_of(tensors), b"".join(array.tobytes() for array in tensors.values())))
        self.assertEqual(run("gptc", mlir, "-o", os.path.dirname(mlir) + "/plain", "-march=x86-64-v2").stderr, "")
        terminal, stderr = pty.openpty()
        done = subprocess.run([os.path.join(BIN, "gptc"), mlir, "-o", os.path.dirname(mlir) + "/told", "-march=x86-64-v2"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=stderr, check=True)
        os.close(stderr)
        said = b""
        while not said.endswith(b" \r"):
            said += os.read(terminal, 4096)
        os.close(terminal)
        self.assertEqual(done.stdout, b"")
        self.assertRegex(said, rb"^(\rgptc: packing weights: \d+ % of 20 MB)+\r +\r$")


main()
