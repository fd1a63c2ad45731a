"""Attention as graphs of named tensors, compiled at -O0 and -O2, and what it means in numpy, in double and with nothing
of the compiler."""
import functools

import numpy as np

from cases import tensor
from harness import compiled, manifest, unittest, written
from package import Package

LEVELS = (2, 0)
inf = np.inf


def oracle(q, k, v, scale=1.0, cap=None, slopes=None, mask=None, causal=False, window=None):
    """q [..., H, Sq, D], k and v [..., G, Sk, D] in double."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    heads, sq, sk, groups = q.shape[-3], q.shape[-2], k.shape[-2], q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, groups, -3), np.repeat(v, groups, -3)
    scores = scale * (q @ np.swapaxes(k, -1, -2))
    if cap:
        scores = cap * np.tanh(scores / cap)
    at, j = np.arange(sq)[:, None] + sk - sq, np.arange(sk)
    if slopes:
        scores = scores + np.reshape(slopes, (heads, 1, 1)) * (j - at)
    if mask is not None:
        scores = np.where(mask, scores, -inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where((j > at) | (j <= at - (window or inf)), -inf, scores)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(largest == -inf, 0, largest))
    return weights @ v / np.maximum(weights.sum(-1, keepdims=True), 1e-300)


model = functools.cache(written)  # one file, one package, for each text


class Entry:
    """A function of named tensors, compiled at one level. `inputs`: name -> shape or (shape, element)."""

    def __init__(self, level, inputs, body, results):
        self.results = list(results)
        element = lambda spec: spec if spec and isinstance(spec[0], tuple) else (spec, "f32")
        arguments = ", ".join(f'%{name}: {tensor(*element(spec))} {{gpt.arg = "{name}"}}' for name, spec in inputs.items())
        types = ", ".join(tensor(shape) for shape in results.values())
        named = ", ".join(f'{tensor(shape)} {{gpt.result = "{name}"}}' for name, shape in results.items())
        self.mlir = model(f'module attributes {{gpt.name = "cases"}} {{\n  func.func @main({arguments}) -> ({named}) {{\n'
                          f'{body}\n    return {", ".join("%" + name for name in results)} : {types}\n  }}\n}}\n')
        self.folder = compiled(self.mlir, level)
        self.model = Package(self.folder).open()

    def __call__(self, threads=1, **inputs):
        arrays = {name: np.asarray(x, np.int32 if np.asarray(x).dtype in (bool, np.int32) else np.float32) for name, x in inputs.items()}
        with self.model.session(threads=threads) as session:
            found = session.run("main", arrays, self.results)
        return found[self.results[0]] if len(self.results) == 1 else found

    def kernels(self):
        """How often a kernel of each kind runs."""
        kinds = {kernel["name"]: kernel["kind"] for kernel in manifest(self.folder)["kernels"]}
        counts = {}
        for call in manifest(self.folder)["entries"][0]["calls"]:
            counts[kinds[call["kernel"]]] = counts.get(kinds[call["kernel"]], 0) + 1
        return counts


def attention_text(heads, kv_heads, sq, sk, d, middle, batch=(), q="%q", k="%k", first="%s", last="%m"):
    """The two products around `middle`, which makes %m of %s (both the type !s)."""
    groups = f" groups {heads // kv_heads}" if heads != kv_heads else ""
    qt, kt, st = tensor((*batch, heads, sq, d)), tensor((*batch, kv_heads, sk, d)), tensor((*batch, heads, sq, sk))
    middle = middle.replace("!s", st).replace("!q", qt).replace("!k", kt)
    before, _, middle = middle.rpartition("----\n")
    return f"""{before}
    {first} = gpt.matmul {q}, {k} transpose_b{groups} : {qt}, {kt} -> {st}
{middle}
    %p = gpt.softmax {last} : {st}
    %out = gpt.matmul %p, %v{groups} : {st}, {kt} -> {qt}"""


def attention(level, heads, kv_heads, sq, sk, d, middle="", last=None, batch=(), more=None, **keywords):
    inputs = {"q": (*batch, heads, sq, d), "k": (*batch, kv_heads, sk, d), "v": (*batch, kv_heads, sk, d), **(more or {})}
    text = attention_text(heads, kv_heads, sq, sk, d, middle, batch, last=last or ("%m" if "%m =" in middle else "%s"), **keywords)
    return Entry(level, inputs, text, {"out": (*batch, heads, sq, d)})


CAUSAL = "    %m = gpt.causal_mask %s : !s"


def one_head(name, context, vocab, d):
    """A model of causal attention of one head of d channels, whose weights are emb and head [vocab, d], wq, wk and wv [d, d]."""
    weights = {"emb": (vocab, d), "wq": (d, d), "wk": (d, d), "wv": (d, d), "head": (vocab, d)}
    kinds = {key: tensor(shape) for key, shape in weights.items()}
    declared = "".join(f"  ml_program.global private @{key}(#ml_program.extern<{kind}>) : {kind}\n" for key, kind in kinds.items())
    loads = "".join(f"    %{key} = ml_program.global_load_const @{key} : {kind}\n" for key, kind in kinds.items())
    X, H, S, W, Y = tensor(("?", d)), tensor((1, "?", d)), tensor((1, "?", "?")), tensor((d, d)), tensor(("?", vocab))
    return f"""module attributes {{gpt.name = "{name}", gpt.context = {context} : i64}} {{
{declared}  func.func @forward(%tokens: tensor<?xi32>) -> ({Y} {{gpt.result = "logits"}}) {{
{loads}    %x = gpt.embedding %emb, %tokens : {kinds["emb"]}, tensor<?xi32> -> {X}
    %q = gpt.linear %x, %wq : {X}, {W} -> {X}
    %k = gpt.linear %x, %wk : {X}, {W} -> {X}
    %v = gpt.linear %x, %wv : {X}, {W} -> {X}
    %qh = gpt.split_heads %q : {X} -> {H}
    %kh = gpt.split_heads %k : {X} -> {H}
    %vh = gpt.split_heads %v : {X} -> {H}
    %s = gpt.matmul %qh, %kh transpose_b : {H}, {H} -> {S}
    %m = gpt.causal_mask %s : {S}
    %p = gpt.softmax %m : {S}
    %o = gpt.matmul %p, %vh : {S}, {H} -> {H}
    %c = gpt.merge_heads %o : {H} -> {X}
    %y = gpt.linear %c, %head : {X}, {kinds["head"]} -> {Y}
    return %y : {Y}
  }}
}}
"""


class AttentionTest(unittest.TestCase):
    def close(self, got, expected, atol=1e-5):
        got = np.asarray(got, np.float64)
        self.assertEqual(got.shape, np.shape(expected))
        self.assertTrue(np.all(np.abs(got - expected) <= atol * np.maximum(1, np.abs(expected))), f"got {got.ravel()[:12]}, expected {np.ravel(expected)[:12]}")

    def fused(self, entry, level):
        """At -O2 one attention and no product is left; at -O0 both products run."""
        counts = entry.kernels()
        self.assertEqual((counts.get("attention", 0), counts.get("matmul", 0)), (1, 0) if level else (0, 2), counts)
