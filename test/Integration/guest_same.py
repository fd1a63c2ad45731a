"""Two compiles give the same bytes in other folders, at another time, in another locale and from several threads' CPUs; a prompt has
the same logits in every slot, split, thread count and repeat, and with dropout in its config (B49); ids and positions outside the
tables are refused with index and range (B33).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import guest_locale
from harness import BIN, HERE, TEMPORARY, checkpoint, compiled, compiled_case, imported, main, random_tokens, run, same_bits, unittest
from package import OUT_OF_RANGE, Batch, Package, c

# Sets the locale of the environment before main, as a host of the compiler might.
PRELOAD = "#include <locale.h>\n__attribute__((constructor)) static void set(void) { setlocale(LC_ALL, \"\"); }\n"
V, T, C, H = 50257, 16, 8, 2


def contents(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def preload():
    path = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "locale.c")
    with open(path, "w", encoding="utf-8") as f:
        f.write(PRELOAD)
    # LD_PRELOAD is cut at spaces.
    library = os.path.join(tempfile.mkdtemp(prefix="gptc-preload-"), "locale.so")
    run(shutil.which("cc"), "-shared", "-fPIC", path, "-o", library)
    return library


def save(path, tensors):
    """A safetensors file of f32 tensors."""
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for value in tensors.values():
            f.write(value.astype(np.float32).tobytes())


def large_vocabulary(**config):
    """A GPT-2 of one layer with the vocabulary of the original."""
    folder = tempfile.mkdtemp(dir=TEMPORARY)
    random = np.random.default_rng(0)
    shapes = {"wte.weight": (V, C), "wpe.weight": (T, C), "ln_f.weight": (C,), "ln_f.bias": (C,)}
    for name, shape in {"ln_1.weight": (C,), "ln_1.bias": (C,), "ln_2.weight": (C,), "ln_2.bias": (C,), "attn.c_attn.weight": (C, 3 * C),
                        "attn.c_attn.bias": (3 * C,), "attn.c_proj.weight": (C, C), "attn.c_proj.bias": (C,), "mlp.c_fc.weight": (C, 4 * C),
                        "mlp.c_fc.bias": (4 * C,), "mlp.c_proj.weight": (4 * C, C), "mlp.c_proj.bias": (C,)}.items():
        shapes["h.0." + name] = shape
    save(os.path.join(folder, "model.safetensors"), {n: random.standard_normal(s, np.float32) for n, s in shapes.items()})
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump({"model_type": "gpt2", "vocab_size": V, "n_positions": T, "n_ctx": T, "n_embd": C, "n_head": H, "n_layer": 1,
                   "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", **config}, f)
    return folder


class Same(unittest.TestCase):
    def package(self, environment, cpu):
        """Imported and compiled from a copy of the checkpoint in a new folder, on that CPU."""
        folder = tempfile.mkdtemp(dir=TEMPORARY)
        shutil.copytree(checkpoint("gpt2-hf"), os.path.join(folder, "golden", "gpt2"))
        keywords = {"cwd": folder, "env": environment, "preexec_fn": lambda: os.sched_setaffinity(0, cpu)}
        run("gptc-import", "golden/gpt2", "--name", "model", "-o", "model.mlir", **keywords)
        run("gptc", os.path.join(folder, "model.mlir"), "-o", "kernels", **keywords)
        return contents(os.path.join(folder, "kernels"))

    def test_package(self):
        cpus = os.sched_getaffinity(0)
        first = self.package({**os.environ, "LC_ALL": "C", "TZ": "UTC"}, {min(cpus)})
        time.sleep(1.1)  # archives and the like count seconds
        environment = guest_locale.environment() or {**os.environ}
        library = preload()
        second = self.package({**environment, "TZ": "Asia/Tokyo", "HOME": "/", "USER": "other", "OMP_NUM_THREADS": "7", "LD_PRELOAD": library}, cpus)
        shutil.rmtree(os.path.dirname(library))
        self.assertEqual(sorted(first), sorted(second))
        self.assertEqual([name for name in first if first[name] != second[name]], [])

    def test_tools_in_a_locale(self):
        environment = guest_locale.environment()
        if environment is None:
            self.skipTest("no locale with decimal commas")
        library = preload()
        environment["LD_PRELOAD"] = library
        shown = subprocess.run([shutil.which("python3"), "-c", "import ctypes; b = ctypes.create_string_buffer(9); "
                                "ctypes.CDLL(None).snprintf(b, 9, b'%.1f', ctypes.c_double(0.5)); print(b.value.decode())"],
                               env=environment, capture_output=True, text=True, check=True).stdout
        self.assertEqual(shown, "0,5\n")
        package = compiled_case("gpt2-hf")
        gguf = os.path.join(tempfile.mkdtemp(dir=TEMPORARY), "model.gguf")
        run(sys.executable, os.path.join(HERE, "..", "Import", "Inputs", "checkpoint.py"), "gguf", gguf,
            "llama.attention.layer_norm_rms_epsilon=1.5e-5", "llama.rope.freq_base=10000.5")
        self.assertIn("<base 10000.5,", run("gptc-import", gguf).stdout)
        calls = [("gptc-import", gguf), ("gptc-import", checkpoint("llama-hf")),
                 ("gptc", imported(checkpoint("gpt2-hf"), "model"), "--emit=mlir"),
                 ("gptc", imported(checkpoint("gpt2-hf"), "model"), "--emit=manifest"),
                 ("gptc-run", package, "--tokens", "1,2,3", "-n", "8", "--temperature", "0.7", "--top-p", "0.9", "--seed", "1", "--print-tokens")]
        for call in calls:
            self.assertEqual(run(*call, env=environment).stdout, run(*call).stdout, call)
        shutil.rmtree(os.path.dirname(library))

    def test_logits(self):
        package = Package(compiled_case("gpt2-hf"))
        text = random_tokens(20, package.info.vocab, 9)
        with package.open() as model:
            with model.session(threads=1) as session:
                alone = session.step(text)
                for _ in range(50):
                    self.assertTrue(same_bits(session.step(text), alone))
            for threads in (1, 2, 7, 16):
                with model.session(threads=threads, sequences=33, tokens=33 * 20) as session:
                    self.assertTrue(same_bits(session.step(text), alone), f"{threads} threads")
                    each = np.concatenate([session.step([token], [i]) for i, token in enumerate(text)])
                    self.assertTrue(same_bits(each, alone), f"{threads} threads, token by token")
                    for slots in (2, 3, 8, 33):
                        for slot in range(slots) if slots < 33 or threads == 2 else (0, 16, 32):
                            texts = [text if s == slot else random_tokens(1 + s % 20, package.info.vocab, s) for s in range(slots)]
                            tokens = [t for part in texts for t in part]
                            first = sum(map(len, texts[:slot]))
                            got = session.step(tokens, [i for part in texts for i in range(len(part))],
                                               [s for s, part in enumerate(texts) for _ in part], range(first, first + 20))
                            self.assertTrue(same_bits(got, alone), f"{threads} threads, slot {slot} of {slots}")

    def test_dropout(self):
        configs = ({}, {"attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1})
        packages = [contents(compiled(imported(large_vocabulary(**config), "model"), 0)) for config in configs]
        self.assertEqual([name for name in packages[0] if packages[0][name] != packages[1][name]], [])

    def test_ranges(self):
        package = Package(compiled(imported(large_vocabulary(), "model")))
        self.assertEqual((package.info.vocab, package.info.context), (V, T))
        with package.open() as model, model.session(tokens=T + 1, sequences=2) as session:
            usual = session.step([1, 2, 3], rows=[2])
            full = session.step(range(T), rows=[T - 1], sequences=[1] * T)

            def refused(statuses, named, tokens, positions, sequence=0):
                as_array = lambda values: np.array(values, np.int32)
                tokens, positions, sequences = as_array(tokens), as_array(positions), as_array([sequence] * len(tokens))
                rows, logits = as_array([len(tokens) - 1]), np.full(V, 7, np.float32)
                batch = Batch(len(tokens), *(a.ctypes.data for a in (tokens, positions, sequences)), 1, rows.ctypes.data)
                status = package.api.step(session.handle, c.byref(batch), logits.ctypes.data)
                message = package.api.last_error().decode()
                self.assertIn(status, statuses, message)
                for number in named:
                    self.assertIn(str(number), message)
                self.assertTrue((logits == 7).all(), "logits were written")
                # The cache is what it was, and the next call gives the usual result.
                self.assertTrue(same_bits(session.step([3], [2], rows=[0]), usual))
                self.assertTrue(same_bits(session.step([T - 1], [T - 1], [1], rows=[0]), full))

            for wrong in (-1, 50257, 50304, 2 ** 31 - 1, -2 ** 31):
                refused([OUT_OF_RANGE], [wrong, V - 1], [wrong], [3])
                refused([OUT_OF_RANGE], [wrong, V - 1], [1, 2, wrong], [0, 1, 2])
            refused([OUT_OF_RANGE], [T], [1] * (T + 1), range(T + 1))
            refused([OUT_OF_RANGE], [T], [1], [T], sequence=1)
            refused([OUT_OF_RANGE], [T], [1] * 3, [T - 2, T - 1, T], sequence=1)
            refused([OUT_OF_RANGE], [-1], [1], [-1])
        # The token after the last position is the last that can be told.
        done = run("gptc-run", package.folder, "--tokens", "1,2,3,4", "-n", T, "--print-tokens", "--ignore-eos")
        self.assertEqual(len(done.stdout.split(",")), T - 4 + 1)
        self.assertIn(f"the context of {T} tokens is full", done.stderr)
        run("gptc-run", package.folder, "--tokens", ",".join(["1"] * (T + 1)), "-n", "0", status=1)

    def test_end_outside_the_vocabulary(self):
        folder = large_vocabulary(eos_token_id=V)
        mlir = os.path.join(folder, "model.mlir")
        done = subprocess.run([os.path.join(BIN, "gptc-import"), folder, "--name", "model", "-o", mlir], capture_output=True, text=True)
        if done.returncode:
            self.assertIn(str(V), done.stderr)
            self.assertFalse(os.path.exists(mlir))
            return
        package = Package(compiled(mlir, 0))
        self.assertLess(package.info.eos, V)


main()
