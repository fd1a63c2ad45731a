#!/usr/bin/env python3
"""What --precision does to perplexity: a GGUF model, each precision on the same text.

    perplexity.py [--bin DIR] [--gguf FILE] [--text FILE,FILE] [--precisions f32,bf16,int8] [--window 512] [--windows 8] [--venv DIR]

The text (default: README.md and docs/Rationale.md) is cut into windows of --window tokens, each from an empty KV cache; every token but a window's
first counts. Prints perplexity, its change against the first precision, and how often the likeliest token is another, as Markdown. The text's tokens
are llama.cpp's (llama-cpp-python, as compare.py installs it into --venv, default build/peers); the rest is gptc-run's logits and numpy's arithmetic in float64.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    p.add_argument("--gguf", default=os.path.join(ROOT, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf"))
    p.add_argument("--text", default=",".join(os.path.join(ROOT, f) for f in ("README.md", os.path.join("docs", "Rationale.md"))))
    p.add_argument("--precisions", default="f32,bf16,int8")
    p.add_argument("--window", type=int, default=512)
    p.add_argument("--windows", type=int, default=8)
    p.add_argument("--venv", default=os.path.join(ROOT, "build", "peers"))
    return p.parse_args()


def token_ids(gguf, files):
    from llama_cpp import Llama
    text = "".join(open(f, encoding="utf-8").read() for f in files.split(","))
    return Llama(gguf, vocab_only=True, verbose=False).tokenize(text.encode(), add_bos=False)


def judged(binary, package, windows, folder):
    """Sum of -log p, and the likeliest token at every place."""
    import numpy as np
    loss, likeliest = 0.0, []
    for ids in windows:
        logits = os.path.join(folder, "logits.npy")
        subprocess.run([os.path.join(binary, "gptc-run"), package, "--tokens", ",".join(map(str, ids)), "-n", "0", "--logits", logits], check=True,
                       capture_output=True)
        x = np.load(logits)[:-1].astype(np.float64)
        top = x.max(axis=1, keepdims=True)
        loss += float((np.log(np.exp(x - top).sum(axis=1)) + top[:, 0] - x[np.arange(len(x)), ids[1:]]).sum())
        likeliest.append(x.argmax(axis=1))
    return loss, np.concatenate(likeliest)


def main():
    a = arguments()
    python = os.path.join(a.venv, "bin", "python")
    if os.path.realpath(sys.prefix) != os.path.realpath(a.venv):
        if not os.path.exists(python):
            sys.exit(f"perplexity.py: {python}: not found; tools/bench/compare.py --models smollm2 --peers llama.cpp makes it")
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])
    import numpy as np
    ids = token_ids(a.gguf, a.text)
    windows = [ids[i:i + a.window] for i in range(0, len(ids) - a.window + 1, a.window)][:a.windows]
    if not windows:
        sys.exit(f"perplexity.py: expected a text of {a.window} tokens or more, got {len(ids)}")
    count = len(windows) * (a.window - 1)
    print(f"{os.path.basename(a.gguf)}, {count} tokens in {len(windows)} windows of {a.window}\n\n"
          "| precision | perplexity | change | likeliest token differs |\n| --- | --- | --- | --- |")
    first = None
    with tempfile.TemporaryDirectory() as folder:
        mlir = os.path.join(folder, "model.mlir")
        subprocess.run([os.path.join(a.bin, "gptc-import"), a.gguf, "-o", mlir], check=True)
        for precision in a.precisions.split(","):
            package = os.path.join(folder, precision)
            subprocess.run([os.path.join(a.bin, "gptc"), mlir, "-o", package, f"--precision={precision}"], check=True)
            loss, likeliest = judged(a.bin, package, windows, folder)
            first = first or (loss, likeliest)
            value, base = np.exp(loss / count), np.exp(first[0] / count)
            print(f"| {precision} | {value:.3f} | {100 * (value / base - 1):+.2f} % | {100 * np.mean(likeliest != first[1]):.2f} % |")


main()
