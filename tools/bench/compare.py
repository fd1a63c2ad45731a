#!/usr/bin/env python3
"""Time gptc against its peers on the same work, in turns.

    compare.py [--bin DIR] [--models gpt2,smollm2] [--peers gptc,llama.cpp,openvino,...] [--settings f32,bf16,...] [--gguf FILE]
               [--prompt 512] [--decode 64] [--threads 2] [--rounds 7] [--vocab N] [--venv DIR] [--work DIR] [--json FILE] [--list]

The work: a prompt from an empty KV cache up to the logits of its last token (prefill), then `--decode` tokens one by one, each with its
logits. `gpt2` is GPT-2 124M with random weights from a fixed seed; `smollm2` a GGUF file (default: what tools/quickstart.sh downloads,
SmolLM2-135M-Instruct Q4_1). Peers are installed from PyPI into a virtual environment of their own (default build/peers; minutes, the first
time), models are built for each into --work (default build/bench).

Every peer and setting is a process of its own (peers/worker.py) that has built or loaded its model and done the work twice before the first
round; they live side by side and one works at a time, in a shuffled order, with --pause seconds between, since some peers' threads spin
a while. Prints medians and ranges in tokens a second and the median of the per-round ratios to gptc at f32 (above 1: faster), as Markdown;
--json writes all numbers. The logits of the prompt's last token, and those after the last decoded one, are compared with gptc's at f32: the
largest difference, in standard deviations of these logits. What could not be installed or run is listed with its reason; the exit status is 1 if
gptc could not, or if nothing ran.

OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset. Needs python3 with venv, and cmake and a C++ compiler for llama.cpp.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "peers"))
import environment  # noqa: E402

PEERS = {"gptc": "gptc", "openvino": "openvino_graph", "openvino-genai": "openvino_genai_pipeline", "llama.cpp": "llama_cpp_python",
         "ctranslate2": "ctranslate2_generator", "onnxruntime": "onnxruntime_graph", "torch": "torch_module"}
WORK = ("prefill", "decode")


class Worker:
    """The process of a peer at a setting."""

    def __init__(self, python, peer, module, request):
        self.peer, self.setting, self.times, self.failure, self.difference = peer, request["setting"], [], None, {}
        self.name = f"{peer} {self.setting}"
        self.log = os.path.join(request["work"], f"{peer}-{request['kind']}-{self.setting}.log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([python, os.path.join(HERE, "peers", "worker.py"), module, json.dumps(request)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True, env=environment.variables([("OMP_NUM_THREADS", str(request["threads"]))]))
        about = self.answer()
        self.version, self.settings = about.get("version"), about.get("settings")

    def answer(self):
        line = self.process.stdout.readline()
        got = json.loads(line) if line else {"error": f"ended with status {self.process.wait()}; its messages are in {self.log}"}
        self.failure = self.failure or got.get("error")
        return got

    def ask(self, *words):
        try:
            self.process.stdin.write(" ".join(words) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.answer()

    def end(self):
        self.process.stdin.close()
        self.process.wait()

    def rate(self, work, a):
        return [{"prefill": a.prompt, "decode": a.decode}[work] / round[work + "_s"] for round in self.times]


def start(a, python, kind, model):
    """The workers that run, and (name, reason) of those that do not."""
    workers, failures = [], []
    for peer in a.peers:
        module = __import__(PEERS[peer])
        settings = [s for s in module.SETTINGS.get(kind, []) if not a.settings or s in a.settings]
        reason = environment.install(python, ["numpy", *module.REQUIREMENTS], getattr(module, "build_variables", dict)().items()) if settings else None
        for setting in settings:
            request = {"kind": kind, "setting": setting, "model": model, "threads": a.threads, "prompt": a.prompt, "decode": a.decode, "vocab": a.vocab, "work": a.work, "bin": a.bin}
            if reason is None:
                print(f"starting {peer} {setting} on {kind}", file=sys.stderr, flush=True)
                worker = Worker(python, peer, PEERS[peer], request)
                if worker.failure is None:
                    workers.append(worker)
                    continue
            failures.append((f"{peer} {setting}", reason or worker.failure))
    return workers, failures


def measure(a, workers):
    for turn in range(a.rounds):
        for worker in random.Random(turn).sample(workers, len(workers)):
            time.sleep(a.pause)
            if worker.failure is None:
                got = worker.ask("round")
                if "error" not in got:
                    worker.times.append(got)


DIFFERENCE = """
import json, sys, numpy
ours, theirs = (numpy.load(path) for path in sys.argv[1:])
print(json.dumps([float(abs(y - x).max() / x.std()) for x, y in zip(ours, theirs)]))
"""


def compare_logits(a, python, workers):
    paths = {}
    for worker in workers:
        path = os.path.join(a.work, "logits-" + worker.name.replace(" ", "-") + ".npy")
        if worker.failure is None and worker.ask("logits", path).get("logits"):
            paths[worker.name] = path
    if "gptc f32" in paths:
        for worker in workers:
            if worker.name in paths:
                done = subprocess.run([python, "-c", DIFFERENCE, paths["gptc f32"], paths[worker.name]], check=True, capture_output=True, text=True)
                worker.difference = dict(zip(WORK, json.loads(done.stdout)))


def table(a, kind, workers, failures):
    ours = next((w for w in workers if w.name == "gptc f32"), None)
    result = {"model": kind, "prompt": a.prompt, "decode": a.decode, "threads": a.threads, "rounds": a.rounds, "peers": [],
              "failed": [{"name": name, "reason": reason} for name, reason in failures + [(w.name, w.failure) for w in workers if w.failure]]}
    print(f"\n### {kind}, {a.prompt} tokens of prompt, {a.decode} decoded, {a.threads} threads, {a.rounds} rounds\n")
    print("| peer | prefill, tokens/s | to gptc f32 | decode, tokens/s | to gptc f32 | logits differ by | settings |\n| --- | --- | --- | --- | --- | --- | --- |")
    for worker in workers:
        if worker.failure:
            continue
        entry, cells = {"name": worker.name, "version": worker.version, "settings": worker.settings}, [worker.name]
        for work in WORK:
            values = worker.rate(work, a)
            entry[work] = {"tokens_per_s": values, "median": statistics.median(values)}
            cells.append(f"{statistics.median(values):.0f} ({min(values):.0f} .. {max(values):.0f})")
            if ours and len(ours.times) == len(worker.times):
                ratios = [y / x for x, y in zip(ours.rate(work, a), values)]
                entry[work]["ratio"] = statistics.median(ratios)
                cells.append(f"{statistics.median(ratios):.2f}")
            else:
                cells.append("-")
        entry["difference"] = worker.difference
        cells += [", ".join(f"{value:.1e}" for value in worker.difference.values()) or "-", f"{worker.version}; {worker.settings}"]
        print("| " + " | ".join(cells) + " |")
        result["peers"].append(entry)
    for failure in result["failed"]:
        print(f"\n{failure['name']} did not run: {failure['reason']}")
    return result


def models(a, python):
    for kind in a.models:
        if kind == "smollm2":
            yield kind, os.path.abspath(a.gguf)
        else:
            folder = os.path.join(a.work, "gpt2-random")
            subprocess.run([python, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import gpt2; gpt2.write(sys.argv[2])", os.path.join(HERE, "peers"), folder], check=True)
            yield kind, folder


def choice(known):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"'{name}': expected one of {', '.join(known)}")
        return names
    return parse


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    p.add_argument("--models", type=choice(["gpt2", "smollm2"]), default=["gpt2", "smollm2"])
    p.add_argument("--peers", type=choice(list(PEERS)), default=list(PEERS))
    p.add_argument("--settings", type=lambda text: text.split(","), default=[])
    p.add_argument("--gguf", default=os.environ.get("GPTC_SMOLLM2_GGUF", os.path.join(ROOT, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")))
    p.add_argument("--prompt", type=int, default=512)
    p.add_argument("--decode", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--vocab", type=int, default=40000, help="token ids are below it (40000)")
    p.add_argument("--pause", type=float, default=0.3)
    p.add_argument("--venv", default=os.path.join(ROOT, "build", "peers"))
    p.add_argument("--work", default=os.path.join(ROOT, "build", "bench"))
    p.add_argument("--json")
    p.add_argument("--list", action="store_true", help="print the peers and their settings")
    return p.parse_args()


def main():
    a = arguments()
    if a.list:
        for peer, module in PEERS.items():
            print(peer, json.dumps(__import__(module).SETTINGS))
        return 0
    a.work, a.bin = os.path.abspath(a.work), os.path.abspath(a.bin)
    missing = [path for path in [os.path.join(a.bin, "gptc")] + [a.gguf] * ("smollm2" in a.models) if not os.path.exists(path)]
    if missing:
        print(f"compare.py: error: expected {' and '.join(missing)}; tools/quickstart.sh makes both (build/release/bin, build/models)", file=sys.stderr)
        return 1
    os.makedirs(a.work, exist_ok=True)
    python = environment.make(a.venv)
    reason = environment.install(python, ["numpy"])
    if reason:
        print(f"compare.py: {reason}", file=sys.stderr)
        return 1
    results = []
    for kind, model in models(a, python):
        workers, failures = start(a, python, kind, model)
        measure(a, workers)
        compare_logits(a, python, workers)
        results.append(table(a, kind, workers, failures))
        for worker in workers:
            worker.end()
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
    failed = [entry["name"] for result in results for entry in result["failed"]]
    return int(any(name.startswith("gptc ") for name in failed) or not any(result["peers"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
