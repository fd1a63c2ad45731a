"""Crafted checkpoints: safetensors headers (B27), data at any address (B29), GGUF files below 100 bytes and llm.c files (B30)."""
import json
import os
import struct
import unittest

import numpy as np

from harness import GOLDEN, checkpoint, compiled, imported, main, measured, random_tokens, run, same_bits
from models import Gpt2, data_of, header_of, new_folder, safetensors
from package import Package


def tensor(shape, span, dtype='"F32"'):
    """One tensor's entry of a safetensors header, as text."""
    return f'"w":{{"dtype":{dtype},"shape":{shape},"data_offsets":{span}}}'


class Refused(unittest.TestCase):
    def refused(self, path, file, *words):
        """gptc-import ends at once, in one line, with little memory, and writes nothing."""
        folder = new_folder()
        done = measured("gptc-import", path, "-o", os.path.join(folder, "model.mlir"))
        error = done.stderr
        self.assertEqual((done.returncode, done.stdout, os.listdir(folder)), (1, "", []), error)
        self.assertLess(done.seconds, 1)
        self.assertLess(done.bytes, os.path.getsize(file) + 100e6)
        self.assertTrue(error.startswith(f"gptc-import: error: {file}: "), error)
        self.assertTrue(error.count("\n") == 1 and error.endswith("\n") and len(error) < 1000, error[:2000])
        for word in words:
            self.assertIn(word, error)


class Safetensors(Refused):
    """B27."""

    def header(self, bytes_, *words):
        folder = Gpt2().write(bytes_)
        self.refused(folder, os.path.join(folder, "model.safetensors"), *words)

    def tensor(self, entry, data, *words):
        self.header(safetensors("{" + entry + "}", data), "tensor 'w'", *words)

    def test_lengths(self):
        self.header(b"\xff" * 8, "header length", "18446744073709551615")
        self.header(b"\xff" * 8 + bytes(100), "header length", "18446744073709551615")
        self.header(b"1234567", "header length", "7 bytes")
        self.header(b"", "header length", "0 bytes")
        self.header(struct.pack("<Q", 0), "header", "empty")
        self.header(struct.pack("<Q", 0) + bytes(100), "header")
        whole = safetensors("{}")
        for more in (0, 1, 8):  # the file's size, and what wraps when 8 is added
            self.header(struct.pack("<Q", len(whole) - 8 + 1 + more) + whole[8:], "header length", f"got {len(whole) - 8 + 1 + more}")
        for length in (2 ** 64 - 8, 2 ** 64 - 7, 2 ** 63, 2 ** 63 - 1):
            self.header(struct.pack("<Q", length) + whole[8:], "header length", f"got {length}")
        self.header(struct.pack("<Q", len(whole)) + whole[8:], "header length", f"got {len(whole)}")

    def test_spans(self):
        self.tensor(tensor("[32,8]", "[0,65536]"), bytes(65536), "[32, 8]", "1024 bytes", "65536 bytes")
        self.tensor(tensor("[1]", "[8,4]"), bytes(8), "begin <= end", "[8, 4]")
        self.tensor(tensor("[1]", "[0]"), bytes(4), "data_offsets", "two whole numbers")
        self.tensor(tensor("[1]", "[]"), bytes(4), "data_offsets", "two whole numbers")
        self.tensor(tensor("[1]", "[0,4,8]"), bytes(4), "data_offsets", "two whole numbers")
        self.tensor(tensor("[4294967296,4294967296]", "[0,0]"), b"", "more than 2^63 bytes")
        self.tensor(tensor("[4294967296,4294967296,0]", "[0,0]"), b"", "more than 2^63 bytes")
        self.tensor(tensor("[-1]", "[0,0]"), b"", "shape", "integer -1")
        self.tensor(tensor("[1.5]", "[0,4]"), bytes(4), "shape", "number 1.5")
        self.tensor(tensor("[1]", "[0,18446744073709551615]"), bytes(4), "data_offsets")
        self.tensor(tensor("[1]", "[-4,0]"), bytes(4), "data_offsets")
        self.tensor(tensor("[1]", "[0,4]", '"F33"'), bytes(4), "dtype", "'F33'")
        self.tensor(tensor("[1]", "[0,4]", "33"), bytes(4), "dtype", "integer 33")
        self.tensor(tensor("[1]", "[0,8]"), bytes(4), "data_offsets", "truncated")

    def test_tensors_together(self):
        w = tensor("[1]", "[0,4]")
        self.header(safetensors("{" + w + "," + w + "}", bytes(4)), "duplicate key 'w'")
        self.header(safetensors("{" + w + "," + tensor("[1]", "[4,8]") + "}", bytes(8)), "duplicate key 'w'")
        v = tensor("[1]", "[2,6]").replace('"w"', '"v"')
        self.header(safetensors("{" + w + "," + v + "}", bytes(6)), "tensor 'v'", "overlap", "'w'")
        self.header(safetensors("{" + w + "}", bytes(5)), "'w'", "1 more bytes")
        self.header(safetensors("{" + tensor("[1]", "[4,8]") + "}", bytes(8)), "tensor 'w'", "begin at 0")

    def test_nested(self):
        for opened in ("[", '{"a":'):
            for before in ("", '{"__metadata__":', '{"w":'):
                self.header(safetensors(before + opened * 100000, bytes(8)), "header")

    def test_through_gptc(self):
        """The compiler reads the weights again, and they may have changed."""
        model = Gpt2()
        mlir = imported(model.write(), "model")
        header = header_of(model.weights)
        header["ln_f.bias"]["data_offsets"] = header["ln_f.bias"]["data_offsets"][::-1]
        folder = model.write(safetensors(header, data_of(model.weights)))
        here = new_folder()
        done = run("gptc", mlir, "-o", "kernels", "--checkpoint", folder, cwd=here, status=1)
        self.assertIn(f"{folder}/model.safetensors: tensor 'ln_f.bias': data_offsets: expected begin <= end", done.stderr)
        self.assertEqual((done.stderr.count("\n"), os.listdir(here)), (1, []))

    def test_legal(self):
        model = Gpt2()
        plain = header_of(model.weights)
        data = data_of(model.weights)
        end = len(data)
        nothing = {"none": {"dtype": "F32", "shape": [0, 4], "data_offsets": [0, 0]}}
        tokens = random_tokens(9, 11)
        expected = model.logits(tokens)
        first = None
        for header in (plain, {"__metadata__": {}, **plain}, {"__metadata__": {"format": "pt"}, **plain}, json.dumps(plain) + " " * 13,
                       {**nothing, **plain}, {**plain, "none": {**nothing["none"], "data_offsets": [end, end]}},
                       dict(reversed(plain.items()))):
            package = Package(compiled(imported(model.write(safetensors(header, data)), "model"), 0))
            with package.open() as opened, opened.session() as session:
                logits = session.step(tokens)
            np.testing.assert_allclose(logits, expected, rtol=0, atol=2e-5)
            first = logits if first is None else first
            self.assertTrue(same_bits(logits, first))


