"""What the integration tests share: the tools, the golden data, compiled packages (numpy only).

A test is run as `python3 NAME.py BIN [unittest arguments]`, BIN being the folder of the tools.
"""
import atexit
import contextlib
import functools
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "Golden")
FAMILIES = os.path.join(HERE, "..", "Families")
DOCS = os.path.join(HERE, "..", "..", "docs")
BIN = os.path.abspath(sys.argv.pop(1))
SMOLLM2 = os.environ.get("GPTC_SMOLLM2_GGUF", "")
SMOLLM2 = SMOLLM2 if os.path.exists(SMOLLM2) else ""
SANITIZER = os.environ.get("GPTC_SANITIZER", "")  # set by test/sanitize.sh
# The space shows that no path is pasted into a command line.
TEMPORARY = tempfile.mkdtemp(prefix="gptc test ")
atexit.register(shutil.rmtree, TEMPORARY, ignore_errors=True)
main = unittest.main


def run(tool, *args, status=0, **keywords):
    """Runs one of our tools (or a program named by its path) and checks its exit status."""
    program = tool if os.path.isabs(tool) else os.path.join(BIN, tool)
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL, **keywords)
    if done.returncode != status:
        raise AssertionError(f"{tool} {' '.join(map(str, args))}: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done


# A process is charged with the memory of the one that starts it, so a small one does.
MEASURE = """import json, os, sys
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print("\\n" + json.dumps([os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))"""


def measured(tool, *args, **keywords):
    """Runs one of our tools; what it printed, its status, CPU seconds and most bytes of memory."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, os.path.join(BIN, tool), *map(str, args)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=True, **keywords)
    done.stdout, numbers = done.stdout.rsplit("\n", 2)[:2]
    done.returncode, done.seconds, done.bytes = json.loads(numbers)
    if SANITIZER:
        print(f"under {SANITIZER}: a tenth of the CPU seconds counts, and no memory; the rest is the sanitizer's", file=sys.stderr)
        done.seconds, done.bytes = done.seconds / 10, 0
    return done


def golden(case):
    with open(os.path.join(GOLDEN, case, "case.json"), encoding="utf-8") as f:
        return json.load(f)


def checkpoint(case):
    files = golden(case)["files"]
    folder = os.path.join(GOLDEN, case)
    return folder if "config.json" in files else os.path.join(folder, files[0])


@functools.cache
def imported(path, name):
    """The checkpoint as model.mlir."""
    mlir = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "model.mlir")
    run("gptc-import", path, "--name", name, "-o", mlir)
    return mlir


packages = []  # the folders of all that were compiled


@functools.cache
def choosing(case):
    """A golden model that returns the token of the largest logit, `next`, instead of logits."""
    path = imported(checkpoint(case), "model")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    logits, kind = re.search(r"return (%\w+) : (tensor<\?x\d+xf32>)", text).groups()
    text = text.replace(f"return {logits} : {kind}", f"%next = gpt.argmax {logits} : {kind} -> tensor<?xi32>\n    return %next : tensor<?xi32>")
    text, count = re.subn(rf"-> \({re.escape(kind)} {{[^}}]*}}\)|-> {re.escape(kind)} (?={{)", '-> (tensor<?xi32> {gpt.result = "next"}) ', text, count=1)
    assert count == 1, text
    model = os.path.join(os.path.dirname(path), "argmax.mlir")
    with open(model, "w", encoding="utf-8") as f:
        f.write(text)
    return model


@functools.cache
def compiled(mlir, level=2, *options):
    """The folder of the compiled package; one per model and level in a test run."""
    folder = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "kernels")
    run("gptc", mlir, "-o", folder, f"-O{level}", *options)
    packages.append(folder)
    return folder


def compiled_case(case, level=2, name="model"):
    return compiled(imported(checkpoint(case), name), level)


def written(text, name="model.mlir"):
    """A file of this text in a folder of its own."""
    path = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def manifest(package):
    with open(os.path.join(package, "manifest.json"), encoding="utf-8") as f:
        return json.load(f)


@functools.cache
def checker():
    spec = importlib.util.spec_from_file_location("golden_check", os.path.join(GOLDEN, "check.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def close_to_golden(case, index, array, mode="f32"):
    """test/Golden/check.py, in this process."""
    path, said = os.path.join(TEMPORARY, "checked.npy"), io.StringIO()
    np.save(path, array)
    with contextlib.redirect_stdout(said), unittest.mock.patch.object(sys, "argv", ["check.py", "--mode", mode, os.path.join(GOLDEN, case), str(index), path]):
        try:
            status = checker().main()
        except SystemExit as end:
            status = end.code
    if status != 0:
        raise AssertionError(f"{case}, number {index}: {said.getvalue()}")


def random_tokens(count, vocab, seed=0):
    return np.random.default_rng(seed).integers(0, vocab, count).tolist()


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
