"""Constants that files give: one that would make a finite model's logits NaN is refused, at the ends of what is accepted they stay finite."""
import json
import os
import re
import shutil
import struct
import unittest

import numpy as np

from harness import FAMILIES, compiled, imported, main, random_tokens, run, written
from models import new_folder
from package import Package

LEAST, MOST = 1.2e-38, 3.4e38  # normal numbers of f32
NUMBER = (LEAST, MOST), (0.0, -1.0, 1e-45, 1e39)
BASE = (1.0001, MOST), (1.0, 0.0, -1.0, 1e39)
FACTOR = (0.001, MOST), (0.0, -1.0, 1e-45, 1e-30, 0.0009)
STORED_FACTOR = FACTOR[0], FACTOR[1][1:]  # 0 is none

# For each key: the ends of what is accepted, and what is refused.
HF = {
    "llama-rope-linear": {"rms_norm_eps": NUMBER, "rope_theta": BASE, "rope_scaling.factor": FACTOR},
    "gemma2": {"rms_norm_eps": NUMBER, "rope_theta": BASE, "query_pre_attn_scalar": NUMBER, "attn_logit_softcapping": NUMBER,
               "final_logit_softcapping": NUMBER},
    "gpt-neox": {"layer_norm_eps": NUMBER, "rotary_emb_base": BASE},
}
GGUF = {
    "llama-gguf-rope-linear": {"llama.attention.layer_norm_rms_epsilon": NUMBER, "llama.rope.freq_base": BASE, "llama.rope.scaling.factor": STORED_FACTOR},
    "gpt2-gguf": {"gpt2.attention.layer_norm_epsilon": NUMBER},
}


def with_json(case, values):
    """A copy of the case with these keys of config.json."""
    folder = os.path.join(new_folder(), "model")
    shutil.copytree(os.path.join(FAMILIES, case), folder)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    for key, value in values.items():
        place, *inner = key.split(".")
        (config[place] if inner else config)[inner[0] if inner else place] = value
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return folder


def with_metadata(case, values):
    """A copy of the case with these float32 values of the metadata."""
    path = os.path.join(new_folder(), "model.gguf")
    with open(os.path.join(FAMILIES, case, "model.gguf"), "rb") as f:
        data = bytearray(f.read())
    for key, value in values.items():
        tag = struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", 6)
        at = data.index(tag) + len(tag)
        with np.errstate(over="ignore"):
            data[at:at + 4] = np.float32(value).tobytes()
    with open(path, "wb") as f:
        f.write(data)
    return path


class Files(unittest.TestCase):
    def refuses(self, path, key):
        done = run("gptc-import", path, "-o", os.path.join(new_folder(), "model.mlir"), status=1)
        self.assertRegex(done.stderr, f"error: .*: key '{re.escape(key)}': expected .*, got ")
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def finite(self, path):
        package = Package(compiled(imported(path, "model")))
        with package.open() as model, model.session() as session:
            self.assertTrue(np.all(np.isfinite(session.step(random_tokens(20, package.info.vocab)))), path)

    def test_refused(self):
        for write, cases, more in ((with_json, HF, ()), (with_metadata, GGUF, (np.nan, np.inf, -np.inf))):
            for case, keys in cases.items():
                for key, (_, bad) in keys.items():
                    for value in (*bad, *more):
                        with self.subTest(case=case, key=key, value=value):
                            self.refuses(write(case, {key: value}), key)

    def test_ends(self):
        for write, cases in ((with_json, HF), (with_metadata, GGUF)):
            for case, keys in cases.items():
                for end in (0, 1):
                    with self.subTest(case=case, end=end):
                        self.finite(write(case, {key: ends[end] for key, (ends, _) in keys.items()}))