class Alignment(unittest.TestCase):
    def test_any_address(self):
        """B29: the head matrix, 64x32, begins at every address mod 4; products of one row and of two."""
        model = Gpt2(width=32, heads=2, vocab=64, tied=False)
        # The head lies first.
        weights = {"lm_head.weight": model.weights["lm_head.weight"], **model.weights}
        self.assertEqual(weights["lm_head.weight"].shape, (64, 32))
        text = json.dumps(header_of(weights))
        text += " " * (-(8 + len(text)) % 256)
        tokens = [[5], [5, 17]]
        expected = [model.logits(t) for t in tokens]
        for level in (0, 2):
            first = None
            for offset in (0, 1, 2, 3):
                with self.subTest(level=level, offset=offset):
                    file = safetensors(text + " " * offset, data_of(weights))
                    self.assertEqual((8 + len(text) + offset) % 256, offset)
                    package = Package(compiled(imported(model.write(file), "model"), level, "-march=x86-64-v2"))
                    with package.open() as opened, opened.session() as session:
                        logits = [session.step(t) for t in tokens]
                    first = first or logits
                    for got, same, right in zip(logits, first, expected):
                        self.assertTrue(same_bits(got, same))
                        np.testing.assert_allclose(got, right, rtol=0, atol=2e-5)


def text(value):
    return struct.pack("<Q", len(value)) + value


def gguf(pairs=(), tensors=b"", n_tensors=0, n_pairs=None, version=struct.pack("<I", 3)):
    """Of pairs (key, type, value), all bytes but the type."""
    out = b"GGUF" + version + struct.pack("<QQ", n_tensors, len(pairs) if n_pairs is None else n_pairs)
    return out + b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in pairs) + tensors


