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

    def diagnostics(self, uri, text, version=1, changes=None):
        """Opens a text, or changes it (all or parts of it) with a later version, and waits for what the server finds in it."""
        if version == 1:
            self.send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "mlir", "version": 1, "text": text}})
        else:
            self.send("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes or [{"text": text}]})
        while (found := self.message()).get("method") != "textDocument/publishDiagnostics":
            if not found:
                raise AssertionError("the server ended")
        return found["params"]["diagnostics"]


class Lsp(unittest.TestCase):
    def start(self):
        server = Server()
        self.addCleanup(server.close)
        capabilities = server.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
        self.assertTrue(capabilities["hoverProvider"])
        server.send("initialized", {})
        return server

    def stop(self, server):
        self.assertIsNone(server.request("shutdown", None))
        server.send("exit", None)
        self.assertEqual(server.process.wait(timeout=30), 0)

    def test_session(self):
        server = self.start()
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

        # Part of a line changes, counted in UTF-16 and at the end of the text.
        change = {"range": {"start": {"line": 1, "character": 11}, "end": {"line": 1, "character": 15}}, "text": "sliu"}
        unknown, = server.diagnostics("file:///model.mlir", None, 4, [change])
        self.assertIn("gpt.sliu", unknown["message"])
        back = {**change, "text": "silu"}
        end = {"range": {"start": {"line": 5, "character": 0}, "end": {"line": 5, "character": 0}}, "text": "// \U0001d11e"}
        self.assertEqual(server.diagnostics("file:///model.mlir", None, 5, [back, end]), [])
        self.stop(server)

    def test_nested(self):
        """100,000 brackets in a text that is opened, changed, grown bracket by bracket, or in a message: an error or silence, no crash."""
        server = self.start()
        deep = GOOD + "\n  " + "module {" * 100000
        for uri, text in (("file:///deep.mlir", deep), ("file:///types.mlir", "!a = " + "tuple<" * 100000), ("file:///list.mlir", "[" * 100000)):
            found, = server.diagnostics(uri, text)
            self.assertIn("expected_brackets_nested_at_most_256_deep", found["message"])
        found, = server.diagnostics("file:///deep.mlir", deep, 2)
        self.assertEqual(found["range"]["start"], {"line": 6, "character": 2 + 8 * 256 + 7})
        self.assertEqual(server.diagnostics("file:///deep.mlir", GOOD, 3), [])
        # Each change small, the whole deep.
        for version in range(4, 8):
            place = {"line": 0, "character": 0}
            found = server.diagnostics("file:///deep.mlir", None, version, [{"range": {"start": place, "end": place}, "text": "(" * 25000}])
            self.assertEqual(len(found), 1)
        self.assertEqual(server.diagnostics("file:///deep.mlir", GOOD, 8), [])
        body = b'{"jsonrpc": "2.0", "method": "textDocument/hover", "params": ' + b"[" * 100000 + b"]" * 100000 + b"}"
        server.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.assertEqual(server.diagnostics("file:///deep.mlir", GOOD, 9), [])
        self.stop(server)

    def test_end_of_input(self):
        server = self.start()
        server.process.stdin.close()
        self.assertIsNotNone(server.process.wait(timeout=30))
        server.process.stdin = None


main()
