"""The Annotated Transformer, an encoder-decoder: imported, compiled and run as entries, against the model in double of test/Families."""
import os
import shutil
import sys

import numpy as np

from harness import DOCS, HERE, TEMPORARY, compiled, imported, main, manifest, run, unittest
from package import INVALID_ARGUMENT, OUT_OF_RANGE, Error, Package

FOLDER = os.path.join(HERE, "..", "Families", "annotated-transformer")
REFERENCE = dict(np.load(os.path.join(FOLDER, "reference.npz")))
SOURCES = ("behind", "among", "none", "all")  # where the padding is
TOLERANCE = 2e-4
PAD = 2


def of(source):
    """src, src_mask, memory, tgt, log_probs."""
    get = lambda name: REFERENCE[f"{source}.{name}"]
    return get("src"), get("src_mask").astype(np.int32), get("memory"), get("tgt"), get("log_probs")


def every(target):
    return np.arange(len(target), dtype=np.int32)


class Translator:
    def __init__(self, session):
        self.session = session

    def encode(self, source, mask):
        return self.session.run("encode", {"src": source, "src_mask": mask}, ["memory"])["memory"]

    def decode(self, memory, mask, target, rows):
        inputs = {"memory": memory, "src_mask": mask, "tgt": np.array(target, np.int32), "rows": np.array(rows, np.int32)}
        return self.session.run("decode", inputs, ["log_probs"])["log_probs"]

    def greedy(self, source, mask, start, count):
        memory, tokens = self.encode(source, mask), [start]
        for i in range(count):
            tokens.append(int(self.decode(memory, mask, tokens, [i]).argmax()))
        return tokens


