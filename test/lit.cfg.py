# Configuration of the lit tests. Tools are found through PATH, so a RUN line
# names them plainly: gptc-opt, gptc, gptc-import, gptc-run, FileCheck, not.
# Other words: %golden (the golden data), %families (test/Families), %python (python3 with no packages
# promised), %root (the repository), %mlir_include. Paths are quoted here where they hold a space; a RUN line does not
# quote them again.
import os
import shlex

import lit.formats
import lit.TestRunner

config.name = "gptc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Families", "Golden", "Unit", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.gptc_test_exec_root

config.environment["PATH"] = os.pathsep.join(
    [config.gptc_bin_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
config.substitutions.append(
    ("%golden", os.path.join(config.test_source_root, "Golden"))
)
config.substitutions.append(
    ("%families", os.path.join(config.test_source_root, "Families"))
)
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%root", os.path.dirname(config.test_source_root)))
config.substitutions.append(("%mlir_include", config.mlir_include))


# lit pastes %s, %t and the like unquoted into the command line.
def quoted(plain):
    def substitutions(*arguments, **keywords):
        return [
            (key, shlex.quote(value) if " " in value and key != "%%" else value)
            for key, value in plain(*arguments, **keywords)
        ]

    return substitutions


if any(" " in path for path in (config.test_source_root, config.test_exec_root)):
    lit.TestRunner.getDefaultSubstitutions = quoted(
        lit.TestRunner.getDefaultSubstitutions
    )

# Tests that compile CUDA text. Where a toolkit is looked for: lib/Target/CUDA/Nvcc.cpp
homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
folders = [homes[0] + "/bin"] if homes else os.environ.get("PATH", "").split(os.pathsep) + ["/usr/local/cuda/bin"]
nvcc = next((os.path.join(folder, "nvcc") for folder in folders if os.access(os.path.join(folder, "nvcc"), os.X_OK)), None)
if nvcc:
    config.available_features.add("nvcc")
    config.substitutions.append(("%nvcc", nvcc))
for name in ("CUDA_HOME", "CUDA_PATH"):
    if os.environ.get(name):
        config.environment[name] = os.environ[name]

# Tests that need an optional tool say REQUIRES: <tool>.
for tool in ("gptc", "gptc-import", "gptc-run", "gptc-check", "gptc-bench"):
    if os.path.exists(os.path.join(config.gptc_bin_dir, tool)):
        config.available_features.add(tool)
