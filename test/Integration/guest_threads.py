"""Sessions on 8 threads give the bits of the serial run, first calls too; a session in use is GPTC_BUSY (B43)."""
import guest_build
from harness import main, run, unittest


class Threads(unittest.TestCase):
    def test_threads(self):
        run(guest_build.program("guest_threads"), guest_build.weights(), timeout=120)


main()