class AnnotatedTransformer(unittest.TestCase):
    def model(self):
        return imported(FOLDER, "annotated")

    def close(self, got, expected):
        self.assertEqual(got.shape, expected.shape)
        self.assertTrue(np.all(np.abs(got - expected) <= TOLERANCE), np.abs(got - expected).max())

    def check(self, folder):
        with Package(folder).open() as model, model.session() as session:
            translator = Translator(session)
            for source in SOURCES:
                with self.subTest(package=folder, source=source):
                    src, mask, memory, target, log_probs = of(source)
                    self.close(translator.encode(src, mask), memory)
                    self.close(translator.decode(memory.astype(np.float32), mask, target, every(target)), log_probs)
                    self.close(translator.decode(memory.astype(np.float32), mask, target, [7, 2, 7]), log_probs[[7, 2, 7]])
                    self.assertEqual(translator.greedy(src, mask, target[0], len(target) - 1), target.tolist())

    def test_reference(self):
        """Memory and log-probabilities within 2e-4; the greedy tokens, whose lead over the second best is 0.05 or more."""
        for level in (2, 0):
            self.check(compiled(self.model(), level))

    def test_state_dict(self):
        """The same weights as torch.save writes them make the same numbers."""
        folder = os.path.join(TEMPORARY, "state dict")
        os.makedirs(folder)
        shutil.copy(os.path.join(FOLDER, "config.json"), folder)
        run(sys.executable, os.path.join(HERE, "..", "Import", "Inputs", "torchfile.py"), os.path.join(FOLDER, "model.safetensors"), os.path.join(folder, "model.pt"))
        self.check(compiled(imported(folder, "annotated")))

    def test_padding(self):
        """What stands under the mask is never seen, and padding behind the source is as if it were not there."""
        with Package(compiled(self.model())).open() as model, model.session() as session:
            translator = Translator(session)
            src, mask, _, target, log_probs = of("behind")
            other = np.where(mask == 0, 17, src).astype(np.int32)
            length = int(mask.sum())
            self.assertTrue(mask[:length].all())
            for source, flags in ((other, mask * 5), (src[:length], mask[:length])):
                memory = translator.encode(source, flags)
                memory[flags == 0] = 1e9  # what the encoder makes of padding
                self.close(translator.decode(memory, flags, target, every(target)), log_probs)

    def test_later_tokens(self):
        """A row does not depend on the tokens after it."""
        with Package(compiled(self.model())).open() as model, model.session() as session:
            translator = Translator(session)
            _, mask, memory, target, _ = of("among")
            memory = memory.astype(np.float32)
            whole = translator.decode(memory, mask, target, every(target))
            for count in range(1, len(target)):
                np.testing.assert_array_equal(translator.decode(memory, mask, target[:count], every(target[:count])), whole[:count])

    def test_fusions(self):
        """A layer of the encoder is attention, four GEMMs and two norms; one of the decoder has two attentions and seven GEMMs: q, k and v of its own
        tokens are one, k and v of the memory another."""
        package = manifest(compiled(self.model()))
        kinds = {kernel["name"]: kernel["kind"] for kernel in package["kernels"]}
        counts = {}
        for entry in package["entries"]:
            self.assertEqual(entry["kind"], "plain")
            for call in entry["calls"]:
                counts[entry["name"], kinds[call["kernel"]]] = counts.get((entry["name"], kinds[call["kernel"]]), 0) + 1
        for kind in ("matmul", "softmax", "mask", "elementwise"):
            self.assertEqual(counts.get(("encode", kind), 0), {"elementwise": 2}.get(kind, 0), (kind, counts))
        self.assertEqual(counts["encode", "attention"], 2)
        self.assertEqual(counts["encode", "gemm"], 2 * 4)
        self.assertEqual(counts["encode", "norm"], 2 * 2 + 1)
        self.assertEqual(counts["decode", "attention"], 2 * 2)
        self.assertEqual(counts["decode", "gemm"], 2 * 7 + 1)
        self.assertEqual(counts["decode", "softmax"], 1)  # log_softmax
        self.assertEqual({name: kind for name, kind in kinds.items() if kind == "attention"},
                         {"attention_h4_d8_mask": "attention", "attention_h4_d8_causal": "attention"})

    def test_precisions(self):
        """Rounded rows and weights move log-probabilities by 0.05 and 0.11 here."""
        for precision, limit in (("bf16", 0.1), ("int8", 0.2)):
            with Package(compiled(self.model(), 2, f"--precision={precision}")).open() as model, model.session() as session:
                src, mask, _, target, log_probs = of("none")
                translator = Translator(session)
                got = translator.decode(translator.encode(src, mask), mask, target, every(target))
                self.assertLessEqual(np.abs(got - log_probs).max(), limit, precision)

    def test_check(self):
        """gptc-check of both entries, and --verify-fusions."""
        src, mask, memory, target, _ = of("among")
        encode, decode = (os.path.join(TEMPORARY, name + ".npz") for name in ("encode", "decode"))
        np.savez(encode, src=src, src_mask=mask.astype(bool))
        np.savez(decode, memory=memory.astype(np.float32), src_mask=mask, tgt=target, rows=every(target)[-2:])
        for level in (2, 0):
            package = compiled(self.model(), level)
            for entry, inputs in (("encode", encode), ("decode", decode)):
                report = run("gptc-check", self.model(), "--package", package, "--entry", entry, "--inputs", inputs).stdout
                self.assertRegex(report, r"(?m)^end to end: \w+ \[[\dx]+\]: .*  ok$")
                self.assertNotIn("FAIL", report)
        report = run("gptc", self.model(), "--verify-fusions").stdout
        self.assertIn("fuse-qkv", report)
        self.assertNotIn("FAIL", report)
        # From the command line.
        out = os.path.join(TEMPORARY, "out.npz")
        run("gptc-run", compiled(self.model()), "--entry", "encode", "--inputs", encode, "--outputs", out)
        self.close(np.load(out)["memory"], memory)

    def test_program(self):
        """docs/translate.c, with the package's header and archive and no other library."""
        cc, package = shutil.which("cc"), compiled(self.model())
        program = os.path.abspath(os.path.join(package, "..", "translate"))
        run(cc, "-std=c99", "-Wall", "-Wextra", "-Werror", os.path.join(DOCS, "translate.c"), "-I", package, os.path.join(package, "libannotated.a"), "-o", program)
        weights = os.path.join(package, "annotated.weights")
        for source in SOURCES:
            src, _, _, target, _ = of(source)
            printed = run(program, weights, len(target) - 1, target[0], PAD, *src).stdout
            self.assertEqual(printed, ",".join(map(str, target[1:])) + "\n")
        self.assertIn("src", run(program, weights, 1, 0, PAD, 29, status=1).stderr)

    def test_wrong_calls(self):
        """Ids that no table has, sizes that do not fit, more tokens than there are positions: a status each."""
        with Package(compiled(self.model())).open() as model, model.session() as session:
            translator = Translator(session)
            src, mask, memory, target, log_probs = of("none")
            memory = memory.astype(np.float32)
            long = np.zeros(21, np.int32)
            for status, call in ((OUT_OF_RANGE, lambda: translator.encode(src + 29, mask)), (OUT_OF_RANGE, lambda: translator.encode(src - 10, mask)),
                                 (OUT_OF_RANGE, lambda: translator.encode(long, long + 1)), (OUT_OF_RANGE, lambda: translator.decode(memory, mask, long, [0])),
                                 (OUT_OF_RANGE, lambda: translator.decode(memory, mask, target, [len(target)])),
                                 (INVALID_ARGUMENT, lambda: translator.encode(src, mask[:-1])), (INVALID_ARGUMENT, lambda: translator.decode(memory[:-1], mask, target, [0])),
                                 (INVALID_ARGUMENT, lambda: translator.decode(memory[:, :-1], mask, target, [0]))):
                with self.assertRaises(Error) as caught:
                    call()
                self.assertEqual(caught.exception.status, status, caught.exception.message)
            self.close(translator.decode(memory, mask, target, every(target)), log_probs)

    def test_full_context(self):
        with Package(compiled(self.model())).open() as model, model.session() as session:
            whole = np.zeros(20, np.int32)
            translator = Translator(session)
            self.assertTrue(np.isfinite(translator.decode(translator.encode(whole, whole + 1), whole + 1, whole, [19])).all())


if __name__ == "__main__":
    main()