ENTRY = """module attributes {{gpt.name = "ends"}} {{
  ml_program.global private @g(#ml_program.extern<tensor<16xf32>>) : tensor<16xf32>
  func.func @f(%x: tensor<?x16xf32> {{gpt.arg = "x"}}) -> (tensor<?x16xf32> {{gpt.result = "y"}}) {{
    %g = ml_program.global_load_const @g : tensor<16xf32>
    %y = gpt.{} : tensor<?x16xf32>{}
    return %y : tensor<?x16xf32>
  }}
}}
"""
ROPE = """module attributes {{gpt.name = "rope"}} {{
  func.func @f(%x: tensor<1x?x4xf32> {{gpt.arg = "x"}}, %p: tensor<?xi32> {{gpt.arg = "p"}}) -> (tensor<1x?x4xf32> {{gpt.result = "y"}}) {{
    %y = gpt.rope %x, %p <base {}, pairs half, dim 4, scaling #gpt.rope_factors<{}>> : tensor<1x?x4xf32>, tensor<?xi32>
    return %y : tensor<1x?x4xf32>
  }}
}}
"""
ALIBI = """module attributes {{gpt.name = "alibi"}} {{
  func.func @f(%q: tensor<2x?x8xf32> {{gpt.arg = "q"}}) -> (tensor<2x?x8xf32> {{gpt.result = "y"}}) {{
    %s = gpt.matmul %q, %q transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
    %b = gpt.alibi %s slopes [{}, {}] : tensor<2x?x?xf32>
    %m = gpt.causal_mask %b : tensor<2x?x?xf32>
    %p = gpt.softmax %m : tensor<2x?x?xf32>
    %y = gpt.matmul %p, %q : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
    return %y : tensor<2x?x8xf32>
  }}
}}
"""


class Graphs(unittest.TestCase):
    def outputs(self, text, inputs, level=0, weights={}):
        package = Package(compiled(written(text), level))
        with package.open(weights) as model, model.session() as session:
            return session.run("f", inputs, ["y"])["y"]

    def test_ends(self):
        """Rows of 0, of small and large numbers, of one number, and random ones."""
        x = np.stack([np.zeros(16), np.full(16, 1e-30), np.full(16, 3.0), np.full(16, 1e15), np.random.default_rng(0).standard_normal(16)]).astype(np.float32)
        for op, types in (("layer_norm %x, %g eps {}", ", tensor<16xf32>"), ("layer_norm %x, %g sample eps {}", ", tensor<16xf32>"),
                          ("rms_norm %x, %g eps {}", ", tensor<16xf32>"), ("softcap %x at {}", "")):
            for end in (LEAST, MOST):
                with self.subTest(op=op, end=end):
                    y = self.outputs(ENTRY.format(op.format(f"{end:.1e}"), types), {"x": x}, weights={"g": np.ones(16, np.float32)} if types else {})
                    self.assertTrue(np.all(np.isfinite(y)), y)

    def test_rope(self):
        """The smallest factor at the last positions, against numpy's double."""
        positions = np.array([0, 1, 1000, 2**24, 2**31 - 2, 2**31 - 1], np.int32)
        x = np.random.default_rng(1).standard_normal((1, len(positions), 4)).astype(np.float32)
        for base in (1.0001, 1e38):
            for factor in (0.001, 1e300):
                with self.subTest(base=base, factor=factor):
                    y = self.outputs(ROPE.format(f"{base:.5e}", f"{factor:.1e}"), {"x": x, "p": positions})
                    angle = positions[:, None].astype(np.float64) * (base ** (-np.arange(2) / 2) / factor)
                    u, v = x[0, :, :2].astype(np.float64), x[0, :, 2:].astype(np.float64)
                    expected = np.concatenate([u * np.cos(angle) - v * np.sin(angle), v * np.cos(angle) + u * np.sin(angle)], -1)
                    # An angle is known to half a bit of its double.
                    np.testing.assert_allclose(y[0], expected, rtol=0, atol=1e-6 + 4 * np.abs(angle).max() * 2.0**-53)

    def test_alibi(self):
        """Slopes at both ends: each query sees itself, or the first key."""
        q = np.random.default_rng(2).standard_normal((2, 40, 8)).astype(np.float32)
        for level in (0, 2):
            y = self.outputs(ALIBI.format("1.0e29", "-1.0e29"), {"q": q}, level)
            np.testing.assert_array_equal(y[0], q[0])
            np.testing.assert_array_equal(y[1], np.broadcast_to(q[1, :1], y[1].shape))


main()
