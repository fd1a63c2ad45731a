"""Attention across the borders of its chunks of keys, blocks and tiles of rows, at every level of x86-64, against numpy; and
single tokens whose keys several threads share: the bits of the prompt."""
import numpy as np

from attention_graphs import AttentionTest, attention_text, oracle, tensor
from harness import compiled, main, same_bits, written
from package import Package

MARCHES = ("native", "x86-64-v3", "x86-64")
# Rows and keys: chunks have 256 keys, pages 64, blocks 48 rows; a tile of 96 rows ends where a chunk does at 768.
SIZES = ((300, 300), (1000, 1000), (1, 600), (50, 513), (130, 257), (97, 96))


class Chunks(AttentionTest):
    def check(self, march, d, middle, more=None, given=None, mask=None, heads=2, sizes=SIZES, **meaning):
        shape = {"q": (heads, "?", d), "k": (1, "?", d), "v": (1, "?", d)}
        inputs = shape | (more or {})
        arguments = ", ".join(f'%{name}: {tensor(*spec) if isinstance(spec[0], tuple) else tensor(spec)} {{gpt.arg = "{name}"}}' for name, spec in inputs.items())
        out = tensor(shape["q"])
        text = attention_text(heads, 1, "?", "?", d, middle, last="%m" if "%m =" in middle else "%s")
        package = Package(compiled(written(f'module attributes {{gpt.name = "chunks"}} {{\n  func.func @main({arguments}) -> ({out} {{gpt.result = "out"}}) {{\n'
                                           f'{text}\n    return %out : {out}\n  }}\n}}\n'), 2, f"-march={march}"))
        random = np.random.default_rng(d)
        with package.open() as model:
            for sq, sk in sizes:
                arrays = {"q": random.normal(size=(heads, sq, d)), "k": random.normal(size=(1, sk, d)), "v": random.normal(size=(1, sk, d))}
                arrays = {name: x.astype(np.float32) for name, x in arrays.items()}
                extra = given(random, sq, sk) if given else {}
                results = []
                for threads in (1, 2, 5):
                    with model.session(threads=threads) as session:
                        results.append(session.run("main", arrays | extra, {"out": None})["out"])
                with self.subTest(march=march, d=d, sq=sq, sk=sk):
                    expected = oracle(*arrays.values(), mask=mask(extra, sq, sk) if mask else None, **meaning)
                    self.close(results[0], expected, 2e-5 * max(1.0, meaning.get("scale", 1.0)))
                    self.assertTrue(same_bits(results[0], results[1]) and same_bits(results[0], results[2]), "threads differ")

    def test_causal(self):
        for march in MARCHES:
            for d in (20, 80) if march != "native" else (1, 20, 64, 80, 100):
                self.check(march, d, f"    %t = gpt.scale %s by {d ** -0.5!r} : !s\n    %m = gpt.causal_mask %t : !s", scale=d ** -0.5, causal=True)

    def test_all_keys(self):
        self.check("native", 24, "")

    def test_windows(self):
        for march in MARCHES:
            for window in (1, 257) if march == "native" else (100,):
                self.check(march, 12, f"    %m = gpt.causal_mask %s window {window} : !s", causal=True, window=window)

    def test_scores_that_are_not_only_scaled(self):
        slopes = [0.25, 0.03125]
        for march in MARCHES:
            self.check(march, 40, f"    %t = gpt.scale %s by 0.5 : !s\n    %c = gpt.softcap %t at 3.0 : !s\n    %b = gpt.alibi %c slopes {slopes} : !s\n"
                       f"    %w = gpt.mask %b, %see : !s, {tensor(('?', '?'), 'i1')}\n    %x = gpt.mask %w, %add : !s, {tensor(('?',))}\n"
                       "    %m = gpt.causal_mask %x window 290 : !s", more={"see": (("?", "?"), "i1"), "add": ("?",)},
                       given=lambda r, sq, sk: {"see": (r.random((sq, sk)) < 0.7).astype(np.int32), "add": r.normal(size=sk).astype(np.float32)},
                       mask=lambda extra, sq, sk: np.where(extra["see"] != 0, extra["add"].astype(np.float64), -np.inf),
                       scale=0.5, cap=3.0, slopes=slopes, causal=True, window=290)

    def test_far_below_the_maximum(self):
        # Exponentials that are none, rows of one chunk only, a maximum that moves from chunk to chunk.
        self.check("native", 16, "    %t = gpt.scale %s by 30.0 : !s\n    %m = gpt.causal_mask %t : !s", scale=30.0, causal=True, sizes=((600, 600),))


