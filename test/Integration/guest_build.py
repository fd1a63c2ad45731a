"""Builds the guest_*.c programs with the package `guest`, gpt2-hf of the golden data."""
import functools
import json
import os
import shutil

import numpy as np

from harness import HERE, checkpoint, compiled, imported, run


@functools.cache
def folder(level=2):
    return compiled(imported(checkpoint("gpt2-hf"), "guest"), level)


def weights(level=2):
    return os.path.join(folder(level), "guest.weights")


@functools.cache
def tensors():
    """The checkpoint's f32 tensors end to end in one file, and guest_tensors.h, which says where each is."""
    with open(os.path.join(checkpoint("gpt2-hf"), "model.safetensors"), "rb") as f:
        data = f.read()
    start = 8 + int.from_bytes(data[:8], "little")
    table, values = [], []
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        values.append(np.frombuffer(data[start + begin:start + end], np.float32))
        shape = ", ".join(map(str, entry["shape"]))
        table.append(f'  {{"{name}", {len(entry["shape"])}, {{{shape}}}, {values[-1].size}}},\n')
    base = os.path.join(folder(), "..")
    with open(os.path.join(base, "guest_tensors.h"), "w", encoding="utf-8") as f:
        f.write("static const struct { const char *name; int rank; int64_t shape[8]; size_t count; } guest_tensor_table[] = {\n"
                + "".join(table) + "};\n")
    path = os.path.abspath(os.path.join(base, "tensors"))
    np.concatenate(values).tofile(path)
    return path


def program(name, level=2):
    out = os.path.abspath(os.path.join(folder(level), "..", name))
    run(shutil.which("cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
        os.path.join(HERE, name + ".c"), "-I", folder(level), "-I", os.path.dirname(tensors()), "-I", HERE,
        os.path.join(folder(level), "libguest.a"), "-lpthread", "-o", out)
    return out
