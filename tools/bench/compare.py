#!/usr/bin/env python3
"""Time a gptc package against llama.cpp on the same GGUF file, in turns.

    compare.py PACKAGE MODEL.gguf [--bin DIR] [--prefill 512] [--decode 64] [--threads 2] [--rounds 7] [--venv DIR] [--json]

Each round runs gptc-bench once, then llama.cpp once (llama-cpp-python, the same prompt length and threads, f32 KV cache not
forced: its defaults), so that both see the same machine. Prefill asks for the last row's logits; decode follows it. Prints the
median, minimum and maximum of each in tokens a second, and the median of the per-round ratios (above 1: gptc is faster).
The peer is built from PyPI in a virtual environment of its own (default build/peers) the first time; that takes minutes.
OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset for it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import venv

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

PEER = r"""
import json, sys, time
import llama_cpp
from llama_cpp import Llama
plain, amx = llama_cpp.llama_model_default_params, sys.argv[5] == "amx"
def parameters():  # its AMX path dies of an illegal instruction on machines that announce AMX but do not let it run
    p = plain()
    p.use_extra_bufts = amx
    return p
llama_cpp.llama_model_default_params = llama_cpp.llama_cpp.llama_model_default_params = parameters
path, prefill, decode, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
llm = Llama(path, n_ctx=prefill + decode + 64, n_batch=prefill, n_ubatch=prefill, n_threads=threads, n_threads_batch=threads,
            logits_all=False, verbose=False)
tokens = [(7 * i + 3) % 40000 + 100 for i in range(prefill)]
llm.eval(tokens[:8]); llm.reset()                      # warm
start = time.perf_counter(); llm.eval(tokens); middle = time.perf_counter()
for i in range(decode):
    llm.eval([tokens[i % prefill]])
end = time.perf_counter()
print(json.dumps({"prefill": prefill / (middle - start), "decode": decode / (end - middle)}))
"""


def environment():
    return {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}


def peer_python(folder):
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import llama_cpp"], capture_output=True).returncode:
        print("building llama-cpp-python from PyPI", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "llama-cpp-python"], check=True, env=environment())
    return python


def gptc(a):
    out = subprocess.run([os.path.join(a.bin, "gptc-bench"), a.package, "--prefill", str(a.prefill), "--decode", str(a.decode),
                          "--threads", str(a.threads), "--runs", "1", "--json"], check=True, capture_output=True, text=True).stdout
    r = json.loads(out)
    return {"prefill": r["prefill_tokens_per_s"], "decode": r["decode_tokens_per_s"]}


def llama(a, python):
    out = subprocess.run([python, "-c", PEER, a.model, str(a.prefill), str(a.decode), str(a.threads),
                          "amx" if a.amx else "plain"], check=True, capture_output=True, text=True, env=environment()).stdout
    return json.loads(out.strip().split("\n")[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("package")
    p.add_argument("model")
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    p.add_argument("--prefill", type=int, default=512)
    p.add_argument("--decode", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--venv", default=os.path.join(ROOT, "build", "peers"))
    p.add_argument("--amx", action="store_true", help="let llama.cpp use AMX")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    python = peer_python(a.venv)
    rounds = [(gptc(a), llama(a, python)) for _ in range(a.rounds)]
    result = {}
    for work in ("prefill", "decode"):
        ours, theirs = [r[0][work] for r in rounds], [r[1][work] for r in rounds]
        ratios = [x / y for x, y in zip(ours, theirs)]
        result[work] = {"gptc": ours, "llama.cpp": theirs, "ratio": statistics.median(ratios)}
        if not a.json:
            for name, v in (("gptc", ours), ("llama.cpp", theirs)):
                print(f"{work:8} {name:10} median {statistics.median(v):8.1f} tokens/s   {min(v):8.1f} .. {max(v):8.1f}")
            print(f"{work:8} ratio      median {statistics.median(ratios):8.2f}            {min(ratios):8.2f} .. {max(ratios):8.2f}")
    if a.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
