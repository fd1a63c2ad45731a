"""docs/picogpt.mlir, compiled and run with weights from the host, against the same GPT in numpy."""
import os

import numpy as np

from harness import DOCS, compiled, main, random_tokens, same_bits, unittest
from package import INVALID_ARGUMENT, BAD_WEIGHTS, Error, Package

V, T, C, H, LAYERS = 96, 64, 32, 4, 2
SHAPES = {"wte": (V, C), "wpe": (T, C), "ln": (C,)}
for layer in range(LAYERS):
    for name, shape in {"ln1": (C,), "qkv": (3 * C, C), "proj": (C, C), "ln2": (C,), "up": (4 * C, C), "down": (C, 4 * C)}.items():
        SHAPES[f"{name}.{layer}"] = shape


def norm(x, gamma):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d ** 2).mean(-1, keepdims=True) + 1e-5) * gamma


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def attention(x, qkv, proj):
    q, k, v = (part.reshape(len(x), H, C // H).transpose(1, 0, 2) for part in np.split(x @ qkv.T, 3, axis=-1))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(C // H)
    scores[:, np.triu(np.ones((len(x), len(x)), bool), 1)] = -np.inf
    return (softmax(scores) @ v).transpose(1, 0, 2).reshape(len(x), C) @ proj.T


def picogpt(tokens, w):
    x = w["wte"][tokens] + w["wpe"][:len(tokens)]
    for i in range(LAYERS):
        x = x + attention(norm(x, w[f"ln1.{i}"]), w[f"qkv.{i}"], w[f"proj.{i}"])
        x = x + gelu(norm(x, w[f"ln2.{i}"]) @ w[f"up.{i}"].T) @ w[f"down.{i}"].T
    return norm(x, w["ln"]) @ w["wte"].T


class PicoGpt(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(7)
        self.weights = {name: random.normal(1 if len(shape) == 1 else 0, 0.3, shape).astype(np.float32)
                        for name, shape in SHAPES.items()}

    def check(self, level):
        package = Package(compiled(os.path.join(DOCS, "picogpt.mlir"), level))
        tokens = random_tokens(T, V, seed=8)
        expected = picogpt(tokens, {name: w.astype(np.float64) for name, w in self.weights.items()})
        with package.open(self.weights) as model, model.session() as session:
            logits = session.step(tokens)
            np.testing.assert_allclose(logits, expected, rtol=0, atol=2e-4)
            session.step(tokens[:40])
            self.assertTrue(same_bits(session.step(tokens[40:], range(40, T)), logits[40:]))

    def test_fused(self):
        self.check(2)

    def test_unfused(self):
        self.check(0)

    def test_wrong_weights(self):
        package = Package(compiled(os.path.join(DOCS, "picogpt.mlir")))
        missing = {name: w for name, w in self.weights.items() if name != "up.1"}
        for weights, word in [(missing, "up.1"), (dict(self.weights, **{"qkv.0": self.weights["wte"][:95]}), "qkv.0")]:
            with self.subTest(word):
                with self.assertRaises(Error) as caught:
                    package.open(weights)
                self.assertIn(caught.exception.status, (INVALID_ARGUMENT, BAD_WEIGHTS))
                self.assertIn(word, caught.exception.message)
        # Checkpoints carry tensors that the graph does not use.
        package.open(dict(self.weights, mask=self.weights["ln"])).__exit__()


main()
