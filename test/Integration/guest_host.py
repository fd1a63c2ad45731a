"""The host's own weights, allocator and thread pool give the same bits; nothing is allocated while stepping."""
import guest_build
from harness import main, run, unittest


class Host(unittest.TestCase):
    def test_host(self):
        run(guest_build.program("guest_host"), guest_build.weights(), guest_build.tensors(), timeout=120)


main()
