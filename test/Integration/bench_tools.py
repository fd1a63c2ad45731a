"""tools/bench: what the scripts print, not how fast it is. Nothing is installed: the environment is this python's. Takes 14 seconds."""
import json
import os
import subprocess
import sys

from harness import BIN, HERE, TEMPORARY, checkpoint, main, unittest

TOOLS = os.path.join(HERE, "..", "..", "tools", "bench")


def tool(name, *arguments, status=0):
    environment = dict(os.environ, PIP_NO_INDEX="1", PIP_RETRIES="0")  # pip fails at once
    done = subprocess.run([sys.executable, os.path.join(TOOLS, name), *arguments], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    assert done.returncode == status, done.stdout + done.stderr
    return done


class BenchTools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """An environment that has numpy, but none of the peers."""
        cls.venv, cls.work = os.path.join(TEMPORARY, "venv"), os.path.join(TEMPORARY, "bench")
        os.makedirs(os.path.join(cls.venv, "bin"))
        with open(os.path.join(cls.venv, "bin", "python"), "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        os.chmod(f.name, 0o755)

    def compare(self, *arguments, status=0):
        path = os.path.join(TEMPORARY, "out.json")
        done = tool("compare.py", "--bin", BIN, "--venv", self.venv, "--work", self.work, "--models", "smollm2", "--gguf", checkpoint("llama-gguf-q4-1"),
                    "--vocab", "200", "--prompt", "20", "--decode", "3", "--rounds", "2", "--pause", "0", "--json", path, *arguments, status=status)
        with open(path, encoding="utf-8") as f:
            return done.stdout, json.load(f)[0]

    def test_compare(self):
        text, got = self.compare("--peers", "gptc,llama.cpp", "--settings", "f32,int8,q4_1")
        self.assertEqual([peer["name"] for peer in got["peers"]], ["gptc f32", "gptc int8"])
        for peer in got["peers"]:
            for work in ("prefill", "decode"):
                self.assertEqual(len(peer[work]["tokens_per_s"]), 2)
                self.assertTrue(all(rate > 0 for rate in peer[work]["tokens_per_s"]))
        same, rounded = (peer["difference"]["prefill"] for peer in got["peers"])
        self.assertEqual(same, 0)
        self.assertTrue(0 < rounded < 1, rounded)  # int8's numbers are near, and not the same
        failure, = got["failed"]
        self.assertEqual(failure["name"], "llama.cpp q4_1")
        self.assertRegex(failure["reason"], "not installed: .")
        self.assertIn("llama.cpp q4_1 did not run: not installed", text)
        self.assertRegex(text, r"(?m)^\| gptc f32 \| \d+ \(\d+ \.\. \d+\) \| 1.00 \| \d+ \(\d+ \.\. \d+\) \| 1.00 \| 0.0e\+00, 0.0e\+00 \| gptc [\d.]+; .* \|$")

    def test_peer_that_fails(self):
        """A token that the model does not have: gptc's own message, and its exit status."""
        text, got = self.compare("--peers", "gptc", "--settings", "f32", "--vocab", "1000000", status=1)
        self.assertEqual(got["peers"], [])
        self.assertRegex(got["failed"][0]["reason"], "status 2: .*token")
        self.assertIn("gptc f32 did not run", text)

    def test_unknown_peer(self):
        self.assertIn("'nobody': expected one of gptc, openvino", tool("compare.py", "--peers", "nobody", status=2).stderr)

    def test_fusions(self):
        path = os.path.join(TEMPORARY, "fusions.json")
        text = tool("fusions.py", checkpoint("gpt2-hf"), "--bin", BIN, "--work", self.work, "--vocab", "200", "--prompt", "20", "--decode", "2", "--rounds", "2",
                    "--json", path).stdout
        with open(path, encoding="utf-8") as f:
            rows = {row["without"]: row for row in json.load(f)[0]["variants"]}
        fusions = subprocess.run([os.path.join(BIN, "gptc"), "--list-fusions"], check=True, capture_output=True, text=True).stdout.split()
        self.assertEqual(set(rows), {"all", "-O0", *fusions})
        self.assertTrue(all(len(row["seconds"][work]) == 2 for row in rows.values() for work in ("prefill", "decode")))
        self.assertEqual((rows["all"]["prefill"], rows["all"]["decode"]), (1, 1))
        # Embeddings and their sum, 5 kernels in each of two layers, 5 norms (whose GEMMs are narrow), the wanted rows of two tensors, LM head.
        self.assertEqual(rows["all"]["calls"], 3 + 2 * 5 + 5 + 2 + 1)
        self.assertTrue(all(row["calls"] > rows["all"]["calls"] for name, row in rows.items() if name in ("fuse-qkv", "fuse-epilogue", "fuse-attention", "-O0")), rows)
        self.assertRegex(text, r"(?m)^\| `fuse-norm` \| \d+ \| [\d.]+ \| [\d.]+ \([\d.]+ \.\. [\d.]+\) \|")


if __name__ == "__main__":
    main()
