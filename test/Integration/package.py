"""A compiled package through its C ABI (include/gptc/Runtime/gptc.h, version 1), by ctypes.

    with Package("kernels").open() as model, model.session(sequences=2) as session:
        logits = session.step([1, 2, 3], rows=[2])

A status other than GPTC_OK is raised as Error with the package's message. Refuses nothing itself: wrong
arguments reach the package.
"""
import ctypes as c
import glob
import os

import numpy as np

(OK, INVALID_ARGUMENT, OUT_OF_RANGE, LIMIT, BAD_WEIGHTS, NO_MEMORY, UNSUPPORTED_CPU, BUSY) = range(8)
DTYPES = {np.dtype(np.float32): 0, np.dtype(np.int32): 6}  # gptc_dtype


class Info(c.Structure):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("target", c.c_char_p), ("precision", c.c_char_p)] + [
        (name, c.c_int64) for name in ("context", "vocab", "page", "kv_page_bytes", "weights_bytes", "eos", "bos")
    ] + [("optimization", c.c_int32)]


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("dtype", c.c_int), ("rank", c.c_int32), ("shape", c.c_int64 * 8),
                ("data", c.c_void_p), ("capacity_bytes", c.c_size_t)]

    @staticmethod
    def of(name, array):
        """Of a numpy array, or of a weight as it is stored, whose `dtype` is a gptc_dtype and whose `data` are its bytes."""
        dtype, data = (array.dtype, array.data) if isinstance(array.dtype, int) else (DTYPES[array.dtype], array)
        return Tensor(name.encode(), dtype, len(array.shape), (c.c_int64 * 8)(*array.shape), data.ctypes.data, data.nbytes)


class OpenParams(c.Structure):
    _fields_ = [("size", c.c_size_t), ("weights_path", c.c_char_p), ("weights", c.POINTER(Tensor)),
                ("weight_count", c.c_size_t), ("host", c.c_void_p), ("verify", c.c_int32)]


class Limits(c.Structure):
    _fields_ = [("size", c.c_size_t), ("tokens", c.c_int64), ("sequences", c.c_int64), ("pages", c.c_int64),
                ("rows", c.c_int64), ("threads", c.c_int32)]


class Batch(c.Structure):
    _fields_ = [("count", c.c_int64), ("tokens", c.c_void_p), ("positions", c.c_void_p), ("sequences", c.c_void_p),
                ("row_count", c.c_int64), ("rows", c.c_void_p)]


class Event(c.Structure):
    _fields_ = [("kernel", c.c_char_p), ("entry", c.c_char_p), ("call", c.c_int64), ("args", c.POINTER(c.c_void_p)), ("arg_count", c.c_int32),
                ("dims", c.POINTER(c.c_int64)), ("dim_count", c.c_int32), ("seconds", c.c_double), ("read", c.c_void_p), ("memory", c.c_void_p)]


OBSERVER = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Event))


class Api(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("info", c.CFUNCTYPE(c.POINTER(Info))),
        ("open", c.CFUNCTYPE(c.c_int, c.POINTER(OpenParams), c.POINTER(c.c_void_p))),
        ("session", c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Limits), c.POINTER(c.c_void_p))),
        ("step", c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Batch), c.c_void_p)),
        ("run", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.POINTER(Tensor), c.c_size_t, c.POINTER(Tensor), c.c_size_t)),
        ("fork", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int32, c.c_int32, c.c_int64)),
        ("observe", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p)),
        ("close", c.CFUNCTYPE(None, c.c_void_p)),
        ("last_error", c.CFUNCTYPE(c.c_char_p)),
    ]


class Error(Exception):
    def __init__(self, status, message):
        super().__init__(f"status {status}: {message}")
        self.status, self.message = status, message


class Closing:
    """A handle that `with` closes."""

    def __init__(self, package, handle):
        self.package, self.handle = package, handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.package.api.close(self.handle)
        self.handle = None


class Package:
    def __init__(self, folder):
        library, = glob.glob(os.path.join(glob.escape(folder), "lib*.so"))
        self.folder, self.name = folder, os.path.basename(library)[3:-3]
        table = getattr(c.CDLL(library), self.name + "_api")
        table.restype = c.POINTER(Api)
        self.api = table().contents
        self.info = self.api.info().contents

    def check(self, status):
        if status != OK:
            raise Error(status, self.api.last_error().decode())

    def open(self, weights=None, path=None, verify=False):
        """Weights: a dict of the host's arrays; else the package's weights file."""
        params, model = OpenParams(c.sizeof(OpenParams), verify=verify), c.c_void_p()
        if weights is None:
            params.weights_path = (path or os.path.join(self.folder, self.name + ".weights")).encode()
        else:
            tensors = (Tensor * len(weights))(*(Tensor.of(*item) for item in weights.items()))
            params.weights, params.weight_count = tensors, len(tensors)
        self.check(self.api.open(c.byref(params), c.byref(model)))
        return Model(self, model)


class Model(Closing):
    def session(self, **limits):
        session = c.c_void_p()
        self.package.check(self.package.api.session(self.handle, c.byref(Limits(c.sizeof(Limits), **limits)), c.byref(session)))
        return Session(self.package, session)


def pointer(array):
    return None if array is None else array.ctypes.data


class Session(Closing):
    def step(self, tokens, positions=None, sequences=None, rows=None):
        """Logits [rows, vocab]; by default one sequence from position 0, every row."""
        i32 = lambda values: None if values is None else np.array(values, np.int32)
        positions = range(len(tokens)) if positions is None else positions
        rows = i32(range(len(tokens)) if rows is None else rows)
        tokens, positions, sequences = i32(tokens), i32(positions), i32(sequences)
        batch = Batch(len(tokens), pointer(tokens), pointer(positions), pointer(sequences), len(rows), pointer(rows))
        logits = np.full((len(rows), max(self.package.info.vocab, 1)), np.nan, np.float32)
        self.package.check(self.package.api.step(self.handle, c.byref(batch), logits.ctypes.data))
        return logits

    def observe(self, function):
        """Calls function(event) after each kernel."""
        self.observer = OBSERVER(lambda _, event: function(event.contents))
        self.package.check(self.package.api.observe(self.handle, self.observer, None))

    def unobserve(self):
        self.package.check(self.package.api.observe(self.handle, None, None))

    def fork(self, source, target, length):
        self.package.check(self.package.api.fork(self.handle, source, target, length))

    def run(self, entry, inputs, outputs):
        """The named f32 outputs of an entry; their shapes are asked for first."""
        arrays = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in inputs.items()}
        given = (Tensor * len(arrays))(*(Tensor.of(*item) for item in arrays.items()))
        wanted = (Tensor * len(outputs))(*(Tensor(name.encode()) for name in outputs))
        call = lambda: self.package.api.run(self.handle, entry.encode(), given, len(given), wanted, len(wanted))
        self.package.check(call())
        results, canaries = {}, {}
        for name, tensor in zip(outputs, wanted):
            shape = tensor.shape[:tensor.rank]
            count = int(np.prod(shape, dtype=np.int64))
            room = np.full(count + 32, np.nan, np.float32)  # and 32 more, which must stay as they are
            results[name], canaries[name] = room[:count].reshape(shape), room[count:]
            canaries[name].view(np.int32)[:] = 0x5a5a5a5a
            tensor.data, tensor.capacity_bytes = room.ctypes.data, 4 * count
        self.package.check(call())
        for name, canary in canaries.items():
            if np.any(canary.view(np.int32) != 0x5a5a5a5a):
                raise AssertionError(f"output '{name}' was written past its end")
        return results