class Gguf(Refused):
    """B30."""

    def file(self, bytes_, *words):
        self.assertLess(len(bytes_), 100)
        path = os.path.join(new_folder(), "model.gguf")
        with open(path, "wb") as f:
            f.write(bytes_)
        self.refused(path, path, *words)

    def test_tensors(self):
        entry = lambda dims, kind=0, name=b"w", offset=0: text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        self.file(gguf(tensors=entry([4, 0]), n_tensors=1), "tensor 'w'", "dimension 1", "got 0")
        self.file(gguf(tensors=entry([0]), n_tensors=1), "tensor 'w'", "dimension 0", "got 0")
        self.file(gguf(tensors=text(b"w") + struct.pack("<IQQQ", 5, 1, 1, 1), n_tensors=1), "tensor 'w'", "at most 4 dimensions", "got 5")
        self.file(gguf(tensors=entry([4])[:-12] + struct.pack("<IQ", 999, 0), n_tensors=1), "tensor 'w'", "type 999")
        self.file(gguf(tensors=entry([2 ** 62, 4]), n_tensors=1), "tensor 'w'", "2^63 bytes")
        self.file(gguf(tensors=entry([4], name=b""), n_tensors=1), "tensor 1 of 1", "got 0")
        for count in (2 ** 63, 2 ** 64 - 1, 2 ** 61):
            self.file(gguf(n_tensors=count), "tensor count", f"got {count}")
            self.file(gguf(n_pairs=count), "metadata count", f"got {count}")

    def test_metadata(self):
        alignment = b"general.alignment"
        self.file(gguf([(alignment, 4, struct.pack("<I", 0))]), "general.alignment", "power of two", "uint32 0")
        self.file(gguf([(alignment, 4, struct.pack("<I", 3))]), "general.alignment", "power of two", "uint32 3")
        self.file(gguf([(alignment, 8, text(b"32"))]), "general.alignment", "uint32", "string '32'")
        self.file(gguf([(alignment, 6, struct.pack("<f", 32))]), "general.alignment", "uint32", "float32")
        self.file(gguf([(b"k", 8, struct.pack("<Q", 2 ** 63))]), "key 'k'", "beyond the end")
        self.file(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2 ** 63) + bytes(16), "key 1 of 1", "beyond the end")
        self.file(gguf([(b"", 4, struct.pack("<I", 3))]), "key 1 of 1", "got 0")
        self.file(gguf([(b"k", 999, bytes(8))]), "key 'k'", "type", "got 999")
        self.file(gguf([(b"k", 9, struct.pack("<IQ", 999, 1))]), "key 'k'", "type", "got 999")
        self.file(gguf([(b"k", 9, struct.pack("<IQ", 4, 2 ** 62))]), "key 'k'", "uint32", str(2 ** 62))
        # Keys of a type that the model's rules do not allow.
        architecture = b"general.architecture"
        self.file(gguf([(architecture, 4, struct.pack("<I", 3))]), "general.architecture", "uint32 3")
        self.file(gguf([(architecture, 8, text(b"llama"))]), "llama.", "expected")

    def test_versions(self):
        self.file(gguf(version=b"\0\0\0\3"), "version", "big-endian")
        for version in (0, 1, 2, 4, 2 ** 32 - 1):
            self.file(gguf(version=struct.pack("<I", version)), "version", "expected", f"got {version}")
        self.file(b"GGUF", "version")
        self.file(b"GGUFgarbage", "version")
        self.file(b"GGUX" + bytes(20), "magic", "GGUX")

    def test_unused_keys(self):
        """A valid file with keys that no one asks for, of every type, still loads."""
        import_ = lambda path: run("gptc-import", path, "--name", "model").stdout
        plain = checkpoint("llama-gguf-f32")
        with open(plain, "rb") as f:
            whole = f.read()
        count, = struct.unpack_from("<Q", whole, 16)
        values = {0: b"\1", 1: b"\xff", 2: b"\1\2", 3: b"\xff\xff", 4: bytes(4), 5: b"\xff" * 4, 6: bytes(4), 7: b"\1", 8: text(b""), 10: bytes(8),
                  11: bytes(8), 12: bytes(8), 9: struct.pack("<IQIQ", 9, 1, 8, 2) + text(b"a") + text(b"\xff\0")}
        more = b"".join(text(b"my.key.%d" % kind) + struct.pack("<I", kind) + value for kind, value in values.items())
        more += text(b"pad") + struct.pack("<I", 8)
        more += text(bytes(-(len(more) + 8) % 32))  # the data stays aligned
        folder = new_folder()
        for name, content in (("plain", whole), ("more", whole[:16] + struct.pack("<Q", count + len(values) + 1) + more + whole[24:])):
            with open(os.path.join(folder, name), "wb") as f:
                f.write(content)
        self.assertEqual(import_(os.path.join(folder, "more")).replace("more", "plain"), import_(os.path.join(folder, "plain")))


class LlmC(Refused):
    def test_refused(self):
        """B30: the header's numbers, and a file of another length than they say."""
        with open(os.path.join(GOLDEN, "gpt2-llmc-f32", "model.bin"), "rb") as f:
            whole = f.read()
        header = np.frombuffer(whole[:1024], np.int32)
        self.assertEqual(header[0], 20240326)

        def edited(index, value):
            changed = header.copy()
            changed[index] = value
            return changed.tobytes() + whole[1024:]

        # magic, version, max_seq_len, vocab_size, num_layers, num_heads, channels, padded_vocab_size
        files = {"magic": (edited(0, 20240327), "unknown checkpoint", ".gguf", "llm.c"), "version": (edited(1, 99), "version 3 (f32)", "got 99"),
                 "layers": (edited(4, -1), "num_layers", "got -1"), "heads": (edited(5, 5), "multiple of num_heads (5)"),
                 "padded": (edited(7, header[3] - 1), "padded_vocab_size", f"at least vocab_size ({header[3]})"),
                 "more": (edited(4, 2 ** 31 - 1), "truncated"), "wide": (edited(6, 2 ** 31 - 2), "2^64 bytes"),
                 "short": (whole[:-4], f"expected {len(whole)} bytes", "truncated"), "long": (whole + b"1234", f"expected {len(whole)} bytes"),
                 "header": (whole[:100], "header: expected 1024 bytes"), "empty": (b"", "an empty file")}
        for what, (content, *words) in files.items():
            with self.subTest(what):
                path = os.path.join(new_folder(), "model.bin")
                with open(path, "wb") as f:
                    f.write(content)
                self.refused(path, path, *words)


main()
