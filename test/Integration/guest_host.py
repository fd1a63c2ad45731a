"""The host's own weights, allocator and thread pool give the same bits; nothing is allocated while stepping."""
import guest_build
from harness import main, run, unittest


class Host(unittest.TestCase):
    def test_host(self):
        for level in (2, 0):  # another runtime path each
            with self.subTest(level=level):
                run(guest_build.program("guest_host", level), guest_build.weights(level), guest_build.tensors(), timeout=120)


main()
