#!/usr/bin/env python3
"""Instructions and bytes of the loops that read weights for few rows, from PTX: ptx_loops.py [FUNCTIONS, a regex] < kernels.ptx

Of a function the shortest loop with streaming loads. Moves are not counted: they rename registers and become no machine instruction.
`/weight` divides by the weights of a lane, which are known from what the loop loads (lib/Target/CUDA/Kernels/strips.cuh).
"""
import collections
import re
import sys

# storage: weights of a lane in a strip, streaming loads of a strip
STRIPS = {"f32": (4, 1), "bf16": (8, 1), "f16": (8, 1), "q8_0": (16, 2), "q4_0": (32, 2), "q4_1": (32, 3)}
STREAM = re.compile(r"ld\.global\.nc\.L1::no_allocate(?:\.v(\d))?\.u32")
KINDS = (("fma", r"fma\."), ("f32", r"(add|sub|mul|div|min|max)\.rn\.f32|neg\.f32"), ("cvt", r"cvt\.(rn\.)?f32"), ("global", r"ld\.global"), ("shared", r"ld\.shared"),
         ("shfl", r"shfl"), ("integer", r"(lop3|and|or|xor|shl|shr|prmt|bfe|add|sub|mul|mad|cvt|selp|not)\.?"), ("control", r"setp|bra|or\.pred"))


def functions(text):
    for match in re.finditer(r"\.entry (\w+)\((.*?)^}", text, re.S | re.M):
        lines = [line.strip() for line in match[2].splitlines()]
        yield match[1], [line for line in lines if line and not line.startswith((".loc", ".pragma", "//", "{", "}"))]


def loop(lines):
    """The shortest stretch between a label and a branch back to it that streams."""
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    best = None
    for i, line in enumerate(lines):
        target = re.search(r"bra(?:\.uni)?\s+(\$\w+)", line)
        if target and labels.get(target[1], i) < i:
            body = lines[labels[target[1]]:i + 1]
            if any(STREAM.search(each) for each in body) and (best is None or len(body) < len(best)):
                best = body
    return best


def counted(body):
    kinds, loads = collections.Counter(), []
    for line in body:
        op = re.sub(r"^@!?%\w+\s+", "", line)
        if op.endswith(":") or op.startswith("mov."):
            continue
        stream = STREAM.search(op)
        if stream:
            loads.append(4 * int(stream[1] or 1))
        kinds[next((name for name, pattern in KINDS if re.match(pattern, op)), "other: " + op.split()[0])] += 1
    return kinds, loads


def main():
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "_rows1$")
    print(f"{'function':<34}{'weights':>8}{'bytes of loads':>24}{'/weight':>9}  of which")
    for name, lines in functions(sys.stdin.read()):
        body = loop(lines) if wanted.search(name) else None
        if body is None:
            continue
        storage = next((s for s in STRIPS if re.search(rf"_{s}_", name)), "f32")  # which has no part of a kernel's name
        kinds, loads = counted(body)
        weights = len(loads) // STRIPS[storage][1] * STRIPS[storage][0]
        sizes = " ".join(f"{n}x{size}" for size, n in sorted(collections.Counter(loads).items(), reverse=True))
        parts = ", ".join(f"{kind} {n / weights:.2f}" for kind, n in kinds.most_common())
        print(f"{name:<34}{weights:>8}{sizes:>24}{sum(kinds.values()) / weights:>9.2f}  {parts}")


main()
