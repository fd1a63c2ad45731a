#!/usr/bin/env python3
"""An LM head of SmolLM2's size with its argmax, in one package with fuse-argmax and in one without, in turns.

    lm_head.py BIN      BIN is the folder with gptc; needs numpy

Prints the medians of both in ms, and median and 10 and 90 % quantiles of the ratio of pairs; weights are random, two threads.
"""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Integration"))
from package import Package, Tensor  # noqa: E402

N, K = 49152, 576
MODEL = f"""module attributes {{gpt.name = "head"}} {{
  ml_program.global private @w(#ml_program.extern) : tensor<{N}x{K}xf32>
  ml_program.global private @g(#ml_program.extern) : tensor<{K}xf32>
  func.func @head(%x: tensor<?x{K}xf32> {{gpt.arg = "x"}}) -> (tensor<?xi32> {{gpt.result = "tokens"}}) {{
    %w = ml_program.global_load_const @w : tensor<{N}x{K}xf32>
    %g = ml_program.global_load_const @g : tensor<{K}xf32>
    %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x{K}xf32>, tensor<{K}xf32>
    %y = gpt.linear %n, %w : tensor<?x{K}xf32>, tensor<{N}x{K}xf32> -> tensor<?x{N}xf32>
    %t = gpt.argmax %y : tensor<?x{N}xf32> -> tensor<?xi32>
    return %t : tensor<?xi32>
  }}
}}
"""


def run(session, x):
    """Seconds, and the tokens."""
    tokens = np.zeros(len(x), np.int32)
    inputs, outputs = (Tensor * 1)(Tensor.of("x", x)), (Tensor * 1)(Tensor.of("tokens", tokens))
    begin = time.perf_counter()
    session.package.check(session.package.api.run(session.handle, b"head", inputs, 1, outputs, 1))
    return time.perf_counter() - begin, tokens


def main():
    random, sessions = np.random.default_rng(0), {}
    weights = {"w": random.normal(size=(N, K)).astype(np.float32), "g": np.ones(K, np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "head.mlir")
        with open(model, "w", encoding="utf-8") as f:
            f.write(MODEL)
        for name, options in (("fused", []), ("apart", ["--disable-fusion=fuse-argmax"])):
            subprocess.run([os.path.join(sys.argv[1], "gptc"), model, "-o", os.path.join(folder, name), *options], check=True)
            sessions[name] = Package(os.path.join(folder, name)).open(weights).session(threads=2)
        for rows in (1, 8, 128):
            x, times = random.normal(size=(rows, K)).astype(np.float32), {name: [] for name in sessions}
            assert (run(sessions["fused"], x)[1] == run(sessions["apart"], x)[1]).all()
            for turn in range(40 if rows < 100 else 16):
                for name in list(sessions)[::1 if turn % 2 else -1]:
                    times[name].append(run(sessions[name], x)[0])
            low, ratio, high = np.quantile(np.divide(times["apart"], times["fused"]), [0.1, 0.5, 0.9])
            print(f"{rows} rows: fused {np.median(times['fused']) * 1e3:.2f} ms, apart {np.median(times['apart']) * 1e3:.2f} ms, "
                  f"ratio {ratio:.3f} ({low:.3f} .. {high:.3f})", flush=True)


if __name__ == "__main__":
    main()
