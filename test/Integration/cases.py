"""Functions of a few ops, compiled together and checked one by one."""
import collections

import numpy as np

from harness import compiled, manifest, written
from package import Package


def tensor(shape, element="f32"):
    return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"


class Case:
    """A function: `inputs` and `results` are name -> type, `weights` arrays that the host gives; `check(entry)` asserts."""

    def __init__(self, inputs, weights, body, results, check):
        self.inputs, self.body, self.results, self.check = inputs, body, results, check
        self.weights = {name: np.ascontiguousarray(array, np.float32) for name, array in weights.items()}

    def text(self, number):
        arguments = ", ".join(f'%{name}: {kind} {{gpt.arg = "{name}"}}' for name, kind in self.inputs.items())
        kinds = {name: tensor(array.shape) for name, array in self.weights.items()}
        declared = "".join(f"  ml_program.global private @{name}_{number}(#ml_program.extern<{kind}>) : {kind}\n" for name, kind in kinds.items())
        loads = "".join(f"    %{name} = ml_program.global_load_const @{name}_{number} : {kind}\n" for name, kind in kinds.items())
        named = ", ".join(f'{kind} {{gpt.result = "{name}"}}' for name, kind in self.results.items())
        return (f'{declared}  func.func @f{number}({arguments}) -> ({named}) {{\n{loads}{self.body}\n'
                f'    return {", ".join("%" + name for name in self.results)} : {", ".join(self.results.values())}\n  }}\n')


class Entry:
    """A case compiled at one level."""

    def __init__(self, level, model, session, case, number, counts):
        self.level, self.session, self.case, self.name, self.counts = level, session, case, f"f{number}", counts

    def __call__(self, **inputs):
        integers = lambda name: self.case.inputs[name].endswith(("i32>", "xi1>"))
        arrays = {name: np.ascontiguousarray(x, np.int32 if integers(name) else np.float32) for name, x in inputs.items()}
        return self.session.run(self.name, arrays, list(self.case.results))

    def kernels(self):
        """How often a kernel of each kind runs."""
        return self.counts


def check_all(test, cases, options=((2,), (0,))):
    """Compiles the cases as one package for each of the options, a level first, and checks each."""
    text = 'module attributes {gpt.name = "cases"} {\n' + "".join(case.text(i) for i, case in enumerate(cases)) + "}\n"
    weights = {f"{name}_{i}": array for i, case in enumerate(cases) for name, array in case.weights.items()}
    mlir = written(text)
    for level, *more in options:
        folder = compiled(mlir, level, *more)
        listed = manifest(folder)
        kinds = {kernel["name"]: kernel["kind"] for kernel in listed["kernels"]}
        counts = {entry["name"]: collections.Counter(kinds[call["kernel"]] for call in entry["calls"]) for entry in listed["entries"]}
        with Package(folder).open(weights) as model, model.session() as session:
            for i, case in enumerate(cases):
                with test.subTest(case=i, level=level, body=case.body):
                    case.check(Entry(level, model, session, case, i, dict(counts[f"f{i}"])))
