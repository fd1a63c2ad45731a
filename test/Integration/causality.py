"""Changing tokens after position t leaves the logits up to t bit-identical, fused and at -O0."""
from harness import compiled_case, main, random_tokens, same_bits, unittest
from package import Package

LENGTH = 70


class Causality(unittest.TestCase):
    def check(self, case, level):
        package = Package(compiled_case(case, level))
        vocab = package.info.vocab
        tokens, others = random_tokens(LENGTH, vocab, 5), random_tokens(LENGTH, vocab, 6)
        others = [(o + 1) % vocab if o == t else o for t, o in zip(tokens, others)]
        with package.open() as model, model.session(threads=2) as session:
            logits = session.step(tokens)
            for t in range(LENGTH - 1):
                for changed in (tokens[:t + 1] + others[t + 1:], tokens[:t + 1] + others[t + 1:t + 2] + tokens[t + 2:]):
                    got = session.step(changed)
                    self.assertTrue(same_bits(got[:t + 1], logits[:t + 1]), f"a token after {t} changed a logit up to it")
                    self.assertFalse(same_bits(got[t + 1], logits[t + 1]), f"token {t + 1} has no effect on its own logits")

    def test_gpt2_fused(self):
        self.check("gpt2-hf", 2)

    def test_gpt2_unfused(self):
        self.check("gpt2-hf", 0)

    def test_llama_fused(self):
        self.check("llama-hf", 2)

    def test_llama_unfused(self):
        self.check("llama-hf", 0)


main()
