"""A locale with decimal commas: the system's, or one made for the test."""
import os
import shutil
import subprocess
import tempfile

from harness import TEMPORARY

NAME = "de_DE.UTF-8"


def environment():
    """Variables that choose the locale, or None where there is none."""
    make = shutil.which("localedef")
    folder = tempfile.mkdtemp(dir=TEMPORARY)
    if make and os.path.exists("/usr/share/i18n/locales/de_DE"):
        subprocess.run([make, "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, NAME)], capture_output=True, check=True)
        return {**os.environ, "LOCPATH": folder, "LC_ALL": NAME}
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    return {**os.environ, "LC_ALL": NAME} if "de_DE.utf8" in known else None
