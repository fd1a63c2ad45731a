"""docs/generate.c, compiled by cc with the package's header and archive and no other library, prints what gptc-run prints."""
import os
import shutil

from harness import DOCS, checkpoint, compiled, golden, imported, main, run, unittest


class EmbedC(unittest.TestCase):
    def test_generate(self):
        cc = shutil.which("cc")
        package = compiled(imported(checkpoint("gpt2-hf"), "gpt2"))
        program = os.path.join(package, "..", "generate")
        run(cc, "-std=c99", "-Wall", "-Wextra", "-Werror", os.path.join(DOCS, "generate.c"), "-I", package,
            os.path.join(package, "libgpt2.a"), "-o", program)
        for prompt in golden("gpt2-hf")["prompts"][:3]:
            ids = [str(i) for i in prompt["ids"]]
            printed = run("gptc-run", package, "--tokens", ",".join(ids), "-n", 12, "--ignore-eos", "--print-tokens").stdout
            self.assertEqual(len(printed.split(",")), 12)
            self.assertEqual(run(os.path.abspath(program), os.path.join(package, "gpt2.weights"), 12, *ids).stdout, printed)
        done = run(os.path.abspath(program), os.path.join(package, "gpt2.weights"), 1, 257, status=1)
        self.assertIn("step: ", done.stderr)

    def test_two_packages(self):
        """Two packages link into one program, from C++ too."""
        packages = {name: compiled(imported(checkpoint(case), name)) for name, case in (("one", "gpt2-hf"), ("two", "llama-hf"))}
        for compiler, source in (("cc", "both.c"), ("c++", "both.cpp")):
            if not shutil.which(compiler):
                continue
            path = os.path.join(packages["one"], "..", source)
            with open(path, "w", encoding="utf-8") as f:
                f.write('#include "one.h"\n#include "two.h"\n'
                        "int main(void) { return one_info()->vocab != 257 || two_info()->vocab != 275; }\n")
            program = os.path.abspath(os.path.join(packages["one"], "..", source + ".out"))
            run(shutil.which(compiler), "-Wall", "-Wextra", "-Werror", path, "-I", packages["one"], "-I", packages["two"],
                os.path.join(packages["one"], "libone.a"), os.path.join(packages["two"], "libtwo.a"), "-o", program)
            run(program)


main()
