#!/usr/bin/env python3
"""What each fusion gains: packages of one model with all fusions, without each one of them, and with none (-O0), in turns.

    fusions.py [MODEL ...] [--bin DIR] [--prompt 512] [--decode 64] [--threads 2] [--rounds 7] [--vocab N] [--precision f32] [--work DIR] [--json FILE]

MODEL is what gptc-import reads, or `gpt2`: GPT-2 124M with random weights (the default, beside the GGUF file that
tools/quickstart.sh downloads). Each package stays loaded; a round is a prompt and the decoding after it on every package, in a shuffled
order. Prints medians of the packages with all fusions, and for each other one the median and range of a round's ratio of times (above 1: the fusion
gains), the kernels of a step and the bytes between them, as Markdown. The other fusions stay on, so two that need each other both show what is lost
without them. Needs numpy.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(HERE, "peers"), os.path.join(ROOT, "test", "Integration")]
import gpt2  # noqa: E402
from package import Package  # noqa: E402
from worker import token  # noqa: E402


class Variant:
    """A loaded package and its times."""

    def __init__(self, a, name, folder, text, options):
        self.name, self.times = name, {"prefill": [], "decode": []}
        subprocess.run([os.path.join(a.bin, "gptc"), text, "-o", folder, f"--precision={a.precision}", *options], check=True)
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
            step = next(entry for entry in json.load(f)["entries"] if entry["kind"] == "step")
        # "3072 * d0": tokens, rows wanted (d1), keys
        size = lambda factor: int(factor) if factor.isdigit() else 1 if factor == "d1" else a.prompt
        self.calls = len(step["calls"])
        self.bytes = sum(math.prod(map(size, text.split(" * "))) for text in step["workspace_bytes"])
        self.session = Package(folder).open().session(tokens=a.prompt, sequences=1, rows=1, threads=a.threads)

    def measure(self, a, count=True):
        prompt, begin = [token(i, a.vocab) for i in range(a.prompt)], time.perf_counter()
        self.session.step(prompt, range(a.prompt), rows=[a.prompt - 1])
        middle = time.perf_counter()
        for i in range(a.decode):
            self.session.step([token(a.prompt + i, a.vocab)], [a.prompt + i], rows=[0])
        if count:
            self.times["prefill"].append(middle - begin)
            self.times["decode"].append(time.perf_counter() - middle)


def run(a, model):
    tool, name = lambda name: os.path.join(a.bin, name), "gpt2" if model == "gpt2" else "model"
    if model == "gpt2":
        model = os.path.join(a.work, "gpt2-random")
        gpt2.write(model)
    text = os.path.join(a.work, "fusions.mlir")
    subprocess.run([tool("gptc-import"), model, "--name", name, "-o", text], check=True)
    fusions = subprocess.run([tool("gptc"), "--list-fusions"], check=True, capture_output=True, text=True).stdout.split()
    options = {"all": []} | {fusion: [f"--disable-fusion={fusion}"] for fusion in fusions} | {"-O0": ["-O0"]}
    variants = []
    for i, (label, more) in enumerate(options.items()):
        print(f"compiling {label}", file=sys.stderr, flush=True)
        variants.append(Variant(a, label, os.path.join(a.work, f"fusions-{i}"), text, more))
    for variant in variants:
        variant.measure(a, count=False)
    for turn in range(a.rounds):
        for variant in random.Random(turn).sample(variants, len(variants)):
            variant.measure(a)
    whole, rows = variants[0], []
    rates = {work: tokens / statistics.median(whole.times[work]) for work, tokens in (("prefill", a.prompt), ("decode", a.decode))}
    print(f"\n### {os.path.basename(model)}, {a.precision}: prefill {rates['prefill']:.0f}, decode {rates['decode']:.0f} tokens/s with all fusions; "
          f"{a.prompt} and {a.decode} tokens, {a.threads} threads, {a.rounds} rounds\n")
    print("| without | kernels a step | MB between them | prefill takes | decode takes |\n| --- | --- | --- | --- | --- |")
    for variant in variants:
        row = {"without": variant.name, "calls": variant.calls, "workspace_bytes": variant.bytes, "seconds": variant.times}
        cells = []
        for work in variant.times:
            ratios = [y / x for x, y in zip(whole.times[work], variant.times[work])]
            row[work] = statistics.median(ratios)
            cells.append("1" if variant is whole else f"{row[work]:.2f} ({min(ratios):.2f} .. {max(ratios):.2f})")
        rows.append(row)
        name = {"all": "(nothing)", "-O0": "any fusion (-O0)"}.get(variant.name, f"`{variant.name}`")
        print(f"| {name} | {variant.calls} | {variant.bytes * 1e-6:.1f} | {' | '.join(cells)} |", flush=True)
    return {"model": model, "tokens_per_s": rates, "variants": rows}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    gguf = os.environ.get("GPTC_SMOLLM2_GGUF", os.path.join(ROOT, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf"))
    p.add_argument("models", nargs="*", default=["gpt2", gguf], metavar="MODEL")
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    p.add_argument("--prompt", type=int, default=512)
    p.add_argument("--decode", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--vocab", type=int, default=40000, help="token ids are below it (40000)")
    p.add_argument("--precision", default="f32")
    p.add_argument("--work", default=os.path.join(ROOT, "build", "bench"))
    p.add_argument("--json")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    results = [run(a, model) for model in a.models]
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
