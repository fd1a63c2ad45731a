"""Bad input: exit status 1, one clear message with place, expected and got, and no file left."""
import json
import os
import shutil
import struct
import tempfile

import numpy as np

from harness import DOCS, GOLDEN, TEMPORARY, checkpoint, imported, main, run, unittest, written

PLAIN = """module attributes {gpt.name = "plain"} {
  func.func @relu(%x: tensor<4xf32> {gpt.arg = "x"}) -> (tensor<4xf32> {gpt.result = "y"}) {
    %y = gpt.silu %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""

with open(os.path.join(DOCS, "picogpt.mlir"), encoding="utf-8") as picogpt:
    PICOGPT = picogpt.read()


def safetensors(path):
    """Header and data of a .safetensors file."""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(size)), f.read()


def write_safetensors(path, header, data):
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


class BadInput(unittest.TestCase):
    def refused(self, words, tool, *args, **keywords):
        """Runs in an empty folder, which must stay empty; `{}` in args is its path."""
        folder = tempfile.mkdtemp(dir=TEMPORARY)
        done = run(tool, *(str(a).replace("{}", folder) for a in args), status=1, cwd=folder, **keywords)
        for word in words:
            self.assertIn(word.lower(), done.stderr.lower())
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)
        self.assertLess(len(done.stderr), 4096)
        self.assertEqual(done.stdout, "")
        self.assertEqual(os.listdir(folder), [])

    def import_refused(self, words, path):
        self.refused(words, "gptc-import", path, "-o", "{}/model.mlir")

    def model(self, case):
        """A copy of a golden checkpoint, to be broken."""
        folder = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), case)
        shutil.copytree(os.path.join(GOLDEN, case), folder)
        return folder

    def test_truncated(self):
        for case, name in (("gpt2-hf", "model.safetensors"), ("llama-gguf-q4-0", "model.gguf")):
            folder = self.model(case)
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                whole = f.read()
            # The last bytes of a GGUF file are padding.
            for size in (0, 3, 8, 100, len(whole) // 2, len(whole) - 64):
                with self.subTest(file=name, size=size):
                    with open(path, "wb") as f:
                        f.write(whole[:size])
                    self.import_refused([name], path if name.endswith("gguf") else folder)

    def test_garbage(self):
        noise = np.random.default_rng(1).bytes(4096)
        for case, name in (("gpt2-hf", "model.safetensors"), ("llama-gguf-q4-0", "model.gguf"), ("gpt2-hf", "config.json")):
            for content in (noise, b"\xff" * 4096, b"{" * 4096):
                with self.subTest(file=name, content=content[:4]):
                    folder = self.model(case)
                    with open(os.path.join(folder, name), "wb") as f:
                        f.write(content)
                    self.import_refused([name], os.path.join(folder, name) if name.endswith("gguf") else folder)
        self.import_refused(["nowhere"], os.path.join(TEMPORARY, "nowhere"))
        self.import_refused(["config.json"], tempfile.mkdtemp(dir=TEMPORARY))

    def test_missing_tensor(self):
        folder = self.model("gpt2-hf")
        path = os.path.join(folder, "model.safetensors")
        header, data = safetensors(path)
        header["h.1.mlp.c_other.weight"] = header.pop("h.1.mlp.c_fc.weight")
        write_safetensors(path, header, data)
        self.import_refused(["h.1.mlp.c_fc.weight", "missing", "expected"], folder)

    def test_wrong_shape(self):
        folder = self.model("gpt2-hf")
        path = os.path.join(folder, "model.safetensors")
        header, data = safetensors(path)
        shape = header["h.0.mlp.c_fc.weight"]["shape"]
        header["h.0.mlp.c_fc.weight"]["shape"] = shape[::-1]
        write_safetensors(path, header, data)
        self.import_refused(["h.0.mlp.c_fc.weight", "expected", "got"], folder)

    def test_unknown_architecture(self):
        folder = self.model("gpt2-hf")
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
        config.update(model_type="mamba", architectures=["MambaForCausalLM"])
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.import_refused(["config.json", "mamba", "expected", "gpt2", "llama"], folder)

    def test_broken_graph(self):
        broken = {
            "garbage": ("\x01\x02 no graph", []),
            "not closed": (PLAIN[:-3], []),
            "unknown op": (PLAIN.replace("gpt.silu", "gpt.sliu"), ["gpt.sliu"]),
            "wrong type": (PLAIN.replace("return %y : tensor<4xf32>", "return %y : tensor<5xf32>"), []),
            "unknown attribute": (PLAIN.replace("gpt.name", "gpt.nane"), ["gpt.nane", "gpt.name"]),
            "unknown argument attribute": (PLAIN.replace("gpt.arg", "gpt.agr"), ["gpt.agr", "gpt.arg"]),
            "unknown kind": (PLAIN.replace("gpt.silu", "gpt.gelu round"), ["erf", "tanh", "quick"]),
            "memref": (PLAIN.replace('"x"}', '"x"}, %z: memref<4xf32>'), ["memref<4xf32>"]),
            "same argument names": (PLAIN.replace('"x"}', '"x"}, %z: tensor<4xf32> {gpt.arg = "x"}'), ["'x' twice"]),
            "same result names": (PLAIN.replace('"y"}', '"y"}, tensor<4xf32> {gpt.result = "y"}')
                                  .replace("return %y : tensor<4xf32>", "%z = gpt.silu %y : tensor<4xf32>\nreturn %y, %z : tensor<4xf32>, tensor<4xf32>"), ["'y' twice"]),
            "no elements": (PLAIN.replace("tensor<4xf32>", "tensor<0xf32>"), ["tensor<0xf32>", "expected"]),
            "too many elements": (PLAIN.replace("tensor<4xf32>", "tensor<2147483647x2147483647xf32>"), ["expected"]),
            "weight with a value": (PICOGPT.replace("@ln(#ml_program.extern<!c>)", "@ln(dense<1.0> : !c)"), ["#ml_program.extern"]),
            "another vocabulary": (PICOGPT.replace("gpt.vocab = 96", "gpt.vocab = 97"), ["gpt.vocab", "96", "97"]),
            "deep": (PLAIN + "module {" * 100000, []),
            # Where MLIR lets an op use its own result.
            "own operand at the top": ("%d = gpt.dropout %d p 0.1 : tensor<?x64xf32>\n", ["expected functions and weights", "gpt.dropout"]),
            "own operand that is never reached": (PLAIN.replace("return %y : tensor<4xf32>", "return %y : tensor<4xf32>\n^never:\n%d = gpt.dropout %d p 0.1 : tensor<4xf32>\n"
                                                                "return %d : tensor<4xf32>"), ["expected one block"]),
            "own operand in a region": (PLAIN.replace("return %y", "builtin.module { %d = gpt.scale %d by 2.0 : tensor<4xf32> }\nreturn %y"), ["builtin.module", "has no kernel"]),
        }
        for what, (text, words) in broken.items():
            with self.subTest(what):
                path = written(text)
                self.refused([path + ":"] + words, "gptc", path, "-o", "{}/kernels")
        self.refused(["nowhere.mlir"], "gptc", os.path.join(TEMPORARY, "nowhere.mlir"), "-o", "{}/kernels")

    def test_lost_checkpoint(self):
        """The graph is right, its checkpoint is gone or has changed since."""
        folder = self.model("gpt2-hf")
        mlir = imported(folder, "lost")
        path = os.path.join(folder, "model.safetensors")
        with open(path, "rb") as f:
            whole = f.read()
        with open(path, "wb") as f:
            f.write(whole[:-1])
        self.refused(["model.safetensors"], "gptc", mlir, "-o", "{}/kernels")
        os.remove(path)
        self.refused(["model.safetensors"], "gptc", mlir, "-o", "{}/kernels")

    def test_nvcc(self):
        """One that does not do what it should is no mistake of ours; neither it nor gptc leaves anything."""
        home, temporary, model = (tempfile.mkdtemp(dir=TEMPORARY) for _ in range(3))
        path, nvcc = os.path.join(model, "plain.mlir"), os.path.join(home, "bin", "nvcc")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PLAIN)
        os.mkdir(os.path.dirname(nvcc))
        environment = dict(os.environ, CUDA_HOME=home, TMPDIR=temporary)
        output = "while [ \"$1\" != -o ]; do shift; done; "
        wrong = {
            "echo 'nvcc fatal: no host compiler'; exit 1": ["returned 1", "no host compiler"],
            "echo '/usr/include/crt/host_config.h(9): #error -- too new'; exit 2": ["returned 2", "too new"],
            "exit 3": ["returned 3"],
            "kill -9 $$": ["did not end by itself", "killed"],
            "seq 200000; exit 1": ["returned 1", "200000"],
            "": ["to write plain.", "got none"],
            output + ": > $2": ["to write plain.", "got none"],
            output + "mkdir $2": ["to write plain.", "got none"],
            output + "ln -s /dev/zero $2": ["to write plain.", "got none"],
            output + "echo .version 7.0 > $2": ["expected"],
        }
        for text, words in wrong.items():
            with open(nvcc, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n" + text + "\n")
            os.chmod(nvcc, 0o755)
            for product in (("--emit=ptx",), ("--emit=fatbin", "--save-temps=" + model), ("-o", "{}/kernels")):
                with self.subTest(text, product=product):
                    self.refused([nvcc, *words], "gptc", path, "--target=cuda", *product, env=environment)
                    self.assertEqual(os.listdir(temporary), [])
        with open(nvcc, "wb") as f:
            f.write(b"\x7fELF no program")
        self.refused([nvcc, "exec"], "gptc", path, "--target=cuda", "--emit=ptx", env=environment)
        self.assertEqual(sorted(os.listdir(model)), ["plain.cu", "plain.mlir"])
        environment["TMPDIR"] = os.path.join(temporary, "none")
        self.refused([environment["TMPDIR"], "temporary"], "gptc", path, "--target=cuda", "--emit=ptx", env=environment)

    def test_output(self):
        """Folders that cannot be written, also not by root: below a regular file, and in /proc."""
        file = written("kept", "file")
        plain, model = written(PLAIN), checkpoint("gpt2-hf")
        for target in (os.path.join(file, "kernels"), "/proc/kernels"):
            with self.subTest(target):
                self.refused([target], "gptc", plain, "-o", target)
                self.refused([target], "gptc-import", model, "-o", os.path.join(target, "model.mlir"))
        with open(file, encoding="utf-8") as f:
            self.assertEqual(f.read(), "kept")
        # A regular file in the folder's place stays what it is.
        self.refused([file], "gptc", plain, "-o", file)
        with open(file, encoding="utf-8") as f:
            self.assertEqual(f.read(), "kept")


main()
