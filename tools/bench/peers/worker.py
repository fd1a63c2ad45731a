#!/usr/bin/env python3
"""A process that holds one peer with its model, warmed, and does the work when told.

    worker.py PEER JSON      JSON: model, kind, setting, threads, prompt, decode, vocab, work (a folder for what is built), bin

On stdin a line `round` answers {"prefill_s", "decode_s"}: a prompt from an empty cache up to the logits of its last token, then `decode`
tokens one by one, each with its logits. A line `logits PATH` writes the last token's logits, float32, of the prompt, and of the last token
decoded after it, if the peer gives them. Answers are lines of JSON on the first stdout; a peer's own prints go to stderr. The first line
says {"version", "settings"}, or {"error"}.
"""
import importlib
import json
import os
import sys
import time
import traceback

import numpy as np


def token(i, vocab=40000):
    """Arbitrary but fixed, below `vocab`."""
    return (7919 * i + 103) % vocab


class Stepper:
    """Of a peer that gives logits step by step: step(tokens, position) -> float32 [vocab] of the last one."""

    def measure(self, prompt, following):
        begin = time.perf_counter()
        self.first = self.step(prompt, 0)
        middle = time.perf_counter()
        for i, one in enumerate(following):
            self.last = self.step([one], len(prompt) + i)
        return middle - begin, time.perf_counter() - middle

    def logits(self):
        return self.first, self.last


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    name, request = sys.argv[1], json.loads(sys.argv[2])
    prompt = [token(i, request["vocab"]) for i in range(request["prompt"])]
    following = [token(len(prompt) + i, request["vocab"]) for i in range(request["decode"])]
    try:
        peer = importlib.import_module(name).Peer(request)
        for _ in range(2):
            peer.measure(prompt, following)
        answer({"version": peer.version, "settings": peer.settings})
        for line in sys.stdin:
            word, _, path = line.strip().partition(" ")
            if word == "round":
                prefill, decode = peer.measure(prompt, following)
                answer({"prefill_s": prefill, "decode_s": decode})
            elif word == "logits":
                rows = peer.logits() if hasattr(peer, "logits") else None
                if rows is not None:
                    np.save(path, np.array(rows, np.float32))
                answer({"logits": rows is not None})
    except Exception as error:
        traceback.print_exc()
        answer({"error": f"{type(error).__name__}: {error}".strip().split("\n")[0]})


if __name__ == "__main__":
    main()
