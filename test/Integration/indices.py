"""Ids of a named entry that lie outside what they index: a status, and the next valid call works."""
import numpy as np

from harness import compiled, main, unittest, written
from package import OUT_OF_RANGE, Error, Package

MODEL = """module attributes {gpt.name = "indices"} {
  ml_program.global private @table(#ml_program.extern<tensor<8x4xf32>>) : tensor<8x4xf32>
  ml_program.global private @small(#ml_program.extern<tensor<5x4xf32>>) : tensor<5x4xf32>
  func.func @lookup(%ids: tensor<?xi32> {gpt.arg = "ids"}) -> (tensor<?x4xf32> {gpt.result = "y"}) {
    %t = ml_program.global_load_const @table : tensor<8x4xf32>
    %y = gpt.embedding %t, %ids : tensor<8x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
  func.func @two_tables(%ids: tensor<?xi32> {gpt.arg = "ids"}) -> (tensor<?x4xf32> {gpt.result = "y"}) {
    %t = ml_program.global_load_const @table : tensor<8x4xf32>
    %s = ml_program.global_load_const @small : tensor<5x4xf32>
    %a = gpt.embedding %t, %ids : tensor<8x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
    %b = gpt.embedding %s, %ids : tensor<5x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
    %y = arith.addf %a, %b : tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
  func.func @positions(%ids: tensor<?xi32> {gpt.arg = "ids"}) -> (tensor<?x4xf32> {gpt.result = "y"}) {
    %t = ml_program.global_load_const @table : tensor<8x4xf32>
    %p = gpt.positions %ids : tensor<?xi32>
    %y = gpt.embedding %t, %p : tensor<8x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
  func.func @select(%x: tensor<?x4xf32> {gpt.arg = "x"}, %ids: tensor<?xi32> {gpt.arg = "ids"}) -> (tensor<?x4xf32> {gpt.result = "y"}) {
    %y = gpt.select_rows %x, %ids : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
}
"""


class Indices(unittest.TestCase):
    def each(self, entry, good, bad, rows, **inputs):
        """rows: what the good ids give. Every bad list is refused, the good one works before and after."""
        weights = {"table": np.arange(32, dtype=np.float32).reshape(8, 4), "small": np.zeros((5, 4), np.float32)}
        for level in (2, 0):
            with Package(compiled(written(MODEL), level)).open(weights) as model, model.session() as session:
                call = lambda ids: session.run(entry, dict(inputs, ids=np.array(ids, np.int32)), ["y"])["y"]
                for ids in bad:
                    with self.subTest(entry=entry, ids=ids[:3], level=level):
                        np.testing.assert_array_equal(call(good), rows(weights))
                        with self.assertRaises(Error) as caught:
                            call(ids)
                        self.assertEqual(caught.exception.status, OUT_OF_RANGE)
                        self.assertIn("'ids'", caught.exception.message)
                np.testing.assert_array_equal(call(good), rows(weights))

    def test_embedding(self):
        self.each("lookup", [0, 7], [[8], [0, -1], [2**31 - 1], [-2**31]], lambda w: w["table"][[0, 7]])

    def test_smaller_of_two_tables(self):
        self.each("two_tables", [4, 0], [[5], [7]], lambda w: w["table"][[4, 0]])

    def test_positions(self):
        self.each("positions", [0] * 8, [[0] * 9, [0] * 100000], lambda w: w["table"])

    def test_select_rows(self):
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        self.each("select", [2, 0, 2, 1], [[3], [-1], [10**6], [2**31 - 1]], lambda w: x[[2, 0, 2, 1]], x=x)


main()
