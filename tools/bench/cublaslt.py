#!/usr/bin/env python3
"""Time the GEMM kernels of a package for a GPU against cuBLASLt on the same shapes, in turns.

    cublaslt.py PACKAGE [--tokens 512,1] [--rounds 20] [--type bf16] [--algorithms 8] [--library libcublasLt.so] [--json]

For each number of tokens, a round is one step of the package, whose kernels are timed one by one (the events of gptc_api::observe), and
cuBLASLt on the shapes of the GEMMs among them, timed the same way: an event, the kernel, an event, wait. Every other round begins with
cuBLASLt. It reads weights of its own for every call, as a model does, so that none stays in the cache; of the algorithms that it proposes for
a shape, the fastest in a trial is taken. Inputs are of the package's precision (--type), sums and results f32.

What is compared differs in cuBLASLt's favour: its activations are of the input type already, its weights, too, whatever the package
stores, and it computes the product alone, where gptc's kernels also do bias, activation, RoPE, residual and what is appended to the KV cache.
Prints a line for each kernel and number of rows: medians over the rounds, and the median of the ratios (above 1: gptc is faster).

Needs numpy, a GPU, its driver and cuBLASLt (the CUDA toolkit, or `pip install nvidia-cublas`).
"""
import argparse
import ctypes as c
import json
import os
import statistics
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Integration"))
from package import Error, Package  # noqa: E402

# library_types.h, cublas_api.h, cublasLt.h of CUDA 12 and 13
R_32F, R_16F, R_16BF = 0, 2, 14
COMPUTE_32F, COMPUTE_32F_FAST_TF32 = 68, 77
TYPES = {"f32": (R_32F, COMPUTE_32F), "tf32": (R_32F, COMPUTE_32F_FAST_TF32), "bf16": (R_16BF, COMPUTE_32F), "f16": (R_16F, COMPUTE_32F)}
DESC_TRANSA, PREF_MAX_WORKSPACE_BYTES, OP_T = 3, 1, 1
WORKSPACE = 32 << 20  # what NVIDIA recommends for sm_90; smaller devices take less
WEIGHTS = 4 << 30  # bytes of cuBLASLt's weights of a shape at most


class Missing(Exception):
    pass


def library(names, what):
    for name in names:
        try:
            return c.CDLL(name)
        except OSError as error:
            last = error
    raise Missing(f"expected {what}: {last}")


