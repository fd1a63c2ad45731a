"""--target=cuda on the emulator: the cases of public bug reports with their numbers. B01 to B07: attention; B35: offsets past 2^31; B38: rows
and pointers that are no multiples of 16 bytes."""
import ctypes as c
import os

# Of addresses: what is not touched takes no memory.
os.environ.setdefault("GPTC_EMULATOR_MEMORY", "40000")

import numpy as np

from attention_graphs import AttentionTest, model, one_head
from attention_reports import reports, stale_keys
from cases import check_all
from emulated import Fresh, Gpu, Kernels, cuda, needs_gpu, ptx_only
from harness import compiled, main
from package import Batch, Package, Tensor
from stored import declared, linear, scalars

ptx_only()


@needs_gpu
class Attention(Fresh, AttentionTest):
    """B01 to B07, fused and unfused, in every precision."""

    def compare(self, level, precision):
        check_all(self, reports(self, level, precision), (cuda(precision, level),))
        stale_keys(self, *cuda(precision, level))

    def test_f32(self):
        self.compare(2, "f32")

    def test_unfused(self):
        self.compare(0, "f32")

    def test_bf16(self):
        self.compare(2, "bf16")

    def test_f16(self):
        self.compare(2, "f16")


def linears(sizes, storage):
    """Functions k<K>: x [?, K] times a weight [N, K]."""
    text = "".join(declared(f"w{k}", storage, n, k) + linear(f"k{k}", f"w{k}", n, k) for k, n in sizes)
    return 'module attributes {gpt.name = "rows"} {\n' + text + "}\n"


# A head of 46 channels: 184 bytes of a row. Token 0 is a filler, 1 the needle, 2 asks for it.
SLOTS = one_head("slots", 128, 46, 46)
FILLER, NEEDLE, ASKER = range(3)


@needs_gpu
class Alignment(Fresh):
    """B38, and the lengths of B02 c: every output of ones is the number of inputs."""

    def ones(self, precision, storage, sizes):
        weights = {f"w{k}": scalars(storage, np.ones((n, k))) for k, n in sizes}
        folder = compiled(model(linears(sizes, storage)), *cuda(precision), "--no-weights")
        with Package(folder).open(weights) as opened, opened.session() as session:
            for k, n in sizes:
                for rows in (1, 5, 8, 9, 70):
                    got = session.run(f"k{k}", {"x": np.ones((rows, k), np.float32)}, ["y"])["y"]
                    self.assertTrue(np.array_equal(got, np.full((rows, n), k)), (precision, storage, k, rows))

    # Rows of x, of weights and of results that begin anywhere: 770 * 4 bytes is 8 more than a multiple of 16, 257 * 4 is 4 more.
    def test_b38_rows(self):
        self.ones("bf16", "bf16", [(770, 40), (768, 257), (2044, 5), (65, 5), (1, 5)])
        self.ones("f16", "f16", [(770, 40), (768, 257)])
        self.ones("f32", "f16", [(770, 40), (65, 5)])

    def test_b38_slots_of_the_cache(self):
        values = np.arange(1, 47, dtype=np.float32)
        table = np.eye(46, dtype=np.float32)
        wq, wv = np.zeros((46, 46), np.float32), np.zeros((46, 46), np.float32)
        wq[1, ASKER] = 100  # what asks meets the needle's key
        wv[:, NEEDLE], wv[:, FILLER], wv[:, ASKER] = values, -values, 2 * values
        weights = {"emb": table, "wq": wq, "wk": np.eye(46, dtype=np.float32), "wv": wv, "head": np.eye(46, dtype=np.float32)}
        folder = compiled(model(SLOTS), *cuda("f16"))
        with Package(folder).open(weights) as opened, opened.session(sequences=8, tokens=520) as session:
            for first in range(0, 64, 8):  # eight prompts at once, then a token for each
                prompts = [[NEEDLE if at == first + s else FILLER for at in range(64)] + [ASKER] for s in range(8)]
                got = session.step(sum(prompts, []), [at for _ in prompts for at in range(65)], np.repeat(range(8), 65), range(64, 520, 65))
                self.assertTrue(np.array_equal(got, np.tile(values, (8, 1))), first)
                got = session.step([ASKER] * 8, [65] * 8, range(8))
                self.assertTrue(np.array_equal(got, np.tile(values, (8, 1))), first)
            for slot in range(64):  # one by one
                session.step([NEEDLE], [slot], rows=[])
                self.assertTrue(np.array_equal(session.step([ASKER], [slot + 1])[0], values), slot)
                session.step([FILLER], [slot], rows=[])

    def test_b38_pointers(self):
        """The GPU's memory that a host hands over begins at any byte."""
        gpu = Gpu()
        sizes = [(65, 5)]
        weights = {"w65": np.arange(325, dtype=np.float32).reshape(5, 65) % 7}
        x = np.arange(130, dtype=np.float32).reshape(2, 65) % 5
        with Package(compiled(model(linears(sizes, "f32")), *cuda("f32"), "--no-weights")).open(weights) as opened, opened.session() as session:
            for offset in (0, 1, 2, 4, 6):
                given, wanted = gpu.upload(x, offset), gpu.allocate(40 + offset) + offset
                of = lambda name, shape, pointer: (Tensor * 1)(Tensor(name, 0, 2, (c.c_int64 * 8)(*shape), pointer, int(np.prod(shape)) * 4))
                session.package.check(session.package.api.run(session.handle, b"k65", of(b"x", (2, 65), given), 1, of(b"y", (2, 5), wanted), 1))
                self.assertTrue(np.array_equal(gpu.download(wanted, (2, 5)), x @ weights["w65"].T), offset)
        weights = {"emb": np.eye(46, dtype=np.float32), **{name: np.eye(46, dtype=np.float32) for name in ("wq", "wk", "wv", "head")}}
        with Package(compiled(model(SLOTS), *cuda("f16"))).open(weights) as opened, opened.session() as session:
            tokens, positions, rows = (np.array(values, np.int32) for values in ([1, 2, 0], [0, 1, 2], [2, 0]))
            expected = session.step(tokens, positions, rows=rows)
            for offset in (0, 1, 2, 3, 4):
                logits = gpu.allocate(2 * 46 * 4 + offset) + offset
                batch = Batch(3, tokens.ctypes.data, positions.ctypes.data, None, 2, rows.ctypes.data)
                session.package.check(session.package.api.step(session.handle, c.byref(batch), logits))
                self.assertTrue(np.array_equal(gpu.download(logits, (2, 46)), expected), offset)


