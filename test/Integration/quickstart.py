"""The real model: SmolLM2 continues text and answers a chat message as the reference does."""
import time
import subprocess

from harness import BIN, SMOLLM2, compiled, golden, imported, main, run, unittest


@unittest.skipUnless(SMOLLM2, "no GPTC_SMOLLM2_GGUF")
class Quickstart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = compiled(imported(SMOLLM2, "smollm2"))

    def test_paris(self):
        self.assertEqual(run("gptc-run", self.package, "--prompt", "The capital of France is", "-n", 2).stdout.rstrip("\n"), " Paris.")

    def test_texts(self):
        for prompt in golden("smollm2")["prompts"]:
            greedy = prompt["greedy"]
            safe = min(greedy["ambiguous_at"] or [len(greedy["tokens"])])
            tokens = run("gptc-run", self.package, "--prompt", prompt["text"], "-n", safe, "--ignore-eos", "--print-tokens").stdout
            self.assertEqual([int(t) for t in tokens.split(",") if t.strip()], greedy["tokens"][:safe])

    def test_chat(self):
        chat = golden("smollm2")["chat"]
        ids = run("gptc-run", self.package, "--chat", chat["messages"][0]["content"], "--tokenize").stdout
        self.assertEqual(ids, ",".join(map(str, chat["ids"])) + "\n")
        same = ["-n", 24, "--ignore-eos", "--print-tokens"]
        by_text = run("gptc-run", self.package, "--chat", chat["messages"][0]["content"], *same).stdout
        self.assertEqual(by_text, run("gptc-run", self.package, "--tokens", ",".join(map(str, chat["ids"])), *same).stdout)

    def test_streams(self):
        """The first bytes come well before the last."""
        command = [f"{BIN}/gptc-run", self.package, "--prompt", "Once upon a time", "-n", "200", "--ignore-eos"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            first = process.stdout.read(1)
            at_first = time.monotonic()
            rest = process.stdout.read()
            at_end = time.monotonic()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(first and len(rest) > 200)
        self.assertGreater(at_end - at_first, 0.1)


main()
