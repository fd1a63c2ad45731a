"""The emulator of a GPU (tools/cuda-emulator), for tests of --target=cuda: GPTC_CUDA_EMULATOR is the folder of its libcuda.so.1. Packages
that this process loads find it too. Without nvcc or it, tests marked needs_gpu are skipped."""
import contextlib
import ctypes as c
import os
import re
import shutil
import tempfile
import unittest
import unittest.mock

import numpy as np

from harness import TEMPORARY, checkpoint, compiled, imported
from package import Package

EMULATOR = os.environ.get("GPTC_CUDA_EMULATOR", "")
HOME_GIVEN = os.environ.get("CUDA_HOME")
HOME = HOME_GIVEN or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(HOME, "bin"))
needs_gpu = unittest.skipUnless(NVCC and EMULATOR, "no nvcc, or no emulator")
# The emulator runs PTX. Machine code beside it would be half of nvcc's time; what nvcc says of that, test_manifest and the lit tests look at.
PTX_ONLY = """#!/bin/bash
arguments=()
for each in "$@"; do
  case $each in -gencode=*) each=${each/\\[sm_*,compute_/compute_} each=${each%%]} ;; esac
  arguments+=("$each")
done
exec "$NVCC" "${arguments[@]}"
"""


def ptx_only():
    """Packages compiled from now on hold PTX alone."""
    if not NVCC:
        return
    folder = os.path.join(TEMPORARY, "cuda")
    os.makedirs(os.path.join(folder, "bin"), exist_ok=True)
    with open(os.path.join(folder, "bin", "nvcc"), "w", encoding="utf-8") as f:
        f.write(PTX_ONLY.replace("$NVCC", NVCC))
    os.chmod(f.name, 0o755)
    os.environ["CUDA_HOME"] = folder


@contextlib.contextmanager
def machine_code():
    """The nvcc that there is, within."""
    with unittest.mock.patch.dict(os.environ):
        os.environ.pop("CUDA_HOME", None)
        if HOME_GIVEN:
            os.environ["CUDA_HOME"] = HOME_GIVEN
        yield


@contextlib.contextmanager
def recorded(test):
    """Every kernel of every package that is opened within, and closed, has to be launched. Yields the names of those that were."""
    record, names = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "launches"), set()
    with unittest.mock.patch.dict(os.environ, GPTC_EMULATOR_COVERAGE=record):
        yield names
        driver("cuDevicePrimaryCtxReset_v2", 0)
    with open(record, encoding="utf-8") as f:
        launches = [line.split() for line in f]
    names.update(name for _, name, count in launches if count != "0")
    test.assertEqual([f"{name} of {module}" for module, name, count in launches if count == "0"], [], "kernels that were not launched")
    test.assertTrue(names)


COUNTS = re.compile(r"(\w+): (\d+) launches, (\d+) warp instructions; cycles lost to bank conflicts: (\d+) of ld and st, (\d+) of matrix ops, (\d+) of cp.async; "
                    r"global memory: (\d+) sectors in (\d+) ld and st, (\d+) in (\d+) cp.async")


@contextlib.contextmanager
def counted():
    """Yields a dict that gets, for every kernel launched within by packages that are closed within, what the emulator counted."""
    log, kernels = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "log"), {}
    with unittest.mock.patch.dict(os.environ, GPTC_EMULATOR_STATS="1", GPTC_EMULATOR_LOG=log):
        driver("cuDevicePrimaryCtxReset_v2", 0)
        yield kernels
        driver("cuDevicePrimaryCtxReset_v2", 0)
    names = "launches", "instructions", "conflicts", "matrix_conflicts", "copy_conflicts", "sectors", "requests", "copy_sectors", "copy_requests"
    with open(log, encoding="utf-8") as f:
        for name, *counts in COUNTS.findall(f.read()):
            kernels[name] = dict(zip(names, map(int, counts)))


# Loaded before a package asks for it by its name.
DRIVER = c.CDLL(os.path.join(EMULATOR, "libcuda.so.1")) if EMULATOR else None


