#!/usr/bin/env python3
"""No fusion refuses without a test: reasons.py GPTC_OPT

Every text that a fusion passes to `refuse` must be, at least with its fixed beginning, a remark of the run of its -missed test. What
ends with `// no candidate` is said to those who debug the matcher only: no one would expect the op to be fused, or another pattern takes it.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# A fusion's sources, beside its own file.
SHARED = {"fuse-attention": ["lib/Stepping/Attention.cpp"], "fuse-epilogue": ["lib/Fusion/EpilogueLanes.cpp"]}
STRING = r'"((?:[^"\\]|\\.)*)"'


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def source(stem):
    name = "".join("KV" if part == "kv" else part.capitalize() for part in stem.split("-"))
    return f"lib/Fusion/{name}.cpp"


def reasons(text):
    """The fixed beginning of what each refuse(op, "...") says."""
    text = re.sub(r"//(?! no candidate).*", "", text)
    for match in re.finditer(r"\brefuse\(", text):
        call = text[match.end():match.end() + 1200]
        first = re.match(rf"[^;]*?({STRING}(?:\s*{STRING})*)", call)
        if first and not re.match(r"[^;]*; // no candidate", call):
            yield "".join(re.findall(STRING, first[1])).replace('\\"', '"')


def remarks(tool, missed):
    options = re.findall(r"--gpt-[\w-]+", re.search(r"^// RUN: (.*)$", missed, re.M)[1])
    done = subprocess.run([tool, "-", *options, "--remarks-filter=fusion", "--remark-format=emitRemark", "--split-input-file", "-o", os.devnull],
                          input=missed, capture_output=True, text=True, check=True)
    return re.findall(r'\[Missed\] .*\| Remark="(.*)"', done.stderr)


def main():
    failed = False
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "Fusion", "fuse-*-missed.mlir"))):
        stem = os.path.basename(path)[:-len("-missed.mlir")]
        seen = remarks(sys.argv[1], read(f"test/Fusion/{stem}-missed.mlir"))
        for file in [source(stem)] + SHARED.get(stem, []):
            for reason in reasons(read(file)):
                if not any(remark.startswith(reason) for remark in seen):
                    print(f"{file}: no test in {stem}-missed.mlir for '{reason}'")
                    failed = True
    sys.exit(failed)


main()
