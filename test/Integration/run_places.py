"""Tensors of run lie anywhere: unaligned, at the end of the last page that is there, one over the other. The same bits, nothing else read or written.

A tensor is used where it is if a vector past its end is in a page that is there, else copied. Takes 2 seconds.
"""
import ctypes as c
import itertools
import mmap

import numpy as np

from harness import compiled, main, same_bits, unittest, written
from package import Package, Tensor

MODEL = """module attributes {gpt.name = "places"} {
  ml_program.global private @w(#ml_program.extern<tensor<40x24xf32>>) : tensor<40x24xf32>
  func.func @attend(%q: tensor<2x?x20xf32> {gpt.arg = "q"}, %k: tensor<2x?x20xf32> {gpt.arg = "k"}, %v: tensor<2x?x20xf32> {gpt.arg = "v"}) -> (tensor<2x?x20xf32> {gpt.result = "y"}) {
    %s = gpt.matmul %q, %k transpose_b : tensor<2x?x20xf32>, tensor<2x?x20xf32> -> tensor<2x?x?xf32>
    %m = gpt.causal_mask %s : tensor<2x?x?xf32>
    %p = gpt.softmax %m : tensor<2x?x?xf32>
    %y = gpt.matmul %p, %v : tensor<2x?x?xf32>, tensor<2x?x20xf32> -> tensor<2x?x20xf32>
    return %y : tensor<2x?x20xf32>
  }
  func.func @gemm(%x: tensor<?x24xf32> {gpt.arg = "x"}) -> (tensor<?x40xf32> {gpt.result = "y"}) {
    %w = ml_program.global_load_const @w : tensor<40x24xf32>
    %a = gpt.linear %x, %w : tensor<?x24xf32>, tensor<40x24xf32> -> tensor<?x40xf32>
    %y = gpt.gelu tanh %a : tensor<?x40xf32>
    return %y : tensor<?x40xf32>
  }
  func.func @rows(%x: tensor<?x37xf32> {gpt.arg = "x"}) -> (tensor<?x37xf32> {gpt.result = "y"}, tensor<?x37xf32> {gpt.result = "z"}) {
    %y = gpt.softmax %x : tensor<?x37xf32>
    %z = arith.addf %x, %y : tensor<?x37xf32>
    return %y, %z : tensor<?x37xf32>, tensor<?x37xf32>
  }
}
"""
SHAPES = {"attend": {"q": (2, 3, 20), "k": (2, 3, 20), "v": (2, 3, 20)}, "gemm": {"x": (3, 24)}, "rows": {"x": (3, 37)}}
OUTPUTS = {"attend": "y", "gemm": "y", "rows": "yz"}
PAGE, CANARY = mmap.PAGESIZE, 0xa5
libc = c.CDLL(None, use_errno=True)
libc.mmap.restype = c.c_void_p
libc.mmap.argtypes = [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long]


class Place:
    """An array that ends `before` bytes before a page that may not be touched, in memory full of CANARY."""

    def __init__(self, array, before):
        self.room = -(-(array.nbytes + before) // PAGE) * PAGE
        at = libc.mmap(None, self.room + PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert at not in (None, c.c_void_p(-1).value) and not libc.mprotect(c.c_void_p(at + self.room), PAGE, 0)
        self.at, self.bytes = at, np.ctypeslib.as_array((c.c_uint8 * self.room).from_address(at))
        self.bytes[:] = CANARY
        self.begin, self.end = self.room - before - array.nbytes, self.room - before
        self.array = np.ndarray(array.shape, array.dtype, self.bytes.data, self.begin)
        self.array[...] = array

    def around(self):
        return np.concatenate([self.bytes[:self.begin], self.bytes[self.end:]])

    def close(self):
        libc.munmap(c.c_void_p(self.at), self.room + PAGE)


class Places(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = Package(compiled(written(MODEL)))
        cls.weights = {"w": np.random.default_rng(0).normal(size=(40, 24)).astype(np.float32)}

    def sessions(self):
        for threads in (1, 2):
            with self.package.open(self.weights) as model, model.session(threads=threads) as session:
                yield session

    @staticmethod
    def inputs(entry, rows=3):
        random = np.random.default_rng(1)
        return {name: random.normal(size=[rows if n == 3 else n for n in shape]).astype(np.float32) for name, shape in SHAPES[entry].items()}

    def call(self, session, entry, inputs, outputs):
        tensors = [(Tensor * len(arrays))(*(Tensor.of(*item) for item in arrays.items())) for arrays in (inputs, outputs)]
        self.package.check(self.package.api.run(session.handle, entry.encode(), tensors[0], len(inputs), tensors[1], len(outputs)))

    def check(self, session, entry, inputs, before):
        """Inputs and outputs that end so many bytes before the last page ends."""
        expected = session.run(entry, inputs, list(OUTPUTS[entry]))
        given = {name: Place(array, before) for name, array in inputs.items()}
        wanted = {name: Place(np.zeros_like(array), before) for name, array in expected.items()}
        seen = set()
        session.observe(lambda event: seen.update(event.args[:event.arg_count]))
        self.call(session, entry, {name: place.array for name, place in given.items()}, {name: place.array for name, place in wanted.items()})
        session.unobserve()
        for place in itertools.chain(given.values(), wanted.values()):
            # A vector past the end would touch the page that is not there.
            self.assertEqual(place.array.ctypes.data in seen, before >= 64)
        for name, place in wanted.items():
            self.assertTrue(same_bits(np.array(place.array), expected[name]), name)
        for name, place in itertools.chain(given.items(), wanted.items()):
            self.assertTrue(np.all(place.around() == CANARY), name)
            place.close()

    def test_ends(self):
        for session in self.sessions():
            for entry, before in itertools.product(SHAPES, (0, 1, 2, 3, 4, 60, 63, 64, 65, 67, 68, 128)):
                with self.subTest(entry=entry, before=before):
                    self.check(session, entry, self.inputs(entry), before)

    def test_large(self):
        """So much that threads share the copies."""
        for session in self.sessions():
            for entry, before in itertools.product(("gemm", "rows"), (0, 2, 100)):
                with self.subTest(entry=entry, before=before):
                    self.check(session, entry, self.inputs(entry, 4001), before)

    def test_overlap(self):
        """An output in the memory of an input or of another output, at the same place or rows further on."""
        for session in self.sessions():
            x = self.inputs("rows", 50)["x"]
            expected = session.run("rows", {"x": x}, ["y", "z"])
            for first, second, third in [(0, 0, 100), (0, 100, 0), (10, 0, 100), (0, 10, 100), (0, 100, 110), (100, 110, 0), (0, 49, 98), (50, 0, 100)]:
                with self.subTest(x=first, y=second, z=third):
                    memory = np.zeros((200, 37), np.float32)
                    memory[first:first + 50] = x
                    at = lambda row: memory[row:row + 50]
                    self.call(session, "rows", {"x": at(first)}, {"y": at(second), "z": at(third)})
                    # Outputs are complete in the order of the entry's results.
                    self.assertTrue(same_bits(at(third), expected["z"]))
                    rows = [i for i in range(50) if not third <= second + i < third + 50]
                    self.assertTrue(same_bits(at(second)[rows], expected["y"][rows]))
            memory = np.array(x)
            self.call(session, "rows", {"x": memory}, {"y": memory})
            self.assertTrue(same_bits(memory, expected["y"]))


main()
