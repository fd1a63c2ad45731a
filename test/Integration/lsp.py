"""gptc-lsp-server speaks the Language Server Protocol: diagnostics at their place, hover, definition, a clean end."""
import json
import subprocess

from harness import BIN, main, os, unittest

GOOD = """func.func @twice(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = gpt.silu %x : tensor<4x8xf32>
  %z = gpt.rms_norm %y, %g eps 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>
  return %z : tensor<4x8xf32>
}
"""
BAD = GOOD.replace("%g: tensor<8xf32>", "%g: tensor<9xf32>").replace(", tensor<8xf32>\n", ", tensor<9xf32>\n")


class Server:
    """One server process; reading its answers skips what it logs."""

    def __init__(self):
        self.process = subprocess.Popen([os.path.join(BIN, "gptc-lsp-server")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.last = 0

    def close(self):
        self.process.kill()
        self.process.communicate()

    def send(self, method, params, **more):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def message(self):
        length = 0
        while (line := self.process.stdout.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length)) if length else {}

    def request(self, method, params):
        self.last += 1
        self.send(method, params, id=self.last)
        while (answer := self.message()).get("id") != self.last:
            if not answer:
                raise AssertionError(f"{method}: the server ended")
        return answer["result"]

    def diagnostics(self, uri, text, version=1):
        """Opens a text, or changes it with a later version, and waits for what the server finds in it."""
        if version == 1:
            self.send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "mlir", "version": 1, "text": text}})
        else:
            self.send("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]})
        while (found := self.message()).get("method") != "textDocument/publishDiagnostics":
            if not found:
                raise AssertionError("the server ended")
        return found["params"]["diagnostics"]


class Lsp(unittest.TestCase):
    def test_session(self):
        server = Server()
        self.addCleanup(server.close)
        capabilities = server.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
        self.assertTrue(capabilities["hoverProvider"])
        server.send("initialized", {})

        bad, = server.diagnostics("file:///model.mlir", BAD)
        self.assertEqual(bad["severity"], 1)
        self.assertIn("[rms_norm-C2] expected gamma of shape [8], got 'tensor<9xf32>'", bad["message"])
        self.assertEqual(bad["range"]["start"]["line"], 2)
        self.assertEqual(bad["range"]["start"]["character"], BAD.splitlines()[2].index("gpt.rms_norm"))
        unknown, = server.diagnostics("file:///model.mlir", GOOD.replace("gpt.silu", "gpt.sliu"), 2)
        self.assertIn("gpt.sliu", unknown["message"])
        self.assertEqual(unknown["range"]["start"]["line"], 1)
        self.assertEqual(server.diagnostics("file:///model.mlir", GOOD, 3), [])

        place = {"textDocument": {"uri": "file:///model.mlir"}, "position": {"line": 2, "character": 10}}
        self.assertIn("gpt.rms_norm", json.dumps(server.request("textDocument/hover", place)))
        use = {"textDocument": {"uri": "file:///model.mlir"}, "position": {"line": 2, "character": 21}}
        definition, = server.request("textDocument/definition", use)
        self.assertEqual(definition["range"]["start"], {"line": 1, "character": 2})

        self.assertIsNone(server.request("shutdown", None))
        server.send("exit", None)
        self.assertEqual(server.process.wait(timeout=30), 0)


main()