class Cuda:
    """The driver: the first GPU's primary context, a stream, two events."""

    def __init__(self):
        self.driver = library(["libcuda.so.1"], "NVIDIA's driver, and a GPU")
        self("cuInit", c.c_uint(0))
        device, context, self.stream, self.events = c.c_int(), c.c_void_p(), c.c_void_p(), [c.c_void_p(), c.c_void_p()]
        self("cuDeviceGet", c.byref(device), c.c_int(0))
        name = c.create_string_buffer(256)
        self("cuDeviceGetName", name, c.c_int(256), device)
        self.name = name.value.decode()
        self("cuDevicePrimaryCtxRetain", c.byref(context), device)
        self("cuCtxPushCurrent_v2", context)
        self("cuStreamCreate", c.byref(self.stream), c.c_uint(1))
        for event in self.events:
            self("cuEventCreate", c.byref(event), c.c_uint(0))

    def __call__(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        if result:
            text = c.c_char_p()
            self.driver.cuGetErrorString(result, c.byref(text))
            raise Missing(f"{name}: the GPU's driver reported error {result}: {(text.value or b'unknown error').decode()}")

    def allocate(self, count):
        address = c.c_uint64()
        self("cuMemAlloc_v2", c.byref(address), c.c_size_t(max(count, 16)))
        return address

    def upload(self, array):
        address = self.allocate(array.nbytes)
        self("cuMemcpyHtoD_v2", address, c.c_void_p(array.ctypes.data), c.c_size_t(array.nbytes))
        return address

    def download(self, address, shape):
        array = np.empty(shape, np.float32)
        self("cuStreamSynchronize", self.stream)
        self("cuMemcpyDtoH_v2", c.c_void_p(array.ctypes.data), address, c.c_size_t(array.nbytes))
        return array

    def seconds(self, work):
        """Of work that is queued, between two events."""
        milliseconds = c.c_float()
        self("cuEventRecord", self.events[0], self.stream)
        work()
        self("cuEventRecord", self.events[1], self.stream)
        self("cuEventSynchronize", self.events[1])
        self("cuEventElapsedTime", c.byref(milliseconds), *self.events)
        return milliseconds.value * 1e-3


class Heuristic(c.Structure):
    """cublasLtMatmulHeuristicResult_t"""
    _fields_ = [("algorithm", c.c_uint64 * 8), ("workspace", c.c_size_t), ("state", c.c_int), ("waves", c.c_float), ("reserved", c.c_int * 4)]


assert c.sizeof(Heuristic) == 96


class Lt:
    """cuBLASLt: y [rows][n] = x [rows][k] times w [n][k] transposed, all row-major. To it, whose matrices are column-major, the
    same bytes are y [n, rows] = w [k, n] transposed times x [k, rows]."""

    def __init__(self, cuda, path, kind):
        self.cuda, self.kind = cuda, kind
        self.type, self.compute = TYPES[kind]
        self.lib = library([path] if path else ["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"],
                           "cuBLASLt (of the CUDA toolkit, or pip install nvidia-cublas; --library names the file)")
        self.handle, self.workspace = c.c_void_p(), cuda.allocate(WORKSPACE)
        self.scale = c.c_float(1), c.c_float(0)
        self("cublasLtCreate", c.byref(self.handle))

    def __call__(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status:
            text = self.lib.cublasLtGetStatusString
            text.restype = c.c_char_p
            raise Missing(f"{name}: cuBLASLt reported status {status}: {text(status).decode()}")

    def layout(self, kind, rows, columns):
        made = c.c_void_p()
        self("cublasLtMatrixLayoutCreate", c.byref(made), c.c_int(kind), c.c_uint64(rows), c.c_uint64(columns), c.c_int64(rows))
        return made

    def plan(self, rows, n, k, algorithms):
        """Descriptors of a shape and what the library proposes for it."""
        desc, preference, count = c.c_void_p(), c.c_void_p(), c.c_int()
        self("cublasLtMatmulDescCreate", c.byref(desc), c.c_int(self.compute), c.c_int(R_32F))
        self("cublasLtMatmulDescSetAttribute", desc, c.c_int(DESC_TRANSA), c.byref(c.c_int32(OP_T)), c.c_size_t(4))
        layouts = self.layout(self.type, k, n), self.layout(self.type, k, rows), self.layout(R_32F, n, rows)
        self("cublasLtMatmulPreferenceCreate", c.byref(preference))
        self("cublasLtMatmulPreferenceSetAttribute", preference, c.c_int(PREF_MAX_WORKSPACE_BYTES), c.byref(c.c_size_t(WORKSPACE)), c.c_size_t(8))
        proposed = (Heuristic * algorithms)()
        w, x, y = layouts
        self("cublasLtMatmulAlgoGetHeuristic", self.handle, desc, w, x, y, y, preference, c.c_int(algorithms), proposed, c.byref(count))
        found = [each for each in proposed[:count.value] if each.state == 0]
        if not found:
            raise Missing(f"cuBLASLt: no algorithm for {rows} x {n} x {k} of {self.kind}")
        return desc, layouts, found

    def matmul(self, plan, algorithm, w, x, y):
        desc, (wl, xl, yl), _ = plan
        one, zero = self.scale
        self("cublasLtMatmul", self.handle, desc, c.byref(one), w, wl, x, xl, c.byref(zero), y, yl, y, yl, c.byref(algorithm),
             self.workspace, c.c_size_t(WORKSPACE), self.cuda.stream)

    def values(self, array):
        """f32 numbers as the input type."""
        if self.type == R_16F:
            return array.astype(np.float16)
        if self.type == R_32F:
            return np.ascontiguousarray(array, np.float32)
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    def check(self):
        """That layouts and types are what we say: small integers, so that every order of sums is exact."""
        random = np.random.default_rng(1)
        x, w = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((24, 64), (40, 64)))
        plan = self.plan(24, 40, 64, 1)
        y = self.cuda.allocate(24 * 40 * 4)
        self.matmul(plan, plan[2][0], self.cuda.upload(self.values(w)), self.cuda.upload(self.values(x)), y)
        if not np.array_equal(self.cuda.download(y, (24, 40)), x @ w.T):
            raise Missing("cuBLASLt's product is not numpy's: its layouts or types are not what this script says")


class Shape:
    """cuBLASLt on the shape of a kernel: as many weights as calls, one after the other."""

    def __init__(self, lt, rows, n, k, calls, algorithms):
        self.lt, self.plan = lt, lt.plan(rows, n, k, algorithms)
        random = np.random.default_rng(0)
        # More random numbers than that take long to make; they repeat.
        values = lt.values(np.resize(random.uniform(-1, 1, min(n * k, 1 << 22)).astype(np.float32), n * k))
        self.weights = [lt.cuda.upload(values) for _ in range(max(1, min(calls, WEIGHTS // values.nbytes)))]
        self.x, self.y = lt.cuda.upload(lt.values(random.uniform(-1, 1, rows * k))), lt.cuda.allocate(rows * n * 4)
        self.next = 0
        trials = {i: min(self.time(each) for _ in range(5)) for i, each in enumerate(self.plan[2])}
        self.algorithm = self.plan[2][min(trials, key=trials.get)]

    def time(self, algorithm):
        self.next = (self.next + 1) % len(self.weights)
        return self.lt.cuda.seconds(lambda: self.lt.matmul(self.plan, algorithm, self.weights[self.next], self.x, self.y))

    def close(self):
        for address in [*self.weights, self.x, self.y]:
            self.lt.cuda("cuMemFree_v2", address)


def gemms(folder):
    """(N, K) of every GEMM kernel of the package."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    if not manifest["target"].startswith("sm_"):
        raise Missing(f"{folder}: expected a package for a GPU (--target=cuda), got one for {manifest['target']}")
    found = {}
    for kernel in manifest["kernels"]:
        if "flops_per_row" in kernel:
            k = kernel["arguments"][0]["shape"][-1]
            found[kernel["name"]] = kernel["flops_per_row"] // (2 * k), k
    return found, manifest["precision"], manifest["vocab"]


class Ours:
    """Steps of the package, their GEMMs timed."""

    def __init__(self, session, kernels, vocab):
        self.session, self.kernels, self.vocab, self.times = session, kernels, vocab, {}
        session.observe(self.event)

    def event(self, event):
        if event.kernel.decode() in self.kernels:
            key = event.kernel.decode(), event.dims[0]
            self.times.setdefault(key, []).append(event.seconds)

    def step(self, tokens, position):
        self.times = {}
        ids = [(7 * i + 3) % self.vocab for i in range(tokens)]
        self.session.step(ids, range(position, position + tokens), rows=[tokens - 1])
        return {key: sum(times) for key, times in self.times.items()}, {key: len(times) for key, times in self.times.items()}


def compare(ours, lt, tokens, rounds, algorithms):
    """One row of numbers for each kernel."""
    # A single token stands after others, as in decoding.
    position = 1 if tokens == 1 else 0
    if position:
        ours.step(1, 0)
    _, calls = ours.step(tokens, position)
    shapes = {key: Shape(lt, key[1], *ours.kernels[key[0]], count, algorithms) for key, count in calls.items()}
    times = {key: ([], []) for key in shapes}
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            if side == 0:
                got, _ = ours.step(tokens, position)
            else:
                got = {key: sum(shape.time(shape.algorithm) for _ in range(calls[key])) for key, shape in shapes.items()}
            for key, seconds in got.items():
                times[key][side].append(seconds)
    for shape in shapes.values():
        shape.close()
    table = []
    for (kernel, rows), (mine, theirs) in times.items():
        n, k = ours.kernels[kernel]
        count = calls[kernel, rows]
        ratios = [b / a if a else float("nan") for a, b in zip(mine, theirs)]
        mine, theirs = statistics.median(mine) / count, statistics.median(theirs) / count
        table.append({"kernel": kernel, "rows": rows, "n": n, "k": k, "calls": count, "gptc_us": mine * 1e6, "cublaslt_us": theirs * 1e6,
                      "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
                      "gptc_tflops": 2 * rows * n * k / mine * 1e-12 if mine else 0.0})
    return table


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("package")
    p.add_argument("--tokens", default="512,1", help="of a step; several, with commas")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--type", choices=TYPES, help="of cuBLASLt's inputs; default: the package's precision")
    p.add_argument("--algorithms", type=int, default=8, help="that are tried for a shape")
    p.add_argument("--library", help="the file of cuBLASLt")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    tokens = [int(each) for each in a.tokens.split(",")]
    kernels, precision, vocab = gemms(a.package)
    cuda = Cuda()
    lt = Lt(cuda, a.library, a.type or precision)
    lt.check()
    with Package(a.package).open() as model, model.session(tokens=max(*tokens, 2)) as session:
        ours = Ours(session, kernels, vocab)
        table = [{"tokens": count, **row} for count in tokens for row in compare(ours, lt, count, a.rounds, a.algorithms)]
    if a.json:
        print(json.dumps({"device": cuda.name, "precision": precision, "type": lt.kind, "rounds": a.rounds, "gemms": table}, indent=2))
        return
    print(f"{cuda.name}; package {precision}, cuBLASLt {lt.kind}; {a.rounds} rounds; us a call, medians\n")
    width = max(len(row["kernel"]) for row in table)
    print(f"{'kernel':<{width}} {'rows':>5} {'N':>7} {'K':>6} {'calls':>5} {'gptc':>9} {'cuBLASLt':>9} {'ratio':>6} {'range':>13} {'TFLOP/s':>8}")
    for row in table:
        print(f"{row['kernel']:<{width}} {row['rows']:>5} {row['n']:>7} {row['k']:>6} {row['calls']:>5} {row['gptc_us']:>9.2f} {row['cublaslt_us']:>9.2f} "
              f"{row['ratio']:>6.2f} {row['ratio_low']:>6.2f}..{row['ratio_high']:<5.2f} {row['gptc_tflops']:>8.2f}")
    for count in tokens:
        ours, theirs = (sum(row[key] * row["calls"] for row in table if row["tokens"] == count) for key in ("gptc_us", "cublaslt_us"))
        print(f"all GEMMs of a step of {count} tokens: {ours:.1f} us, cuBLASLt {theirs:.1f} us, ratio {theirs / ours if ours else float('nan'):.2f}")


if __name__ == "__main__":
    try:
        main()
    except (Missing, Error, OSError) as error:
        sys.exit(f"cublaslt.py: {error}")
