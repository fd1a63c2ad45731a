"""A `?` beside a static size is that size when it runs: other sizes are refused before any kernel, at -O0 and -O2."""
import numpy as np

from harness import compiled, main, run, unittest, written
from package import INVALID_ARGUMENT, Error, Package

f = lambda *shape: np.ones(shape, np.float32)
i = lambda *shape: np.zeros(shape, np.int32)

# Name: arguments, weights, body, result, inputs that fit, inputs that do not (each the other inputs too), number in the result.
CASES = {
    "linear_in": ({"x": "?x?xf32"}, {"w": "16x8xf32"}, "%o = gpt.linear %x, %w : tensor<?x?xf32>, tensor<16x8xf32> -> tensor<?x16xf32>", "?x16xf32",
                  {"x": f(2, 8)}, [{"x": f(2, 3)}, {"x": f(2, 99)}], 8),
    "linear_out": ({"x": "?x8xf32"}, {"w": "16x8xf32"}, "%o = gpt.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x?xf32>", "?x?xf32", {"x": f(2, 8)}, [], 8),
    "linear_rows": ({"x": "?x8xf32"}, {"w": "16x8xf32"}, "%o = gpt.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>", "4x16xf32",
                    {"x": f(4, 8)}, [{"x": f(2, 8)}, {"x": f(3000, 8)}], 8),
    "gemm_rows": ({"x": "?x8xf32", "y": "3x16xf32"}, {"w": "16x8xf32"}, "%o = gpt.fused_gemm %x : tensor<?x8xf32> residual %y section %w : tensor<16x8xf32> "
                  "epilogue (%a, %r) { gpt.yield %r : f32 } -> tensor<3x16xf32>", "3x16xf32", {"x": f(3, 8), "y": f(3, 16)}, [{"x": f(9, 8)}], 1),
    "gemm_rope": ({"x": "?x8xf32", "t": "3x2x8xf32"}, {"w": "16x8xf32"}, "%o = gpt.fused_gemm %x : tensor<?x8xf32> rope %t : tensor<3x2x8xf32> section %w : tensor<16x8xf32> "
                  "rope half epilogue (%a, %p, %c, %s) { gpt.yield %c : f32 } -> tensor<?x16xf32>", "?x16xf32", {"x": f(3, 8), "t": f(3, 2, 8)}, [{"x": f(90, 8)}], 1),
    "matmul_k": ({"x": "1x?x?xf32", "y": "1x?x8xf32"}, {}, "%o = gpt.matmul %x, %y transpose_b : tensor<1x?x?xf32>, tensor<1x?x8xf32> -> tensor<1x?x?xf32>", "1x?x?xf32",
                 {"x": f(1, 2, 8), "y": f(1, 3, 8)}, [{"x": f(1, 2, 3)}], 8),
    "matmul_heads": ({"x": "?x?x8xf32", "y": "2x?x8xf32"}, {}, "%o = gpt.matmul %x, %y transpose_b groups 2 : tensor<?x?x8xf32>, tensor<2x?x8xf32> -> tensor<?x?x?xf32>",
                     "?x?x?xf32", {"x": f(4, 2, 8), "y": f(2, 3, 8)}, [{"x": f(6, 2, 8)}, {"x": f(5, 2, 8)}], 8),
    "matmul_kv_heads": ({"x": "4x?x8xf32", "y": "?x?x8xf32"}, {}, "%o = gpt.matmul %x, %y transpose_b groups 2 : tensor<4x?x8xf32>, tensor<?x?x8xf32> -> tensor<4x?x?xf32>",
                        "4x?x?xf32", {"x": f(4, 2, 8), "y": f(2, 3, 8)}, [{"y": f(1, 3, 8)}, {"y": f(4, 3, 8)}], 8),
    "attention_keys": ({"x": "4x?x8xf32", "k": "4x6x8xf32", "v": "4x?x8xf32"}, {}, "%s = gpt.matmul %x, %k transpose_b : tensor<4x?x8xf32>, tensor<4x6x8xf32> -> tensor<4x?x6xf32>\n"
                       "    %p = gpt.softmax %s : tensor<4x?x6xf32>\n    %o = gpt.matmul %p, %v : tensor<4x?x6xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>", "4x?x8xf32",
                       {"x": f(4, 3, 8), "k": f(4, 6, 8), "v": f(4, 6, 8)}, [{"v": f(4, 2, 8)}, {"v": f(4, 7, 8)}], 1),
    "attention_mask": ({"x": "2x?x4xf32", "m": "3xf32"}, {}, "%s = gpt.matmul %x, %x transpose_b : tensor<2x?x4xf32>, tensor<2x?x4xf32> -> tensor<2x?x?xf32>\n"
                       "    %n = gpt.mask %s, %m : tensor<2x?x?xf32>, tensor<3xf32>\n    %p = gpt.softmax %n : tensor<2x?x?xf32>\n"
                       "    %o = gpt.matmul %p, %x : tensor<2x?x?xf32>, tensor<2x?x4xf32> -> tensor<2x?x4xf32>", "2x?x4xf32", {"x": f(2, 3, 4), "m": f(3)}, [{"x": f(2, 7, 4)}], 1),
    "mask_constant": ({"x": "2x?x?xf32"}, {}, "%c = arith.constant dense<[1.0, 1.0, 1.0]> : tensor<3xf32>\n    %o = gpt.mask %x, %c : tensor<2x?x?xf32>, tensor<3xf32>", "2x?x?xf32",
                      {"x": f(2, 5, 3)}, [{"x": f(2, 1, 7)}, {"x": f(2, 3, 2)}], 2),
    "mask_boolean": ({"x": "2x?x?xf32", "m": "3x3xi1"}, {}, "%o = gpt.mask %x, %m fill 1.0 : tensor<2x?x?xf32>, tensor<3x3xi1>", "2x?x?xf32",
                     {"x": f(2, 3, 3), "m": i(3, 3)}, [{"x": f(2, 3, 4)}, {"x": f(2, 4, 3)}], 1),
    "broadcast_weight": ({"x": "?x?xf32"}, {"w": "8xf32"}, "%b = gpt.broadcast %w like %x : tensor<8xf32>, tensor<?x?xf32> -> tensor<?x?xf32>\n"
                         "    %o = arith.mulf %x, %b : tensor<?x?xf32>", "?x?xf32", {"x": f(3, 8)}, [{"x": f(3, 90)}, {"x": f(3, 7)}], 1),
    "broadcast_argument": ({"x": "?x8xf32", "y": "3x8xf32"}, {}, "%o = gpt.broadcast %y like %x : tensor<3x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>", "?x8xf32",
                           {"x": f(3, 8), "y": f(3, 8)}, [{"x": f(9, 8)}], 1),
    "rope_dim": ({"x": "2x?x?xf32", "p": "?xi32"}, {}, "%o = gpt.rope %x, %p <base 10000.0, pairs half, dim 8> : tensor<2x?x?xf32>, tensor<?xi32>", "2x?x?xf32",
                 {"x": f(2, 3, 8), "p": i(3)}, [{"x": f(2, 3, 4)}, {"x": f(2, 3, 16)}], 1),
    "rope_positions": ({"x": "2x?x8xf32", "p": "4xi32"}, {}, "%o = gpt.rope %x, %p <base 10000.0, pairs half, dim 8> : tensor<2x?x8xf32>, tensor<4xi32>", "2x?x8xf32",
                       {"x": f(2, 4, 8), "p": i(4)}, [{"x": f(2, 9, 8)}], 1),
    "embedding_rows": ({"x": "?xi32"}, {"w": "16x8xf32"}, "%o = gpt.embedding %w, %x : tensor<16x8xf32>, tensor<?xi32> -> tensor<4x?xf32>", "4x?xf32", {"x": i(4)}, [{"x": i(9)}, {"x": i(1)}], 1),
    "select_rows": ({"x": "?x?xf32", "r": "?xi32"}, {}, "%o = gpt.select_rows %x, %r : tensor<?x?xf32>, tensor<?xi32> -> tensor<4x8xf32>", "4x8xf32",
                    {"x": f(2, 8), "r": i(4)}, [{"r": i(9)}, {"x": f(2, 3)}], 1),
    "split_rows": ({"x": "?x8xf32"}, {}, "%o, %z = gpt.split %x : tensor<?x8xf32> -> tensor<4x3xf32>, tensor<?x5xf32>", "4x3xf32", {"x": f(4, 8)}, [{"x": f(1, 8)}, {"x": f(5, 8)}], 1),
    "alibi_heads": ({"x": "?x?x?xf32"}, {}, "%o = gpt.alibi %x slopes [0.0, 0.0] : tensor<?x?x?xf32>", "?x?x?xf32", {"x": f(2, 3, 3)}, [{"x": f(7, 3, 3)}, {"x": f(1, 3, 3)}], 1),
    "expand_rows": ({"x": "?xf32", "y": "3x1xf32"}, {}, "%z = arith.constant 0 : index\n    %n = tensor.dim %x, %z : tensor<?xf32>\n"
                    "    %e = tensor.expand_shape %x [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>\n"
                    "    %o = gpt.broadcast %e like %y : tensor<?x1xf32>, tensor<3x1xf32> -> tensor<3x1xf32>", "3x1xf32", {"x": f(3), "y": f(3, 1)}, [{"x": f(9)}, {"x": f(2)}], 1),
    # The size comes from an op behind others.
    "through_a_chain": ({"x": "?x?xf32", "y": "?x?xf32"}, {"w": "8xf32"}, "%a = arith.addf %x, %y : tensor<?x?xf32>\n    %b = gpt.silu %a : tensor<?x?xf32>\n"
                        "    %c = gpt.broadcast %w like %b : tensor<8xf32>, tensor<?x?xf32> -> tensor<?x?xf32>\n    %z = arith.subf %b, %b : tensor<?x?xf32>\n"
                        "    %o = arith.addf %c, %z : tensor<?x?xf32>", "?x?xf32", {"x": f(3, 8), "y": f(3, 8)}, [{"x": f(3, 9), "y": f(3, 9)}, {"y": f(3, 7)}, {"y": f(2, 8)}], 1),
}


