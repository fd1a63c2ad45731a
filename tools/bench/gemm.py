#!/usr/bin/env python3
"""GEMMs of GPT-2's shapes with what is fused into them, against OpenBLAS's sgemm alone, in turns.

    gemm.py [--bin DIR] [--march native] [--rows 512] [--threads 1,2] [--rounds 21] [--venv DIR] [--json FILE]

gptc computes x W + bias, and GELU or a residual after it as GPT-2 has them, from weights that it packed when the package was opened;
OpenBLAS, called by numpy, computes x W alone into an array that is there, and packs W in every call, as its interface has it. Both read f32 and the
same numbers. The results are compared with a float64 product first. Prints for each shape and number of threads the medians in GFLOP/s of
the product, and median and range of the ratio of a round's two times (above 1: gptc is faster), as Markdown. numpy and threadpoolctl are installed from PyPI into
--venv (default build/peers); OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset. The kernels that OpenBLAS chose are in the heading.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(HERE, "peers"), os.path.join(ROOT, "test", "Integration")]
SHAPES = [("qkv", 768, 2304, ""), ("up", 768, 3072, "gelu"), ("down", 3072, 768, "residual"), ("out", 768, 768, "residual")]


def model():
    """A function for each shape: x, and a residual r, to y."""
    lines = ['module attributes {gpt.name = "gemms"} {']
    for name, k, n, after in SHAPES:
        lines += [f"  ml_program.global private @{name}.w(#ml_program.extern) : tensor<{k}x{n}xf32>",
                  f"  ml_program.global private @{name}.b(#ml_program.extern) : tensor<{n}xf32>"]
    for name, k, n, after in SHAPES:
        y = f"tensor<?x{n}xf32>"
        residual = f', %r: {y} {{gpt.arg = "r"}}' if after == "residual" else ""
        lines += [f'  func.func @{name}(%x: tensor<?x{k}xf32> {{gpt.arg = "x"}}{residual}) -> ({y} {{gpt.result = "y"}}) {{',
                  f"    %w = ml_program.global_load_const @{name}.w : tensor<{k}x{n}xf32>",
                  f"    %b = ml_program.global_load_const @{name}.b : tensor<{n}xf32>",
                  f"    %y = gpt.linear %x, %w bias %b in_out : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>, tensor<{n}xf32> -> {y}"]
        last = {"": [], "gelu": [f"    %z = gpt.gelu tanh %y : {y}"], "residual": [f"    %z = arith.addf %r, %y : {y}"]}[after]
        lines += last + [f"    return %{'z' if last else 'y'} : {y}", "  }"]
    return "\n".join(lines + ["}", ""])


def expected(x, w, b, r, after):
    import numpy as np
    y = x.astype(np.float64) @ w + b
    if after == "gelu":
        return 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))
    return y + r if after == "residual" else y


def entry(session, name, tensors, y):
    """A call without anything that numpy would do in it."""
    from package import Tensor
    inputs, outputs = (Tensor * len(tensors))(*(Tensor.of(*item) for item in tensors.items())), (Tensor * 1)(Tensor.of("y", y))
    run, check, handle = session.package.api.run, session.package.check, session.handle
    return lambda: check(run(handle, name.encode(), inputs, len(inputs), outputs, 1))


def seconds(call, pause=0.1, warm=0.05):
    """Median of three calls after warm ones. The pause lets the other's threads stop to spin, as OpenBLAS's do after a call; the warm calls last until
    the system has spread the threads over the CPUs again."""
    time.sleep(pause)
    begin, times = time.perf_counter(), []
    while time.perf_counter() - begin < warm:
        call()
    for _ in range(3):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(a, model, weights, threads):
    import numpy as np
    import threadpoolctl
    random, results = np.random.default_rng(1), []
    session = model.session(threads=threads)
    with threadpoolctl.threadpool_limits(threads, user_api="blas"):
        for name, k, n, after in SHAPES:
            x, r = random.standard_normal((a.rows, k), np.float32), random.standard_normal((a.rows, n), np.float32)
            w, b, y, product = weights[name + ".w"], weights[name + ".b"], np.empty((a.rows, n), np.float32), np.empty((a.rows, n), np.float32)
            calls = {"gptc": entry(session, name, {"x": x} | ({"r": r} if after == "residual" else {}), y), "openblas": lambda: np.matmul(x, w, out=product)}
            times = {peer: [] for peer in calls}
            for peer in calls:
                calls[peer]()
            wanted, bound = expected(x, w, b, r, after), 1e-4 * k ** 0.5
            if not (np.abs(y - wanted).max() <= bound and np.abs(product - expected(x, w, 0, 0, "")).max() <= bound):
                raise SystemExit(f"gemm.py: {name}: results differ from a float64 product by more than {bound:.1e}")
            for turn in range(a.rounds):
                for peer in list(calls)[::1 if turn % 2 else -1]:
                    times[peer].append(seconds(calls[peer]))
            ratios = [y / x for x, y in zip(times["gptc"], times["openblas"])]
            rate = {peer: 2 * a.rows * k * n / statistics.median(times[peer]) * 1e-9 for peer in calls}
            results.append({"name": name, "rows": a.rows, "k": k, "n": n, "fused": "bias" + (" " + after if after else ""), "threads": threads,
                            "gptc_s": times["gptc"], "openblas_s": times["openblas"], "gptc_gflops": rate["gptc"], "openblas_gflops": rate["openblas"],
                            "ratio": statistics.median(ratios)})
            print(f"| {a.rows} x {k} x {n} | bias{', ' + after if after else ''} | {threads} | {rate['gptc']:.0f} | {rate['openblas']:.0f} | "
                  f"{statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}) |", flush=True)
    return results


def work(a):
    import numpy as np
    import threadpoolctl
    from package import Package
    random = np.random.default_rng(0)
    weights = {}
    for name, k, n, _ in SHAPES:
        weights |= {name + ".w": random.standard_normal((k, n), np.float32), name + ".b": random.standard_normal(n, np.float32)}
    blas = next(pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")
    about = {"openblas": f"{blas['internal_api']} {blas['version']}", "kernels": blas["architecture"], "numpy": np.__version__}
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "gemms.mlir")
        with open(text, "w", encoding="utf-8") as f:
            f.write(model())
        subprocess.run([os.path.join(a.bin, "gptc"), text, "-march=" + a.march, "-o", os.path.join(folder, "gemms")], check=True)
        opened = Package(os.path.join(folder, "gemms")).open(weights)
        print(f"gptc for {a.march} against {about['openblas']} with its {about['kernels']} kernels, medians of {a.rounds} rounds\n")
        print("| rows x K x N | fused | threads | gptc, GFLOP/s | OpenBLAS, GFLOP/s | ratio |\n| --- | --- | --- | --- | --- | --- |")
        about["gemms"] = [row for threads in a.threads for row in measure(a, opened, weights, threads)]
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(about, f, indent=1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    p.add_argument("--march", default="native")
    p.add_argument("--rows", type=int, default=512)
    p.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    p.add_argument("--rounds", type=int, default=21)
    p.add_argument("--venv", default=os.path.join(ROOT, "build", "peers"))
    p.add_argument("--json")
    a = p.parse_args()
    if os.environ.get("GPTC_GEMM_WORKER"):
        return work(a)
    import environment
    python = environment.make(a.venv)
    reason = environment.install(python, ["numpy", "threadpoolctl"])
    if reason:
        print(f"gemm.py: {reason}", file=sys.stderr)
        return 1
    threads = str(max(a.threads))
    return subprocess.run([python, __file__, *sys.argv[1:]], env=environment.variables({"GPTC_GEMM_WORKER": "1", "OPENBLAS_NUM_THREADS": threads}.items())).returncode


if __name__ == "__main__":
    sys.exit(main())
