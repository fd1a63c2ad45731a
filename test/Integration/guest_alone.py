"""MXCSR, locale, signal handlers, environment, stdout and stderr are after every call what they were before."""
import os
import subprocess

import guest_build
import guest_locale
from harness import TEMPORARY, main, unittest


class Alone(unittest.TestCase):
    def test_alone(self):
        environment = guest_locale.environment()
        if environment is None:
            self.skipTest("no locale with decimal commas: expected localedef with its sources, or de_DE.utf8")
        program = guest_build.program("guest_alone")
        del environment["LC_ALL"]  # the program sets it, half way
        out, error = (os.path.join(TEMPORARY, name) for name in ("stdout", "stderr"))
        with open(out, "wb") as o, open(error, "wb") as e:
            status = subprocess.run([program, guest_build.weights(), guest_build.tensors(), guest_locale.NAME], stdout=o, stderr=e,
                                    stdin=subprocess.DEVNULL, env=environment, timeout=120).returncode
        with open(error, encoding="utf-8") as e:
            self.assertEqual((status, e.read()), (0, ""))
        self.assertEqual(os.path.getsize(out), 0)


main()
