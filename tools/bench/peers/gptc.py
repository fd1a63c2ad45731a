"""gptc: a package of the model, through its C interface."""
import os
import subprocess
import sys

REQUIREMENTS = []
SETTINGS = {"gpt2": ["f32", "bf16", "int8"], "smollm2": ["f32", "bf16", "int8"]}


def build(request):
    """The package's folder; compiled again if the model or the compiler is another."""
    folder, tool = os.path.join(request["work"], f"gptc-{request['kind']}-{request['setting']}"), lambda name: os.path.join(request["bin"], name)
    files = [tool("gptc"), request["model"]]
    made_of, note = "\n".join(f"{path} {os.stat(path).st_mtime_ns}" for path in files), os.path.join(folder, "made-of.txt")
    if not os.path.exists(note) or open(note, encoding="utf-8").read() != made_of:
        text = os.path.join(request["work"], f"{request['kind']}-{request['setting']}.mlir")
        subprocess.run([tool("gptc-import"), request["model"], "--name", request["kind"], "-o", text], check=True)
        subprocess.run([tool("gptc"), text, "-o", folder, f"--precision={request['setting']}"], check=True)
        with open(note, "w", encoding="utf-8") as f:
            f.write(made_of)
    return folder


def Peer(request):
    from worker import Stepper
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "test", "Integration"))
    from package import Package

    class Gptc(Stepper):
        def __init__(self):
            self.package = Package(build(request))
            self.model = self.package.open()
            self.session = self.model.session(tokens=request["prompt"], sequences=1, rows=1, threads=request["threads"])
            info = self.package.info
            self.version = subprocess.run([os.path.join(request["bin"], "gptc"), "--version"], capture_output=True, text=True).stdout.split("\n")[0]
            self.settings = f"{info.target.decode()}, {info.precision.decode()}, f32 KV cache"

        def step(self, tokens, position):
            return self.session.step(tokens, range(position, position + len(tokens)), rows=[len(tokens) - 1])[0]

    return Gptc()
