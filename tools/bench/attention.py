#!/usr/bin/env python3
"""Causal attention of gptc beside torch's scaled_dot_product_attention and beside gptc's own GEMMs, in turns.

    attention.py BIN [--heads 12] [--sizes 512,1024,4096,16384] [--head-sizes 64,80,128] [--contexts 576,4096]
                 [--threads 2] [--rounds 7] [--unfused 4096] [--march native] [--only prefill|decode] [--json FILE]

BIN is the folder with gptc. Needs numpy; torch is the peer where the interpreter has it. Prefill, in f32:

    dense   an entry of q, k and v, [heads, S, d] each
    cache   the attention kernel of a step of S tokens over the KV cache, as models run it
    torch   scaled_dot_product_attention(is_causal=True) of the same q, k and v
    -O0     the dense entry compiled with -O0, up to S = --unfused
    GEMM    Q, K and V of the same step, [S, C] x [C, 3 C] with C = heads * d

Decode: one token at a context, 9 query heads and 3 KV heads of 64 as in SmolLM2, in a model of eight layers whose pages do
not fit a core's cache. GFLOP/s count 4 S S d heads / 2, GB/s the keys and values that the token sees. In each round every
one runs, after a pause so that no thread of another spins beside it, and once more if that was quick, whose time counts;
medians of the rounds and of their ratios.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Integration"))
from package import Package, Tensor  # noqa: E402
sys.path.pop(0)  # its cuda.py is none of torch's

try:
    import torch
except ImportError:
    torch = None


def dense_text(heads, d):
    x, s = f"tensor<{heads}x?x{d}xf32>", f"tensor<{heads}x?x?xf32>"
    arguments = ", ".join(f'%{name}: {x} {{gpt.arg = "{name}"}}' for name in "qkv")
    return f"""module attributes {{gpt.name = "dense"}} {{
  func.func @main({arguments}) -> ({x} {{gpt.result = "out"}}) {{
    %s = gpt.matmul %q, %k transpose_b : {x}, {x} -> {s}
    %t = gpt.scale %s by {d ** -0.5!r} : {s}
    %m = gpt.causal_mask %t : {s}
    %p = gpt.softmax %m : {s}
    %out = gpt.matmul %p, %v : {s}, {x} -> {x}
    return %out : {x}
  }}
}}
"""


def layers_text(heads, kv_heads, d, context, layers, vocab=64):
    """`layers` attentions one after the other, all with the same weights."""
    c, kv = heads * d, kv_heads * d
    weights = {"emb": (vocab, c), "wq": (c, c), "wk": (kv, c), "wv": (kv, c), "head": (vocab, c)}
    kind = {name: f"tensor<{n}x{k}xf32>" for name, (n, k) in weights.items()}
    x, y, out = f"tensor<?x{c}xf32>", f"tensor<?x{kv}xf32>", f"tensor<?x{vocab}xf32>"
    q, k, s = f"tensor<{heads}x?x{d}xf32>", f"tensor<{kv_heads}x?x{d}xf32>", f"tensor<{heads}x?x?xf32>"
    groups = f" groups {heads // kv_heads}" if heads != kv_heads else ""
    lines = [f'module attributes {{gpt.name = "layers", gpt.context = {context} : i64}} {{']
    lines += [f"  ml_program.global private @{name}(#ml_program.extern<{t}>) : {t}" for name, t in kind.items()]
    lines += [f'  func.func @forward(%tokens: tensor<?xi32>) -> ({out} {{gpt.result = "logits"}}) {{']
    lines += [f"    %{name} = ml_program.global_load_const @{name} : {t}" for name, t in kind.items()]
    lines += [f"    %x0 = gpt.embedding %emb, %tokens : {kind['emb']}, tensor<?xi32> -> {x}"]
    for i in range(layers):
        lines += [f"""    %q{i} = gpt.linear %x{i}, %wq : {x}, {kind['wq']} -> {x}
    %k{i} = gpt.linear %x{i}, %wk : {x}, {kind['wk']} -> {y}
    %v{i} = gpt.linear %x{i}, %wv : {x}, {kind['wv']} -> {y}
    %qh{i} = gpt.split_heads %q{i} : {x} -> {q}
    %kh{i} = gpt.split_heads %k{i} : {y} -> {k}
    %vh{i} = gpt.split_heads %v{i} : {y} -> {k}
    %s{i} = gpt.matmul %qh{i}, %kh{i} transpose_b{groups} : {q}, {k} -> {s}
    %t{i} = gpt.scale %s{i} by {d ** -0.5!r} : {s}
    %m{i} = gpt.causal_mask %t{i} : {s}
    %p{i} = gpt.softmax %m{i} : {s}
    %o{i} = gpt.matmul %p{i}, %vh{i}{groups} : {s}, {k} -> {q}
    %x{i + 1} = gpt.merge_heads %o{i} : {q} -> {x}"""]
    lines += [f"    %y = gpt.linear %x{layers}, %head : {x}, {kind['head']} -> {out}", f"    return %y : {out}", "  }", "}", ""]
    random = np.random.default_rng(1)
    return "\n".join(lines), {name: (random.normal(size=shape) / shape[1] ** 0.5).astype(np.float32) for name, shape in weights.items()}


class Packages:
    def __init__(self, a, folder):
        self.a, self.folder, self.count = a, folder, 0

    def compile(self, text, *options):
        self.count += 1
        model, package = (os.path.join(self.folder, f"{self.count}{end}") for end in (".mlir", ""))
        with open(model, "w", encoding="utf-8") as f:
            f.write(text)
        subprocess.run([os.path.join(self.a.bin, "gptc"), model, "-o", package, f"-march={self.a.march}", *options], check=True)
        return Package(package)


class Dense:
    def __init__(self, package, threads, arrays):
        self.session = package.open().session(threads=threads)
        self.out = np.zeros_like(arrays["q"])
        self.inputs = (Tensor * 3)(*(Tensor.of(name, arrays[name]) for name in "qkv"))
        self.outputs = (Tensor * 1)(Tensor.of("out", self.out))

    def seconds(self):
        begin = time.perf_counter()
        self.session.package.check(self.session.package.api.run(self.session.handle, b"main", self.inputs, 3, self.outputs, 1))
        return time.perf_counter() - begin


class Steps:
    """A model's steps, and the seconds of each kind of kernel."""

    def __init__(self, package, weights, threads, tokens, context):
        self.session = package.open(weights).session(threads=threads, tokens=tokens, pages=-(-context // package.info.page) + 1, rows=1)
        self.kinds = {k["name"]: k["kind"] for k in json.load(open(os.path.join(package.folder, "manifest.json"), encoding="utf-8"))["kernels"]}
        self.spent = {}
        self.session.observe(self.note)

    def note(self, event):
        name = event.kernel.decode()
        kind = "qkv" if "qkv" in name or "kv_append" in name or "kvappend" in name else self.kinds[name]
        self.spent[kind] = self.spent.get(kind, 0) + event.seconds

    def step(self, count, position=0):
        self.spent = {}
        self.session.step(np.arange(count) * 7 % 64, range(position, position + count), [0] * count, [count - 1])
        return dict(self.spent)


def torch_seconds(q, k, v, **options):
    begin = time.perf_counter()
    torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)
    return time.perf_counter() - begin


def rounds(a, runs):
    """Each round runs every one of `runs` (functions that return seconds by name), in alternating order."""
    times = {}
    for turn in range(a.rounds + 1):  # the first warms up
        for run in runs[::1 if turn % 2 else -1]:
            time.sleep(0.02)
            spent = run()
            if sum(spent.values()) < 0.2:  # the first woke the threads
                spent = run()
            for name, seconds in spent.items():
                if turn:
                    times.setdefault(name, []).append(seconds)
    return {name: np.array(t) for name, t in times.items()}


def spread(x):
    return f"{np.median(x):.2f} ({x.min():.2f} .. {x.max():.2f})"


def prefill(a, packages):
    print(f"| d | S | dense, GFLOP/s | of GEMM | x torch | x -O0 | cache, GFLOP/s | of GEMM | x torch |\n|{' --- |' * 9}", flush=True)
    found = []
    for d in a.head_sizes:
        model, weights = layers_text(a.heads, a.heads, d, max(a.sizes) + 8, 1)
        dense, unfused, layers = packages.compile(dense_text(a.heads, d)), packages.compile(dense_text(a.heads, d), "-O0"), packages.compile(model)
        for size in a.sizes:
            random = np.random.default_rng(0)
            arrays = {name: random.normal(size=(a.heads, size, d)).astype(np.float32) for name in "qkv"}
            entry, steps = Dense(dense, a.threads, arrays), Steps(layers, weights, a.threads, size, size)

            def cache():
                spent = steps.step(size)
                return {"cache": spent["attention"], "gemm": spent["qkv"]}
            runs = [lambda: {"dense": entry.seconds()}, cache]
            if size <= a.unfused:
                plain = Dense(unfused, a.threads, arrays)
                runs.append(lambda: {"-O0": plain.seconds()})
            if torch:
                given = [torch.from_numpy(arrays[name])[None] for name in "qkv"]
                runs.append(lambda: {"torch": torch_seconds(*given, is_causal=True)})
            t = rounds(a, runs)
            if torch:
                expected = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=True)[0].numpy()
                assert np.abs(entry.out - expected).max() < 1e-4, np.abs(entry.out - expected).max()
            flops, gemm = 2e-9 * size * size * d * a.heads, 6e-9 * size * (a.heads * d) ** 2 / t["gemm"]
            row = {"d": d, "S": size, **{name: list(x) for name, x in t.items()}}
            cells = [str(d), str(size)]
            for name in ("dense", "cache"):
                rate = flops / t[name]
                cells += [f"{np.median(rate):.0f}", f"{np.median(rate / gemm):.2f}", spread(t["torch"] / t[name]) if torch else "-"]
                if name == "dense":
                    cells.append(f"{np.median(t['-O0'] / t[name]):.1f}" if "-O0" in t else "-")
            found.append(row)
            print("| " + " | ".join(cells) + " |", flush=True)
    return found


