"""Makes config.json, model.safetensors and reference.npz beside it: a tiny Annotated Transformer of random weights and what it computes.

Needs torch and safetensors. The model is written here from Vaswani et al. (arXiv:1706.03762) and from what Harvard NLP's page says of its modules:
their names, norms before each sublayer that divide by the unbiased standard deviation plus eps, scores of -1e9 where a mask hides, embeddings times
the root of the width, and log-probabilities from the generator. It computes in double from the stored weights, which are f16 but for norms and tables
of positions. Typical mistakes move its log-probabilities by 50 times what tests allow, or more.
"""
import json
import math
import os

import numpy as np
import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEADS, INNER, LAYERS, SOURCE, TARGET, CONTEXT, PAD, START = 32, 4, 48, 2, 29, 31, 20, 2, 0
EPS = 1e-6


def projections(state, at, random):
    for i in range(4):
        linear(state, f"{at}.linears.{i}", WIDTH, WIDTH, random)


def linear(state, at, rows, columns, random):
    limit = math.sqrt(6 / (rows + columns))
    state[at + ".weight"] = ((torch.rand(rows, columns, generator=random) * 2 - 1) * limit * 1.5).half()
    state[at + ".bias"] = (torch.randn(rows, generator=random) * 0.1).half()


def norm(state, at, random):
    state[at + ".a_2"] = 1 + torch.randn(WIDTH, generator=random) * 0.2
    state[at + ".b_2"] = torch.randn(WIDTH, generator=random) * 0.1


def positions():
    at = torch.arange(CONTEXT, dtype=torch.float64)[:, None]
    angle = at * torch.exp(torch.arange(0, WIDTH, 2, dtype=torch.float64) * (-math.log(10000.0) / WIDTH))
    table = torch.zeros(1, CONTEXT, WIDTH, dtype=torch.float64)
    table[0, :, 0::2], table[0, :, 1::2] = torch.sin(angle), torch.cos(angle)
    return table.float()


def make_state(seed):
    random, state = torch.Generator().manual_seed(seed), {}
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "src_attn"])):
        for i in range(LAYERS):
            at = f"{stack}.layers.{i}."
            for attention in attentions:
                projections(state, at + attention, random)
            linear(state, at + "feed_forward.w_1", INNER, WIDTH, random)
            linear(state, at + "feed_forward.w_2", WIDTH, INNER, random)
            for j in range(len(attentions) + 1):
                norm(state, f"{at}sublayer.{j}.norm", random)
        norm(state, stack + ".norm", random)
    for at, vocab in (("src_embed", SOURCE), ("tgt_embed", TARGET)):
        state[at + ".0.lut.weight"] = (torch.randn(vocab, WIDTH, generator=random) * 0.4).half()
        state[at + ".1.pe"] = positions()
    linear(state, "generator.proj", TARGET, WIDTH, random)
    return state


MISTAKES = ("biased deviation", "no mask of the source", "embeddings as they are", "scores not scaled", "no positions", "gelu", "no last norm")


