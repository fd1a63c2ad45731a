"""What --precision and --kv change on a GPU, here the emulator's, against numpy: elements of the KV cache, inputs in tf32 and values between kernels in 16 bits."""
import numpy as np

from emulated import NVCC, Fresh, needs_gpu, ptx_only
from harness import compiled, main, manifest, written
from package import Package

if NVCC:
    ptx_only()

# Attention over what one GEMM makes of a token's row: 4 query heads, 2 KV heads of 40 channels (the cache pads them to 48).
CACHED = """module attributes {gpt.name = "cached", gpt.context = 256 : i64} {
  ml_program.global private @t(#ml_program.extern) : tensor<160x320xf32>
  ml_program.global private @w(#ml_program.extern) : tensor<320x320xf32>
  func.func @forward(%tokens: tensor<?xi32>) -> (tensor<?x160xf32> {gpt.result = "logits"}) {
    %t = ml_program.global_load_const @t : tensor<160x320xf32>
    %w = ml_program.global_load_const @w : tensor<320x320xf32>
    %x = gpt.embedding %t, %tokens : tensor<160x320xf32>, tensor<?xi32> -> tensor<?x320xf32>
    %y = gpt.linear %x, %w : tensor<?x320xf32>, tensor<320x320xf32> -> tensor<?x320xf32>
    %q, %k, %v = gpt.split %y : tensor<?x320xf32> -> tensor<?x160xf32>, tensor<?x80xf32>, tensor<?x80xf32>
    %qh = gpt.split_heads %q : tensor<?x160xf32> -> tensor<4x?x40xf32>
    %kh = gpt.split_heads %k : tensor<?x80xf32> -> tensor<2x?x40xf32>
    %vh = gpt.split_heads %v : tensor<?x80xf32> -> tensor<2x?x40xf32>
    %s = gpt.matmul %qh, %kh transpose_b groups 2 : tensor<4x?x40xf32>, tensor<2x?x40xf32> -> tensor<4x?x?xf32>
    %scaled = gpt.scale %s by 0.125 : tensor<4x?x?xf32>
    %m = gpt.causal_mask %scaled : tensor<4x?x?xf32>
    %p = gpt.softmax %m : tensor<4x?x?xf32>
    %o = gpt.matmul %p, %vh groups 2 : tensor<4x?x?xf32>, tensor<2x?x40xf32> -> tensor<4x?x40xf32>
    %c = gpt.merge_heads %o : tensor<4x?x40xf32> -> tensor<?x160xf32>
    return %c : tensor<?x160xf32>
  }
}
"""
LINEAR = """module attributes {gpt.name = "linear"} {
  ml_program.global private @w(#ml_program.extern) : tensor<96x100xf32>
  func.func @project(%x: tensor<?x100xf32> {gpt.arg = "x"}) -> (tensor<?x96xf32> {gpt.result = "y"}) {
    %w = ml_program.global_load_const @w : tensor<96x100xf32>
    %y = gpt.linear %x, %w : tensor<?x100xf32>, tensor<96x100xf32> -> tensor<?x96xf32>
    return %y : tensor<?x96xf32>
  }
}
"""
# The normalised rows are read by the GEMM alone, or are a result too ("more").
NORMALISED = """module attributes {{gpt.name = "normalised"}} {{
  ml_program.global private @g(#ml_program.extern) : tensor<{k}xf32>
  ml_program.global private @w(#ml_program.extern) : tensor<96x{k}xf32>
  func.func @project(%x: tensor<?x{k}xf32> {{gpt.arg = "x"}}) -> (tensor<?x96xf32> {{gpt.result = "y"}}{more}) {{
    %g = ml_program.global_load_const @g : tensor<{k}xf32>
    %w = ml_program.global_load_const @w : tensor<96x{k}xf32>
    %n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x{k}xf32>, tensor<{k}xf32>
    %y = gpt.linear %n, %w : tensor<?x{k}xf32>, tensor<96x{k}xf32> -> tensor<?x96xf32>
    return %y{n} : tensor<?x96xf32>{type}
  }}
}}
"""
# Prefill, few tokens, then from an earlier position on, over what was there: (first position, tokens).
CACHED_STEPS = ((0, 100), (100, 1), (101, 5), (50, 70), (120, 2))


def rounded(x, element):
    """To the nearest bf16 or f16, ties to even."""
    if element == "f16":
        return x.astype(np.float16).astype(np.float64)
    if element == "f32":
        return x.astype(np.float64)
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32).astype(np.float64)


def attended(rows, first, count, element):
    """What CACHED gives for the last `count` of rows [q, k, v] from position `first` on, in double, with keys and values as they are cached."""
    q = rows[first:first + count, :160].astype(np.float64).reshape(count, 2, 2, 40)
    k, v = (rounded(rows[:first + count, at:at + 80], element).reshape(-1, 2, 40) for at in (160, 240))
    scores = np.einsum("thgd,shd->thgs", q, k) * 0.125
    hidden = np.arange(first + count) > np.arange(first, first + count)[:, None]
    scores = np.where(hidden[:, None, None, :], -np.inf, scores)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("thgs,shd->thgd", p / p.sum(-1, keepdims=True), v).reshape(count, 160)


