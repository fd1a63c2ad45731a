"""The virtual environment in which peers are installed."""
import os
import subprocess
import sys


def variables(more=()):
    """os.environ without what would change OpenBLAS's choice of kernels."""
    return {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")} | dict(more)


def reason(text):
    """The first line that speaks of an error, else the last one."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message")


def make(folder):
    """Its python; made if there is none."""
    python = os.path.join(os.path.abspath(folder), "bin", "python")
    if not os.path.exists(python):
        done = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: {folder}: expected a virtual environment (Debian: python3-venv), got: {reason(done.stdout + done.stderr)}")
    return python


HAVE = "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"


def install(python, names, more=()):
    """None, or why the packages could not be installed from PyPI. `more`: variables for pip."""
    listed = subprocess.run([python, "-c", HAVE], check=True, capture_output=True, text=True).stdout
    have = {name.lower().replace("_", "-") for name in listed.split()}
    missing = [name for name in names if name not in have]
    if not missing:
        return None
    print("installing", ", ".join(missing), file=sys.stderr, flush=True)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", *missing], capture_output=True, text=True, env=variables(more))
    return None if done.returncode == 0 else "not installed: " + reason(done.stderr)
