"""Levels of CPUs, alone and several in one package (case B44): no instruction above a level in the disassembly, by encoding and name; the highest level that a CPU runs is chosen when the package is opened, a lesser CPU gets a status that names the feature (both
under an emulator, whose CPUs have no AVX-512); logits are the reference's at every level.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np

from harness import BIN, GOLDEN, SANITIZER, TEMPORARY, checkpoint, compiled, golden, imported, main, manifest, run, same_bits, unittest
from package import Package

LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
ALL = ",".join(LEVELS)
TOOLS = "/usr/lib/llvm-22/bin"  # where Debian has them
CASES = ["gpt2-hf", "llama-gguf-q4-0", "llama-gguf-f16"]
HOST = """#include "model.h"
#include <stdio.h>
int main(int argc, char **argv) {
  gptc_open_params params = {sizeof(params), argv[1]};
  gptc_model *model;
  gptc_status status = model_open(&params, &model);
  printf("%s\\n%d\\n%s\\n", model_info()->target, status, model_last_error());
  if (status == GPTC_OK)
    model_close(model);
  return argc != 2;
}
"""


def tool(name):
    found = shutil.which(name, path=TOOLS + os.pathsep + os.environ["PATH"])
    if not found:
        raise AssertionError(f"expected {name} on this machine (Debian packages llvm-22 and qemu-user)")
    return found


def package(case, march):
    return compiled(imported(checkpoint(case), "model"), 2, "-march=" + march)


def above(level, code, name):
    """What an instruction, bytes and mnemonic, has that the level (1 to 4) does not; "" if it may be there. In 64-bit code 62 starts
    EVEX and c4, c5 start VEX (Intel SDM vol. 2A, 2.3 and 2.7)."""
    evex, vex = code[0] == 0x62, code[0] in (0xc4, 0xc5)
    for needs, what, found in (
            (2, "SSE3", re.match(r"(addsub|hadd|hsub)p[sd]|lddqu|mov(d|sh|sl)(d|)up|fisttp", name)),
            (2, "SSSE3", re.match(r"pabs|palignr|ph(add|sub)|pmaddubsw|pmulhrsw|pshufb|psign", name)),
            (2, "SSE4.1", re.match(r"p?blend|dpp[sd]|extractps|insertps|movntdqa|mpsadbw|packusdw|pcmpeqq|p(ext|ins)r[bdq]|phminpos"
                                   r"|p(max|min)(s[bd]|u[dw])|pmov[sz]x|pmul(dq|ld)|ptest|round", name)),
            (2, "SSE4.2", re.match(r"pcmp(gtq|[ei]str)|crc32|popcnt", name)),
            (3, "VEX", vex), (3, "LZCNT", name.startswith("lzcnt")), (3, "MOVBE", name.startswith("movbe")), (3, "BMI", name.startswith("tzcnt")),
            (4, "EVEX", evex),
            (5, "beyond AVX-512 F, BW, CD, DQ, VL", (evex or vex) and re.match(
                r"vpdp|vdp|v\w+bf16|v(add|sub|mul|div|f\w+|cvt\w*|max|min|sqrt|cmp|mov)[ps]h$|vperm[it]?2?b|vpmultishift|vp(compress|expand)[bw]"
                r"|vpsh[lr]d|vpopcnt|vpshufbit|vpmadd52|vgf2p8|vaes|vp2inter", name)),
            (5, "AMX", name.startswith("t") and re.match("tile|tdp", name))):
        if found and needs > level:
            return what
    return ""


@functools.cache
def instructions(case, march):
    """(function, bytes, mnemonic) of every instruction of the package."""
    text = run(tool("llvm-objdump"), "-d", os.path.join(package(case, march), "libmodel.a")).stdout
    found, function = [], ""
    for line in text.splitlines():
        if match := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            function = match[1]
        elif match := re.match(r" *[0-9a-f]+: ((?:[0-9a-f]{2} )+)\s*(\S+)", line):
            found.append((function, bytes.fromhex(match[1]), match[2]))
    return found


def emulated(cpu, program, *args):
    return subprocess.run([tool("qemu-x86_64"), "-cpu", cpu, program, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)


@functools.cache
def host(march):
    folder = package("gpt2-hf", march)
    source = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "host.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(HOST)
    run(shutil.which("cc"), source, "-I", folder, os.path.join(folder, "libmodel.a"), "-o", source[:-2])
    return source[:-2], os.path.join(folder, "model.weights")


def largest_difference(logits, case):
    return max(np.abs(logits(prompt["ids"]) - np.load(os.path.join(GOLDEN, case, prompt["logits"]))).max()
               for prompt in golden(case)["prompts"][:2])


class Instructions(unittest.TestCase):
    def test_alone(self):
        for case in CASES:
            for level in (1, 2, 3, 4):
                with self.subTest(case=case, level=level):
                    wrong = {(what, *each) for each in instructions(case, LEVELS[level - 1]) if (what := above(level, *each[1:]))}
                    self.assertEqual(wrong, set())

    def test_what_the_level_has_is_used(self):
        """Also that the check above sees it."""
        for case in CASES:
            for level, what in ((3, "VEX"), (4, "EVEX")):
                seen = {above(level - 1, *each[1:]) for each in instructions(case, LEVELS[level - 1])}
                self.assertIn(what, seen)
        self.assertIn("SSE4.1", {above(1, *each[1:]) for each in instructions("llama-gguf-q4-0", LEVELS[1])})

    def test_together(self):
        for case in CASES:
            seen = dict.fromkeys((1, 2, 3, 4), 0)
            for function, code, name in instructions(case, ALL):
                suffix = re.search(r"_v([1-4])(\.\d+)?$", function)
                level = int(suffix[1]) if suffix else 1  # the runtime is for every CPU
                seen[level] += 1
                self.assertEqual(above(level, code, name), "", f"{name} in {function}")
            self.assertTrue(all(seen.values()), seen)


class Chosen(unittest.TestCase):
    def opened(self, march, cpu):
        done = emulated(cpu, *host(march))
        self.assertEqual(done.returncode, 0, f"{cpu}: {done.stdout}{done.stderr}")
        return done.stdout.splitlines()

    def test_the_highest_that_the_cpu_runs(self):
        for cpu, level in (("core2duo", "x86-64"), ("Nehalem", "x86-64-v2"), ("Haswell", "x86-64-v3"), ("max", "x86-64-v3")):
            self.assertEqual(self.opened(ALL, cpu), [level, "0", ""], cpu)

    def test_a_lesser_cpu_gets_a_status(self):
        for march, cpu, feature in (("x86-64-v4", "max", "avx512f"), ("x86-64-v4", "Nehalem", "avx"), ("x86-64-v3", "Nehalem", "avx"),
                                    ("x86-64-v3", "Haswell,-movbe", "movbe"), ("x86-64-v3", "Haswell,-fma", "fma"),
                                    ("x86-64-v2", "core2duo", "popcnt"), ("x86-64-v4,x86-64-v3", "Nehalem", "avx")):
            target, status, message = self.opened(march, cpu)
            self.assertEqual((target, status), (march.split(",")[-1], "6"), f"{march} on {cpu}")
            self.assertRegex(message, rf"lacks {feature}, which the package model was compiled for \({target}")

    # Emulated with gptc-run, which a sanitizer makes map more than qemu can.
    @unittest.skipIf(SANITIZER, "a sanitized program does not fit under qemu")
    def test_logits_of_every_level(self):
        for case in CASES:
            for level, cpu in zip(LEVELS[:3], ("core2duo", "Nehalem", "Haswell")):
                for march in (level, ALL):
                    with self.subTest(case=case, march=march, cpu=cpu):
                        def logits(ids):
                            out = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "logits.npy")
                            done = emulated(cpu, os.path.join(BIN, "gptc-run"), package(case, march),
                                            "--tokens", ",".join(map(str, ids)), "-n", "1", "--print-tokens", "--threads", "1", "--logits", out)
                            self.assertEqual(done.returncode, 0, done.stderr)
                            return np.load(out)
                        self.assertLessEqual(largest_difference(logits, case), golden(case)["tolerance"])


class HostWeights(unittest.TestCase):
    """Packed at open for the level that is chosen."""

    def test_same_as_the_file(self):
        folder = package("gpt2-hf", ALL)
        opened = Package(folder)
        weights = tensors("gpt2-hf")
        ids = golden("gpt2-hf")["prompts"][1]["ids"]
        results = []
        for given in (None, weights):
            with opened.open(given) as model, model.session() as session:
                results.append(session.step(ids))
        self.assertTrue(same_bits(*results))


def tensors(case):
    """The f32 tensors of a safetensors file."""
    with open(os.path.join(GOLDEN, case, "model.safetensors"), "rb") as f:
        data = f.read()
    length = int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            found[name] = np.frombuffer(data, np.float32, (end - begin) // 4, 8 + length + begin).reshape(entry["shape"])
    return found


class CommandLine(unittest.TestCase):
    def test_names(self):
        mlir = imported(checkpoint("gpt2-hf"), "model")
        for march, message in (("x86-64-v5", "did you mean 'x86-64-v"), ("znver55", "did you mean 'znver5'?"), ("hasvell", "did you mean 'haswell'?"),
                               ("x86-64-v3,haswell", "expected every level once, got 'x86-64-v3' and 'haswell', both x86-64-v3"),
                               ("x86-64-v3,", "unknown -march ''"), ("i386", "unknown -march 'i386'")):
            done = run("gptc", mlir, "-o", os.path.join(TEMPORARY, "none"), "-march=" + march, status=2)
            self.assertIn(message, done.stderr)
            self.assertFalse(os.path.exists(os.path.join(TEMPORARY, "none")))

    def test_the_default_is_told(self):
        mlir = imported(checkpoint("gpt2-hf"), "model")
        told = run("gptc", mlir, "--emit=gpt", "-v").stderr
        self.assertRegex(told, r"gptc: target x86-64(-v[234])? \(-march=native\)")

    def test_cpus_by_name(self):
        for cpu, level in (("znver5", 4), ("haswell", 3), ("nehalem", 2), ("core2", 1)):
            self.assertEqual(manifest(package("gpt2-hf", cpu))["target"], LEVELS[level - 1])
            self.assertEqual({above(level, *each[1:]) for each in instructions("gpt2-hf", cpu)}, {""})


main()
