#!/usr/bin/env python3
"""Write the cases of this folder anew: tiny random models of each family with the logits that Hugging Face transformers computes.

    make.py [CASE...]        no CASE: all

Needs torch, transformers, safetensors and gguf. Every module families_*.py holds functions, one a case; `rope_linear` in families_llama.py writes the folder
`llama-rope-linear`. The same versions write the same bytes (case.json names them).
"""
import glob, importlib, os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def cases():
    """{case: function} of all modules."""
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, "families_*.py"))):
        found |= importlib.import_module(os.path.basename(path)[:-3]).CASES
    return found


def main():
    known = cases()
    wanted = sys.argv[1:] or list(known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no case {', '.join(unknown)}; there are {', '.join(known)}")
    for name in wanted:
        known[name](name)
        size = sum(os.path.getsize(os.path.join(HERE, name, f)) for f in os.listdir(os.path.join(HERE, name)))
        print(f"{name}: {size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
