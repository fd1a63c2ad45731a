"""Weights in every storage format, with the numbers that they stand for: as the host gives them, in a GGUF file, in the text of a model."""
import struct

import numpy as np

KINDS = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1")  # in the order of gptc_dtype
NUMBERS = dict(zip(KINDS, (0, 1, 30, 8, 2, 3)))  # GGUF's of a format
CODES = {"q8_0": (-128, 128), "q4_0": (-8, 8), "q4_1": (0, 16)}  # from, to


class Stored:
    """A matrix [n, k]: its format, bytes (as u8) and f32 numbers."""

    def __init__(self, kind, shape, data, values):
        self.kind, self.shape, self.data, self.values = kind, shape, np.frombuffer(data, np.uint8), values.reshape(shape).astype(np.float32)
        self.dtype = KINDS.index(kind)  # gptc_dtype


def scalars(kind, w):
    w = w.astype(np.float32)
    if kind == "bf16":  # cut off, not rounded
        words = (w.view(np.uint32) >> 16).astype(np.uint16)
        return Stored(kind, w.shape, words.tobytes(), (words.astype(np.uint32) << 16).view(np.float32))
    w = w.astype({"f32": np.float32, "f16": np.float16}[kind])
    return Stored(kind, w.shape, w.tobytes(), w)


def blocks(kind, shape, codes, scales, minimums=None):
    """Blocks of 32: codes [.., 32], scales and minimums [..] of f16. d * code is exact in double, and the sum is rounded once."""
    scales = scales.reshape(-1, 1).astype(np.float16)
    codes = codes.reshape(-1, 32)
    values, head = scales.astype(np.float64) * codes, scales.view(np.uint8)
    if kind == "q8_0":
        data = codes.astype(np.int8).view(np.uint8)
    else:
        if kind == "q4_0":
            codes = codes + 8
        else:
            minimums = minimums.reshape(-1, 1).astype(np.float16)
            values, head = values + minimums.astype(np.float64), np.hstack([head, minimums.view(np.uint8)])
        data = (codes[:, :16] | codes[:, 16:] << 4).astype(np.uint8)
    return Stored(kind, shape, np.hstack([head, data]).tobytes(), values)


def made(rng, kind, n, k):
    """Any numbers."""
    if kind not in CODES:
        return scalars(kind, rng.standard_normal((n, k)))
    count = n * k // 32
    return blocks(kind, (n, k), rng.integers(*CODES[kind], (count, 32)), rng.standard_normal(count) * 0.01, rng.standard_normal(count) * 0.05)


def exact(rng, kind, n, k):
    """Numbers of at most eight bits: every precision has them, and sums of their products with small whole numbers are exact."""
    if kind not in CODES:
        return scalars(kind, rng.integers(-9, 10, (n, k)) / 4)
    count = n * k // 32
    scales = 2.0 ** rng.integers(-4, 1, count)
    return blocks(kind, (n, k), rng.integers(*CODES[kind], (count, 32)), scales, scales * rng.integers(-20, 5, count))


def whole(kind, w):
    """Whole numbers from -2 to 2, exactly."""
    if kind not in CODES:
        return scalars(kind, w)
    half = np.full(w.size // 32, 0.5)
    codes = (2 * w).astype(np.int64)
    return blocks(kind, w.shape, codes + 5 if kind == "q4_1" else codes, half, -5 * half)


def gguf(tensors):
    """A GGUF file: name -> Stored."""
    string = lambda text: struct.pack("<Q", len(text)) + text.encode()
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + string("general.architecture") + struct.pack("<I", 8) + string("none"), b""
    for name, w in tensors.items():
        head += string(name) + struct.pack("<IQQIQ", 2, *w.shape[::-1], NUMBERS[w.kind], len(data))
        data += w.data.tobytes() + bytes(-len(w.data) % 32)
    return head + bytes(-len(head) % 32) + data


def declared(name, kind, n, k, file=""):
    """The text that declares a weight [n, k] of a checkpoint's file."""
    return f'  ml_program.global private @{name}(#ml_program.extern) : tensor<{n}x{k}xf32> {{gpt.stored = #gpt.stored<"{file}", "{name}", {kind}>}}\n'


def linear(function, name, n, k):
    """The text of a function y [?, n] = x [?, k] times the transpose of such a weight."""
    x, w, y = f"tensor<?x{k}xf32>", f"tensor<{n}x{k}xf32>", f"tensor<?x{n}xf32>"
    return f"""  func.func @{function}(%x: {x} {{gpt.arg = "x"}}) -> ({y} {{gpt.result = "y"}}) {{
    %w = ml_program.global_load_const @{name} : {w}
    %y = gpt.linear %x, %w : {x}, {w} -> {y}
    return %y : {y}
  }}
"""