def model_text(heads, kv_heads, d, window):
    c, kv, vocab = heads * d, kv_heads * d, 32
    shapes = {"emb": (vocab, c), "wq": (c, c), "wk": (kv, c), "wv": (kv, c), "head": (vocab, c)}
    kinds = {name: tensor(shape) for name, shape in shapes.items()}
    x, y, out = tensor(("?", c)), tensor(("?", kv)), tensor(("?", vocab))
    q, k, s = tensor((heads, "?", d)), tensor((kv_heads, "?", d)), tensor((heads, "?", "?"))
    text = ['module attributes {gpt.name = "tokens", gpt.context = 2048 : i64} {'] + [
        f"  ml_program.global private @{name}(#ml_program.extern<{kind}>) : {kind}" for name, kind in kinds.items()] + [
        f'  func.func @forward(%tokens: tensor<?xi32>) -> ({out} {{gpt.result = "logits"}}) {{'] + [
        f"    %{name} = ml_program.global_load_const @{name} : {kind}" for name, kind in kinds.items()] + [f"""    %x = gpt.embedding %emb, %tokens : {kinds["emb"]}, tensor<?xi32> -> {x}
    %q = gpt.linear %x, %wq : {x}, {kinds["wq"]} -> {x}
    %k = gpt.linear %x, %wk : {x}, {kinds["wk"]} -> {y}
    %v = gpt.linear %x, %wv : {x}, {kinds["wv"]} -> {y}
    %qh = gpt.split_heads %q : {x} -> {q}
    %kh = gpt.split_heads %k : {y} -> {k}
    %vh = gpt.split_heads %v : {y} -> {k}
    %s = gpt.matmul %qh, %kh transpose_b groups {heads // kv_heads} : {q}, {k} -> {s}
    %m = gpt.causal_mask %s {f"window {window} " if window else ""}: {s}
    %p = gpt.softmax %m : {s}
    %o = gpt.matmul %p, %vh groups {heads // kv_heads} : {s}, {k} -> {q}
    %c = gpt.merge_heads %o : {q} -> {x}
    %y = gpt.linear %c, %head : {x}, {kinds["head"]} -> {out}
    return %y : {out}
  }}
}}
"""]
    random = np.random.default_rng(heads)
    return "\n".join(text), {name: (random.normal(size=shape) * shape[1] ** -0.5).astype(np.float32) for name, shape in shapes.items()}


class Tokens(AttentionTest):
    """One token of each of few sequences, after prompts that end about the borders of chunks."""
    LENGTH, ENDS = 1100, (0, 1, 255, 256, 257, 511, 512, 1023, 1024, 1098)

    def check(self, march, heads, kv_heads, d, window=None):
        text, weights = model_text(heads, kv_heads, d, window)
        tokens = np.random.default_rng(2).integers(0, 32, self.LENGTH)
        x = weights["emb"].astype(np.float64)[tokens]
        part = lambda name, n: (x @ weights[name].astype(np.float64).T).reshape(len(x), n, d).transpose(1, 0, 2)
        o = oracle(part("wq", heads), part("wk", kv_heads), part("wv", kv_heads), causal=True, window=window)
        expected = o.transpose(1, 0, 2).reshape(len(x), -1) @ weights["head"].astype(np.float64).T
        with Package(compiled(written(text), 2, f"-march={march}")).open(weights) as model:
            with model.session(threads=1, tokens=self.LENGTH, rows=self.LENGTH) as session:
                whole = session.step(tokens)
            self.close(whole, expected, 5e-5)
            for threads in (2, 3, 8):
                with model.session(threads=threads, tokens=self.LENGTH, sequences=3) as session, self.subTest(march=march, window=window, threads=threads):
                    for end in self.ENDS:
                        if end:
                            session.step(tokens[:end], rows=[end - 1])
                        for at in (end, end + 1):  # and that parts leave nothing for the next step
                            got = session.step(tokens[at:at + 1], [at])
                            self.assertTrue(same_bits(got, whole[at:at + 1]), f"token {at}")
                    ends = (300, 5, 800)
                    for sequence, end in enumerate(ends):
                        session.step(tokens[:end], range(end), [sequence] * end, [end - 1])
                    got = session.step(tokens[list(ends)], ends, range(3))
                    self.assertTrue(same_bits(got, whole[list(ends)]), "three sequences")

    def test_shared_by_threads(self):
        for march in MARCHES:
            self.check(march, 3, 1, 20)
        self.check("native", 6, 2, 32)
        self.check("native", 3, 1, 20, window=300)
        self.check("native", 60, 1, 4)  # more query heads than a block has rows


main()
