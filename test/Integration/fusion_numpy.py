"""What is fused into GEMMs and around them, in numpy in double; shares nothing with the compiler."""
import numpy as np

from harness import unittest

inf, nan = np.inf, np.nan


def erf(x):
    """Abramowitz and Stegun's series and continued fraction, in double."""
    x = np.asarray(x, np.float64)
    n = np.arange(0, 110)
    term = lambda v: 2 / np.sqrt(np.pi) * np.sum([(-1.0) ** i * v ** (2 * i + 1) / (np.prod(np.arange(1, i + 1, dtype=np.float64)) * (2 * i + 1)) for i in n])
    return np.vectorize(lambda v: np.sign(v) if abs(v) > 4.5 else term(v), otypes=[float])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "gpt.silu {}": lambda x: x * sigmoid(x),
    "gpt.gelu erf {}": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gpt.gelu tanh {}": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))) / 2,
    "gpt.gelu quick {}": lambda x: x * sigmoid(1.702 * x),
    "arith.maximumf {}, %zero": lambda x: np.maximum(x, 0),
}


def rope(x, positions, base, pairs, rotary):
    """x [H, T, D]."""
    x = np.array(x, np.float64)
    angle = np.asarray(positions, np.float64)[:, None] * base ** (-2.0 * np.arange(rotary // 2) / rotary)
    a, b = (np.arange(rotary // 2), np.arange(rotary // 2) + rotary // 2) if pairs == "half" else (np.arange(0, rotary, 2), np.arange(1, rotary, 2))
    u, v = x[..., a].copy(), x[..., b].copy()
    x[..., a], x[..., b] = u * np.cos(angle) - v * np.sin(angle), v * np.cos(angle) + u * np.sin(angle)
    return x


def attend(q, k, v, scale=1.0, causal=True):
    """q [H, T, D], k and v [G, T, D]; scores, weights and output."""
    k, v = np.repeat(k, len(q) // len(k), 0), np.repeat(v, len(q) // len(v), 0)
    scores = scale * q @ k.transpose(0, 2, 1)
    masked = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -inf) if causal else scores
    weights = np.exp(masked - masked.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return scores, weights, weights @ v


def heads(x, count):
    return x.reshape(len(x), count, -1).transpose(1, 0, 2)


def merged(x):
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def layer_norm(x, eps, gamma=1.0, beta=0.0):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d ** 2).mean(-1, keepdims=True) + eps) * gamma + beta


class Numbers(unittest.TestCase):
    def close(self, got, expected, atol=1e-5):
        got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
        self.assertEqual(got.shape, expected.shape)
        self.assertTrue(np.all(np.abs(got - expected) <= atol * np.maximum(1, np.abs(expected))), f"got {got.ravel()[:12]}, expected {expected.ravel()[:12]}")

    def gemms(self, entry, count):
        self.assertEqual(entry.kernels().get("gemm"), count, entry.kernels())

    def random(self, *shape, seed=0):
        return np.random.default_rng([seed, *shape]).normal(0, 1, shape).astype(np.float32)