LARGE = """module attributes {gpt.name = "large"} {
  ml_program.global private @table(#ml_program.extern) : tensor<16x12288xf32> {gpt.stored = #gpt.stored<"", "table", f32>}
  ml_program.global private @head(#ml_program.extern) : tensor<50257x16xf32> {gpt.stored = #gpt.stored<"", "head", bf16>}
  func.func @logits(%x: tensor<?x16xf32>) -> tensor<?x50257xf32> {
    %head = ml_program.global_load_const @head : tensor<50257x16xf32>
    %y = gpt.linear %x, %head : tensor<?x16xf32>, tensor<50257x16xf32> -> tensor<?x50257xf32>
    return %y : tensor<?x50257xf32>
  }
  func.func @packed(%ids: tensor<?xi32>) -> (tensor<?x12288xf32>, tensor<?x4096xf32>, tensor<?x4096xf32>, tensor<?x4096xf32>) {
    %table = ml_program.global_load_const @table : tensor<16x12288xf32>
    %x = gpt.embedding %table, %ids : tensor<16x12288xf32>, tensor<?xi32> -> tensor<?x12288xf32>
    %q, %k, %v = gpt.split %x : tensor<?x12288xf32> -> tensor<?x4096xf32>, tensor<?x4096xf32>, tensor<?x4096xf32>
    return %x, %q, %k, %v : tensor<?x12288xf32>, tensor<?x4096xf32>, tensor<?x4096xf32>, tensor<?x4096xf32>
  }
}
"""