def tensor(kind):
    return f"tensor<{kind}>"


def text(cases):
    out = 'module attributes {gpt.name = "sizes"} {\n'
    for name, (arguments, weights, body, result, *_) in cases.items():
        out += "".join(f"  ml_program.global private @{w}_{name}(#ml_program.extern<{tensor(kind)}>) : {tensor(kind)}\n" for w, kind in weights.items())
        out += f"  func.func @{name}(" + ", ".join(f'%{a}: {tensor(kind)} {{gpt.arg = "{a}"}}' for a, kind in arguments.items())
        out += f') -> ({tensor(result)} {{gpt.result = "o"}}) {{\n'
        out += "".join(f"    %{w} = ml_program.global_load_const @{w}_{name} : {tensor(kind)}\n" for w, kind in weights.items())
        out += f"    {body}\n    return %o : {tensor(result)}\n  }}\n"
    return out + "}\n"


class Sizes(unittest.TestCase):
    def test_sizes(self):
        mlir = written(text(CASES))
        weights = {f"{w}_{name}": f(*map(int, kind.split("x")[:-1])) for name, case in CASES.items() for w, kind in case[1].items()}
        for level in (2, 0):
            with Package(compiled(mlir, level)).open(weights) as model, model.session() as session:
                for name, (_, _, _, _, fits, others, number) in CASES.items():
                    with self.subTest(name, level=level):
                        self.assertTrue(np.all(session.run(name, fits, ["o"])["o"] == number))
                        for other in others:
                            with self.assertRaises(Error) as caught:
                                session.run(name, fits | other, ["o"])
                            self.assertEqual(caught.exception.status, INVALID_ARGUMENT)
                            self.assertRegex(caught.exception.message, r"input '\w': expected shape \[(?:(?:any|\d+)(?:, )?)*\]( \(any: a size of 1 or more\))?, got \[")
                        self.assertTrue(np.all(session.run(name, fits, ["o"])["o"] == number))

    def test_results_of_their_own(self):
        """An argument that is returned, and equal ops that become one, at any level."""
        mlir = written("""module attributes {gpt.name = "sizes"} {
  func.func @f(%x: tensor<?x8xf32> {gpt.arg = "x"}, %i: tensor<?xi32> {gpt.arg = "i"}) -> (tensor<?x8xf32> {gpt.result = "a"}, tensor<?x8xf32> {gpt.result = "b"},
      tensor<?x8xf32> {gpt.result = "c"}, tensor<?x8xf32> {gpt.result = "d"}, tensor<?xi32> {gpt.result = "j"}) {
    %a = gpt.silu %x : tensor<?x8xf32>
    %b = gpt.silu %x : tensor<?x8xf32>
    %h = gpt.split_heads %x : tensor<?x8xf32> -> tensor<2x?x4xf32>
    %c = gpt.merge_heads %h : tensor<2x?x4xf32> -> tensor<?x8xf32>
    %d = gpt.dropout %x p 0.5 : tensor<?x8xf32>
    return %a, %b, %c, %d, %i : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  }
}
""")
        x, ids = np.random.default_rng(3).normal(size=(5, 8)).astype(np.float32), np.arange(3, dtype=np.int32)
        for level in (2, 0):
            with Package(compiled(mlir, level)).open({}) as model, model.session() as session:
                found = session.run("f", {"x": x, "i": ids}, list("abcdj"))
                for name in "ab":
                    np.testing.assert_allclose(found[name], x / (1 + np.exp(-x.astype(np.float64))), rtol=0, atol=1e-6)
                for name in "cd":
                    self.assertTrue(np.array_equal(found[name], x))
                self.assertEqual(found["j"].view(np.int32).tolist(), ids.tolist())

    def test_dimensions_of_one(self):
        mlir = written("""module attributes {gpt.name = "sizes"} {
  func.func @f(%x: tensor<2x?xf32> {gpt.arg = "x"}, %i: tensor<?xi32> {gpt.arg = "i"}, %b: tensor<?xi1> {gpt.arg = "b"})
      -> (tensor<1x2x?x1xf32> {gpt.result = "o"}, tensor<?x1xi32> {gpt.result = "j"}, tensor<1x?xi1> {gpt.result = "c"}) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %l = tensor.dim %x, %one : tensor<2x?xf32>
    %m = tensor.dim %i, %zero : tensor<?xi32>
    %n = tensor.dim %b, %zero : tensor<?xi1>
    %o = tensor.expand_shape %x [[0, 1], [2, 3]] output_shape [1, 2, %l, 1] : tensor<2x?xf32> into tensor<1x2x?x1xf32>
    %j = tensor.expand_shape %i [[0, 1]] output_shape [%m, 1] : tensor<?xi32> into tensor<?x1xi32>
    %c = tensor.expand_shape %b [[0, 1]] output_shape [1, %n] : tensor<?xi1> into tensor<1x?xi1>
    return %o, %j, %c : tensor<1x2x?x1xf32>, tensor<?x1xi32>, tensor<1x?xi1>
  }
}
""")
        random = np.random.default_rng(4)
        with Package(compiled(mlir)).open({}) as model, model.session() as session:
            for n in (1, 17, 1030):
                x, i, b = random.normal(size=(2, n)).astype(np.float32), np.arange(-3, n - 3, dtype=np.int32), random.integers(0, 2, n).astype(np.int32)
                found = session.run("f", {"x": x, "i": i, "b": b}, list("ojc"))
                for name, expected in (("o", x.reshape(1, 2, n, 1)), ("j", i.reshape(n, 1)), ("c", b.reshape(1, n))):
                    self.assertEqual(found[name].shape, expected.shape)
                    self.assertTrue(np.array_equal(found[name].view(expected.dtype), expected), name)

    def test_command_line(self):
        """The same through gptc-run, whose inputs are a file."""
        case = {"f": CASES["mask_constant"]}
        mlir = written(text(case))
        folder = compiled(mlir, 2)
        inputs = mlir + ".npz"
        np.savez(inputs, x=f(2, 1, 7))
        done = run("gptc-run", folder, "--entry", "f", "--inputs", inputs, "--outputs", mlir + ".o.npz", status=1)
        self.assertIn("expected shape [2, 1, 3], got [2, 1, 7]", done.stderr)


main()
