"""A sequence's logits have the same bits alone, in any ragged batch, in any split, on any thread count,
and after forks and rollbacks."""
from harness import checkpoint, compiled, imported, main, random_tokens, same_bits, unittest
from package import Package

MODELS = [(case, level, "f32") for case in ("gpt2-hf", "llama-hf", "llama-gguf-q4-0") for level in (2, 0)]
MODELS += [("gpt2-hf", 2, "bf16"), ("llama-gguf-q4-0", 2, "bf16"), ("gpt2-hf", 2, "int8"), ("llama-gguf-q4-0", 2, "int8")]


def batch(parts):
    """parts: (sequence, start position, tokens); as the arguments of step."""
    return ([t for _, _, tokens in parts for t in tokens],
            [start + i for _, start, tokens in parts for i in range(len(tokens))],
            [sequence for sequence, _, tokens in parts for _ in tokens])


class Ragged(unittest.TestCase):
    def each_model(self, check):
        for case, level, precision in MODELS:
            with self.subTest(case=case, level=level, precision=precision):
                package = Package(compiled(imported(checkpoint(case), "model"), level, f"--precision={precision}"))
                with package.open() as model:
                    check(package, model)

    def alone(self, model, tokens):
        with model.session(threads=1) as session:
            return session.step(tokens)

    def rows(self, parts, logits, sequence):
        _, _, owner = batch(parts)
        return logits[[i for i, s in enumerate(owner) if s == sequence]]

    def test_batch(self):
        def check(package, model):
            texts = {s: random_tokens(n, package.info.vocab, seed=s) for s, n in enumerate((1, 90, 7, 33))}
            alone = {s: self.alone(model, tokens) for s, tokens in texts.items()}
            for threads in (1, 2):
                with model.session(sequences=4, tokens=160, threads=threads) as session:
                    # Whole prompts in one step, in another order than their numbers.
                    parts = [(s, 0, texts[s]) for s in (2, 0, 3, 1)]
                    logits = session.step(*batch(parts))
                    for s in texts:
                        self.assertTrue(same_bits(self.rows(parts, logits, s), alone[s]), f"sequence {s}, {threads} threads")
                    # Prefill of one beside single tokens of others; wanted rows in any order.
                    parts = [(1, 20, texts[1][20:63]), (0, 0, texts[0]), (3, 32, texts[3][32:])]
                    tokens, positions, sequences = batch(parts)
                    wanted = [len(tokens) - 1, 5, len(tokens) - 2]
                    got = session.step(tokens, positions, sequences, wanted)
                    self.assertTrue(same_bits(got[0], alone[3][32]))
                    self.assertTrue(same_bits(got[1], alone[1][25]))
                    self.assertTrue(same_bits(got[2], alone[0][0]))
                    # Decode, one token of each.
                    parts = [(3, 32, texts[3][32:33]), (1, 63, texts[1][63:64]), (2, 6, texts[2][6:7])]
                    got = session.step(*batch(parts))
                    for row, (s, start, _) in zip(got, parts):
                        self.assertTrue(same_bits(row, alone[s][start]), f"decode of sequence {s}")

        self.each_model(check)

    def test_rollback(self):
        def check(package, model):
            first, second = (random_tokens(70, package.info.vocab, seed) for seed in (1, 2))
            with model.session() as session:
                session.step(first)
                for keep in (40, 16, 1, 0):
                    mixed = first[:keep] + second[keep:]
                    got = session.step(second[keep:], range(keep, 70))
                    self.assertTrue(same_bits(got, self.alone(model, mixed)[keep:]), f"rolled back to {keep}")
                    session.step(first)

        self.each_model(check)

    def test_fork(self):
        def check(package, model):
            first, second = (random_tokens(60, package.info.vocab, seed) for seed in (3, 4))
            for length in (1, 16, 41, 60):
                with model.session(sequences=3) as session:
                    session.step(first)
                    session.fork(0, 2, length)
                    mixed = first[:length] + second[:19]
                    got = session.step(second[:19], range(length, length + 19), [2] * 19)
                    self.assertTrue(same_bits(got, self.alone(model, mixed)[length:]), f"fork at {length}")
                    # The first sequence does not see what its fork wrote.
                    longer = first + second[:3]
                    got = session.step(second[:3], range(60, 63), [0] * 3)
                    self.assertTrue(same_bits(got, self.alone(model, longer)[60:]), f"origin of a fork at {length}")

        self.each_model(check)


main()