def emulated(**more):
    """The environment of a process that finds it."""
    return dict(os.environ, LD_LIBRARY_PATH=EMULATOR, **more)


def cuda(precision, level=2):
    """The options of a package for a GPU."""
    return level, "--target=cuda", f"--precision={precision}"


def package(case, precision, level=2, *options):
    """A golden model's."""
    return compiled(imported(checkpoint(case), "model"), *cuda(precision, level), *options)


def called(folder, calls):
    """Calls: entry, inputs by name, the output; the outputs, in 32-bit words."""
    with Package(folder).open() as model, model.session() as session:
        return [session.run(entry, inputs, [output])[output] for entry, inputs, output in calls]


def driver(call, *arguments):
    status = getattr(DRIVER, call)(*arguments)
    if status:
        raise AssertionError(f"{call}: CUresult {status}")


class Fresh(unittest.TestCase):
    """Each test finds the device as new: an error of one stays with it."""

    def setUp(self):
        driver("cuInit", 0)
        driver("cuDevicePrimaryCtxReset_v2", 0)


class Gpu:
    """Memory of the context that packages use, the first GPU's primary one."""

    def __init__(self):
        driver("cuInit", 0)
        context = c.c_void_p()
        driver("cuDevicePrimaryCtxRetain", c.byref(context), 0)
        driver("cuCtxSetCurrent", context)

    def allocate(self, size):
        at = c.c_uint64()
        driver("cuMemAlloc_v2", c.byref(at), c.c_size_t(size))
        return at.value

    def free(self, at):
        driver("cuMemFree_v2", c.c_uint64(at))

    def upload(self, array, offset=0, into=None):
        """A copy that begins `offset` bytes behind an aligned address."""
        array = np.ascontiguousarray(array)
        at = self.allocate(array.nbytes + offset) + offset if into is None else into
        driver("cuMemcpyHtoD_v2", c.c_uint64(at), array.ctypes.data_as(c.c_void_p), c.c_size_t(array.nbytes))
        return at

    def download(self, at, shape):
        array = np.empty(shape, np.float32)
        driver("cuMemcpyDtoH_v2", array.ctypes.data_as(c.c_void_p), c.c_uint64(at), c.c_size_t(array.nbytes))
        return array


# "// Launch: d0 <= 8: grid (ceil(d0 / 8), 6, 1), 256 threads, 9216 bytes", and the function below.
LAUNCH = r"// Launch: (?:d0 <= \d+: )?grid (\(.*\)), (\d+) threads, (\d+) bytes\nextern .*\n(\w+)\(([^)]*)\)"


class Kernels:
    """The functions of a package's kernels, launched by themselves with arguments by their names in its text."""

    def __init__(self, folder):
        text, self.module = "", c.c_void_p()
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as f:
                if name.endswith(".cu"):
                    text = f.read().decode()
                elif name.endswith(".fatbin"):
                    driver("cuModuleLoadData", c.byref(self.module), f.read())
        self.functions = {}
        for grid, threads, shared, name, parameters in re.findall(LAUNCH, text):
            self.functions[name] = grid, int(threads), int(shared), re.findall(r"(\w+)(?:,|$)", parameters)

    def __call__(self, name, **arguments):
        grid, threads, shared, parameters = self.functions[name]
        values = [c.c_uint64(arguments[each]) for each in parameters]
        sizes = eval(re.sub(r"ceil\((.*?) / (\d+)\)", r"-(-(\1) // \2)", grid), {each: arguments[each] for each in parameters if re.match("d\\d", each)})
        function = c.c_void_p()
        driver("cuModuleGetFunction", c.byref(function), self.module, name.encode())
        driver("cuLaunchKernel", function, *map(c.c_uint, (*sizes, threads, 1, 1, shared)), None,
               (c.c_void_p * len(values))(*(c.cast(c.byref(value), c.c_void_p) for value in values)), None)
        driver("cuCtxSynchronize")