def panels(matrix):
    """A weight as packages hold it: [N / 16][K][16]."""
    padded = np.zeros((-(-len(matrix) // 16) * 16, matrix.shape[1]), np.float32)
    padded[:len(matrix)] = matrix
    return padded.reshape(-1, 16, matrix.shape[1]).transpose(0, 2, 1)


@needs_gpu
class Offsets(Fresh, AttentionTest):
    """B35: the first and the last rows of what has more than 2^31 elements, by launches whose other blocks do not run."""

    def ends(self):
        os.environ["GPTC_EMULATOR_BLOCKS"] = "4"
        self.addCleanup(os.environ.pop, "GPTC_EMULATOR_BLOCKS")

    def kernels(self, precision):
        return Kernels(compiled(model(LARGE), *cuda(precision), "--no-weights"))

    def test_b35_logits(self):
        self.ends()
        gpu, rows = Gpu(), 42731  # 42731 * 50257 is 48219 more than 2^31
        x, head = (np.arange(n * 16, dtype=np.float32).reshape(n, 16) % modulus for n, modulus in ((rows, 11), (50257, 13)))
        arguments = {"x": gpu.upload(x), "weight0": gpu.upload(scalars("bf16", panels(head)).data), "d0": rows}
        for precision in ("f32", "bf16"):
            logits = gpu.allocate(rows * 50257 * 4)
            self.kernels(precision)("gemm_k16_n50257_bf16", out0=logits, **arguments)
            self.assertTrue(np.array_equal(gpu.download(logits, (16,)), x[0] @ head[:16].T))
            last = gpu.download(logits + (rows * 50257 - 16) * 4, (16,))
            self.assertTrue(np.array_equal(last, x[-1] @ head[-16:].T), last)
            gpu.free(logits)

    def test_b35_packed_rows(self):
        self.ends()
        gpu, rows = Gpu(), 174763  # times 3 * 4096 it is 4096 more than 2^31
        table = np.arange(16 * 12288, dtype=np.float32).reshape(16, 12288)
        ids = np.arange(rows, dtype=np.int32) % 16
        x, *parts = (gpu.allocate(rows * n * 4) for n in (12288, 4096, 4096, 4096))
        kernels = self.kernels("f32")
        kernels("embedding_c12288", table=gpu.upload(panels(table)), ids=gpu.upload(ids), out=x, d0=rows)
        kernels("split_c12288_c4096", x=x, **{f"out{i}": part for i, part in enumerate(parts)}, d0=rows)
        for i, part in enumerate(parts):
            self.assertTrue(np.array_equal(gpu.download(part, (256,)), table[0, 4096 * i:4096 * i + 256]))
            last = gpu.download(part + (rows * 4096 - 256) * 4, (256,))
            self.assertTrue(np.array_equal(last, table[ids[-1], 4096 * (i + 1) - 256:4096 * (i + 1)]), last)
        for each in (x, *parts):
            gpu.free(each)

    # Pages of the cache that begin past 2^31 and 2^32 elements: written, read by few tokens and by many.
    def test_b35_pages(self):
        gpu, page, block = Gpu(), 64, (46 + 48) * 64
        pages = [(1 << 31) // block + 1, (1 << 32) // block + 1]
        pool = gpu.allocate((pages[1] + 1) * block * 4)
        random = np.random.default_rng(1)
        tokens = 65
        q, keys, values = (random.normal(0, 1, (tokens, 46)).astype(np.float32) for _ in range(3))
        table = gpu.upload(np.array(pages, np.int32))
        runs = gpu.upload(np.array([0, tokens, 0, 0], np.int32))
        view = gpu.upload(np.array([pool, table, 2, runs, 1], np.uint64))
        arguments = {"cache": view, "keys": gpu.upload(keys), "values": gpu.upload(values), "q": gpu.upload(q), "d0": tokens,
                     "positions": gpu.upload(np.arange(tokens, dtype=np.int32)), "sequences": gpu.upload(np.zeros(tokens, np.int32))}
        unfused, fused = (Kernels(compiled(model(SLOTS), *cuda("f32", level))) for level in (0, 2))
        unfused("kv_append_h1_d46", **arguments)
        # Where they should lie: keys by channel, then values in rows of 48.
        for i, first in enumerate(pages):
            got = gpu.download(pool + first * block * 4, (block,))
            rows = slice(i * page, min(tokens, (i + 1) * page))
            count = rows.stop - rows.start
            self.assertTrue(np.array_equal(got[:46 * page].reshape(46, page)[:, :count], keys[rows].T))
            self.assertTrue(np.array_equal(got[46 * page:].reshape(page, 48)[:count, :46], values[rows]))
        scores = q.astype(np.float64) @ keys.T
        weights = np.exp(scores - scores.max(-1, keepdims=True)) * np.tril(np.ones((tokens, tokens)))
        expected = weights / weights.sum(-1, keepdims=True) @ values
        name = "attention_h1_d46_causal"
        arguments["scratch"] = gpu.allocate(tokens * 32 * 48 * 4)
        for suffixes in ([""], ["_split", "_combine"]):
            out = gpu.allocate(tokens * 46 * 4)
            for suffix in suffixes:
                fused(name + suffix, out=out, **arguments)
            self.close(gpu.download(out, (tokens, 46)), expected)
        gpu.free(pool)


if __name__ == "__main__":
    main()
