"""Compiles a layer of GPT-2 (bf16 weights) or SmolLM2 (q4_1) with embedding and LM head at full size: no kernel spills a register, and
nvcc takes under 60 seconds of CPU time. resources.py gpt2|smollm2 FOLDER_OF_FUSION_TESTS MARCH PRECISION"""
import os
import re
import resource
import subprocess
import sys
import tempfile

model, folder, march, precision = sys.argv[1:]
file, storage, sizes = {
    "gpt2": ("gpt2-layer.mlir", "bf16", {257: 50257, 128: 1024, 64: 768, 192: 2304, 256: 3072, 4: 12, 16: 64}),
    "smollm2": ("llama-layer.mlir", "q4_1", {300: 49152, 64: 576, 32: 192, 128: 1536, 4: 9, 2: 3, 16: 64}),
}[model]
text = open(os.path.join(folder, file), encoding="utf-8").read()
text = "".join(line + "\n" for line in text.splitlines() if not line.startswith("//"))
text = re.sub(r"(?<=tensor<)[\dx?]+(?=x[fi]32>)|(?<=dim )\d+|(?<=groups )\d+",
              lambda match: "x".join(str(sizes.get(int(n), n)) if n.isdigit() else n for n in match[0].split("x")), text)
# Matrices lie in the checkpoint in the model's format.
text = re.sub(r"private @(\w+)\((.*)\) : (tensor<\d+x\d+xf32>)", rf'private @\1(\2) : \3 {{gpt.stored = #gpt.stored<"", "\1", {storage}>}}', text)
with tempfile.TemporaryDirectory() as temporary:
    path = os.path.join(temporary, model + ".mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    done = subprocess.run(["gptc", path, "--target=cuda", f"-march={march}", f"--precision={precision}", "--emit=fatbin", "-v", "-o", temporary],
                          capture_output=True, text=True)
if done.returncode:
    sys.exit(done.stderr)
kernels = re.findall(r"gptc: (\w+): (\d+) registers, (\d+) bytes spilled, (\d+) bytes of static shared memory", done.stderr)
spilled = [f"{name}: {spills} bytes" for name, _, spills, _ in kernels if spills != "0"]
if spilled:
    sys.exit("spilled " + ", ".join(spilled))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if used.ru_utime + used.ru_stime >= 60:
    sys.exit(f"expected under 60 s of CPU time, got {used.ru_utime + used.ru_stime:.1f}")
print(f"{len(kernels)} kernels, at most {max(int(registers) for _, registers, _, _ in kernels)} registers")