@needs_gpu
class Precisions(Fresh):
    def test_tf32_numbers(self):
        """A GEMM of many rows multiplies inputs rounded to tf32, ties away from zero, and adds in f32; one of few rows rounds nothing."""
        random = np.random.default_rng(3)
        x, w = random.standard_normal((70, 100), np.float32), random.standard_normal((96, 100), np.float32)
        x.view(np.uint32)[::3] = x.view(np.uint32)[::3] & 0xffffe000 | 0x1000  # ties
        folder = compiled(written(LINEAR), 2, "--target=cuda", "--precision=tf32")
        for rows, inputs in ((70, [(m.view(np.uint32) + 0x1000 & 0xffffe000).view(np.float32) for m in (x, w)]), (8, [x[:8], w])):
            with Package(folder).open({"w": w}) as model, model.session() as session:
                got = session.run("project", {"x": x[:rows]}, ["y"])["y"]
            a, b = (m.astype(np.float64) for m in inputs)
            # Any order of K sums in f32, each off by a whole unit in the last place at most.
            bound = 100 * 2.0 ** -23 * (abs(a) @ abs(b).T)
            self.assertLessEqual((abs(got - a @ b.T) - bound).max(), 0)

    def test_narrow_rows(self):
        """Rows kept in 16 bits for a GEMM give the bits of rows that it rounds itself, and few rows the sums of what is kept."""
        random = np.random.default_rng(4)
        # Rows are copied by 16 bytes, by 8 and one by one; by chunks, too.
        for precision, k in (("bf16", 64), ("bf16", 100), ("f16", 46), ("bf16", 1100), ("f16", 1096)):
            x, weights = random.standard_normal((70, k), np.float32), {"g": random.standard_normal(k, np.float32), "w": random.standard_normal((96, k), np.float32)}
            narrow = compiled(written(NORMALISED.format(k=k, more="", n="", type="")), 2, "--target=cuda", f"--precision={precision}")
            wide = compiled(written(NORMALISED.format(k=k, more=f', tensor<?x{k}xf32> {{gpt.result = "n"}}', n=", %n", type=f", tensor<?x{k}xf32>")), 2, "--target=cuda", f"--precision={precision}")
            self.assertEqual([manifest(folder)["entries"][0]["workspace_bytes"] for folder in (narrow, wide)], [[f"{2 * k} * d0"], []])
            for rows in (70, 4):
                with Package(narrow).open(weights) as model, model.session() as session:
                    got = session.run("project", {"x": x[:rows]}, ["y"])["y"]
                with Package(wide).open(weights) as model, model.session() as session:
                    other = session.run("project", {"x": x[:rows]}, ["y", "n"])
                if rows == 70:
                    self.assertEqual(got.tobytes(), other["y"].tobytes())
                    continue
                a, b = rounded(other["n"], precision), weights["w"].astype(np.float64)
                self.assertLessEqual((abs(got - a @ b.T) - k * 2.0 ** -23 * (abs(a) @ abs(b).T)).max(), 0)

    def cached(self, level, precision, element, weights):
        """What the steps of CACHED_STEPS give; the cache's element is also in the manifest and in the bytes of a page."""
        folder = compiled(written(CACHED), level, "--target=cuda", f"--precision={precision}", f"--kv={element}")
        said = manifest(folder)
        size = 4 if element == "f32" else 2
        self.assertEqual((said["kv_element"], said["kv_page_bytes"]), (element, 2 * (40 + 48) * 64 * size))
        with Package(folder).open(weights) as model, model.session(tokens=128) as session:
            self.assertEqual(session.package.info.kv_page_bytes, said["kv_page_bytes"])
            return [session.step([t % 160 for t in range(first, first + count)], range(first, first + count)) for first, count in CACHED_STEPS]

    def test_kv_numbers(self):
        """--kv: keys and values are rounded to its element and nothing else is. The GEMM multiplies by one, so rows are exact; many are ties."""
        rows = (np.random.default_rng(1).integers(-700, 700, (160, 320)) / 512).astype(np.float32)
        for level, element in ((2, "bf16"), (2, "f16"), (0, "bf16")):
            for (first, count), got in zip(CACHED_STEPS, self.cached(level, "f32", element, {"t": rows, "w": np.eye(320, dtype=np.float32)})):
                with self.subTest(level=level, element=element, first=first):
                    # That of golden attention in f32.
                    self.assertLessEqual(abs(got - attended(rows, first, count, element)).max(), 2e-5)
                    if element == "bf16":  # these rows are exact in f16
                        self.assertGreater(abs(got - attended(rows, first, count, "f32")).max(), 1e-4)

    def test_kv_bits(self):
        """Tensor cores round keys and values anyway: cached as bf16 a prefill has the bits that it has with a cache of f32."""
        random = np.random.default_rng(2)
        weights = {"t": random.standard_normal((160, 320), np.float32), "w": random.standard_normal((320, 320), np.float32) / 16}
        narrow, wide = (self.cached(2, "bf16", element, weights) for element in ("bf16", "f32"))
        for i in (0, 3):
            self.assertEqual(narrow[i].tobytes(), wide[i].tobytes())
        self.assertNotEqual(narrow[1].tobytes(), wide[1].tobytes())  # few tokens are computed in f32


if __name__ == "__main__":
    main()