class Model:
    """In double; a sequence is [T], a mask [1, S] or [T, T] of booleans. `broken`: with one of the mistakes."""

    def __init__(self, state, broken=""):
        self.state, self.broken = {name: tensor.double() for name, tensor in state.items()}, broken

    def linear(self, at, x):
        return x @ self.state[at + ".weight"].T + self.state[at + ".bias"]

    def norm(self, at, x):
        if self.broken == "no last norm" and at == "decoder.norm":
            return x
        deviation = x - x.mean(-1, keepdim=True)
        std = x.std(-1, unbiased=self.broken != "biased deviation", keepdim=True)
        return self.state[at + ".a_2"] * deviation / (std + EPS) + self.state[at + ".b_2"]

    def attention(self, at, x, source, mask):
        heads = lambda i, value: self.linear(f"{at}.linears.{i}", value).view(len(value), HEADS, -1).transpose(0, 1)
        q, k, v = heads(0, x), heads(1, source), heads(2, source)
        scores = q @ k.transpose(1, 2) / (1 if self.broken == "scores not scaled" else math.sqrt(WIDTH // HEADS))
        if self.broken != "no mask of the source" or len(mask) > 1:
            scores = scores.masked_fill(~mask, -1e9)
        mixed = (scores.softmax(-1) @ v).transpose(0, 1).reshape(len(x), WIDTH)
        return self.linear(at + ".linears.3", mixed)

    def feed_forward(self, at, x):
        activation = torch.nn.functional.gelu if self.broken == "gelu" else torch.relu
        return self.linear(at + ".w_2", activation(self.linear(at + ".w_1", x)))

    def embed(self, at, ids):
        factor = 1 if self.broken == "embeddings as they are" else math.sqrt(WIDTH)
        return self.state[at + ".0.lut.weight"][ids] * factor + self.state[at + ".1.pe"][0, :len(ids)] * (self.broken != "no positions")

    def encode(self, source, mask):
        x = self.embed("src_embed", source)
        for i in range(LAYERS):
            at = f"encoder.layers.{i}."
            n = self.norm(at + "sublayer.0.norm", x)
            x = x + self.attention(at + "self_attn", n, n, mask)
            x = x + self.feed_forward(at + "feed_forward", self.norm(at + "sublayer.1.norm", x))
        return self.norm("encoder.norm", x)

    def decode(self, memory, mask, target):
        x = self.embed("tgt_embed", target)
        causal = torch.ones(len(target), len(target), dtype=torch.bool).tril()
        for i in range(LAYERS):
            at = f"decoder.layers.{i}."
            n = self.norm(at + "sublayer.0.norm", x)
            x = x + self.attention(at + "self_attn", n, n, causal)
            x = x + self.attention(at + "src_attn", self.norm(at + "sublayer.1.norm", x), memory, mask)
            x = x + self.feed_forward(at + "feed_forward", self.norm(at + "sublayer.2.norm", x))
        return self.linear("generator.proj", self.norm("decoder.norm", x)).log_softmax(-1)

    def greedy(self, memory, mask, count):
        """The start token and `count` more; how far each was ahead of the second best."""
        tokens, ahead = [START], []
        for _ in range(count):
            best = self.decode(memory, mask, torch.tensor(tokens))[-1].topk(2)
            tokens.append(int(best.indices[0]))
            ahead.append(float(best.values[0] - best.values[1]))
        return tokens, ahead


def main():
    model = Model(state := make_state(seed=234))
    random = np.random.default_rng(3)
    arrays = {}
    # Padding behind; padding among the tokens; none; nothing but padding.
    sources = {"behind": [*random.integers(3, SOURCE, 6), PAD, PAD, PAD], "among": [5, PAD, 7, 11, PAD, 28, 4], "none": [9, 3, 14, 6, 27], "all": [PAD] * 4}
    for name, source in sources.items():
        source = torch.tensor([int(token) for token in source])
        mask = (source != PAD)[None]
        memory = model.encode(source, mask)
        tokens, ahead = model.greedy(memory, mask, 11)
        assert min(ahead) > 0.01 and len(set(tokens)) > 5, (name, tokens, ahead)
        arrays |= {f"{name}.src": source.numpy().astype(np.int32), f"{name}.src_mask": mask[0].numpy(), f"{name}.memory": memory.numpy(),
                   f"{name}.tgt": np.array(tokens, np.int32), f"{name}.log_probs": model.decode(memory, mask, torch.tensor(tokens)).numpy()}
        print(name, tokens, "ahead by", f"{min(ahead):.3f}")
        for mistake in MISTAKES if name == "among" else ():
            broken = Model(state, mistake)
            moved = float((broken.decode(broken.encode(source, mask), mask, torch.tensor(tokens)) - model.decode(memory, mask, torch.tensor(tokens))).abs().max())
            assert moved > 50 * 2e-4, (mistake, moved)
            print(f"  {mistake}: {moved:.3f}")
    np.savez_compressed(os.path.join(HERE, "reference.npz"), **arrays)
    save_file(state, os.path.join(HERE, "model.safetensors"))
    with open(os.path.join(HERE, "config.json"), "w", encoding="utf-8") as f:
        json.dump({"model_type": "annotated_transformer", "h": HEADS, "N": LAYERS, "d_model": WIDTH, "d_ff": INNER, "src_vocab": SOURCE, "tgt_vocab": TARGET,
                   "bos_token_id": START, "eos_token_id": 1}, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