def read_rate(a):
    """GB/s of two threads that read memory, by a product of matrix and vector."""
    if not torch:
        return None
    x, y = torch.ones(64 << 10, 1 << 10), torch.ones(1 << 10)
    begin = time.perf_counter()
    torch.mv(x, y)
    return x.numel() * 4e-9 / (time.perf_counter() - begin)


def decode(a, packages):
    heads, kv_heads, d, layers = 9, 3, 64, 8
    print(f"| context | us a layer | GB/s | of reading | x torch |\n|{' --- |' * 5}", flush=True)
    found = []
    for context in a.contexts:
        model, weights = layers_text(heads, kv_heads, d, context + 64, layers)
        steps = Steps(packages.compile(model), weights, a.threads, context, context + 64)
        steps.step(context)
        runs = [lambda: {"gptc": np.median([steps.step(1, context)["attention"] for _ in range(5)]) / layers}]
        if torch:
            caches = [[torch.randn(1, kv_heads, context, d) for _ in range(2)] for _ in range(layers)]
            q = torch.randn(1, heads, 1, d)
            runs.append(lambda: {"torch": np.median([sum(torch_seconds(q, k, v, enable_gqa=True) for k, v in caches) / layers for _ in range(5)])})
            runs.append(lambda: {"read": 1 / max(read_rate(a) for _ in range(3))})
        t = rounds(a, runs)
        rate = 8e-9 * (context + 1) * kv_heads * d / t["gptc"]
        cells = [str(context), f"{np.median(t['gptc']) * 1e6:.0f}", f"{np.median(rate):.1f}"]
        cells += [f"{np.median(rate * t['read']):.2f}", spread(t["torch"] / t["gptc"])] if torch else ["-", "-"]
        found.append({"context": context, **{name: list(x) for name, x in t.items()}})
        print("| " + " | ".join(cells) + " |", flush=True)
    return found


def main():
    numbers = lambda text: [int(x) for x in text.split(",")]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin")
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--sizes", type=numbers, default=[512, 1024, 4096, 16384])
    p.add_argument("--head-sizes", type=numbers, default=[64, 80, 128])
    p.add_argument("--contexts", type=numbers, default=[576, 4096])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--unfused", type=int, default=4096)
    p.add_argument("--march", default="native")
    p.add_argument("--only", choices=("prefill", "decode"))
    p.add_argument("--json")
    a = p.parse_args()
    if torch:
        torch.set_num_threads(a.threads)
        torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages(a, folder)
        found = {work: run(a, packages) for work, run in (("prefill", prefill), ("decode", decode)) if a.only in (None, work)}
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)


if __name__ == "__main__":
    main()
