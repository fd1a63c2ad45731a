"""Compiles every building block on its own: blocks.py NVCC FOLDER"""
import glob
import os
import subprocess
import sys

nvcc, folder = sys.argv[1:]
files = sorted(glob.glob(os.path.join(folder, "*.cuh")))
for path in files:
    for line in open(path, encoding="utf-8"):
        if line.startswith('#include "') and not line.rstrip().endswith('.cuh"'):
            sys.exit(f"{path}: expected to include .cuh files only, got {line}")
    command = [nvcc, "-x", "cu", "-std=c++17", "-arch=sm_80", "-Werror", "all-warnings", "-diag-suppress", "1444", "-c", "-o", os.devnull]
    # The pragma belongs to a header, which the file is not here.
    done = subprocess.run([*command, "-Xcompiler", "-w", path], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path}: {done.stdout}{done.stderr}")
print(len(files), "blocks")
