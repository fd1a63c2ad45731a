#!/usr/bin/env python3
"""Writes one page a fusion, made from its running tests, into a folder: fusions.py GPTC_OPT OUTPUT_DIR

test/Fusion/NAME.mlir gives the examples: every function (up to three) whose comment starts a line with "Page:", else the first one, as
it stands and as the test's passes leave it. test/Fusion/NAME-missed.mlir gives the reasons not to fire: the remarks of its run, each
with the function that gets it. The text above comes from the head of lib/Fusion/Name.cpp.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
MOST_EXAMPLES = 3


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def passes(test):
    """The pass options of the first RUN line."""
    return re.findall(r"--gpt-[\w-]+", re.search(r"^// RUN: (.*)$", test, re.M)[1])


def functions(test):
    """(comment, text) of every function, in order."""
    found, comment, body = [], [], None
    for line in test.splitlines():
        if body is not None:
            body.append(line)
            if line == "}":
                found.append((comment, "\n".join(body)))
                comment, body = [], None
        elif line.startswith("func.func"):
            body = [line]
        elif line.startswith("//"):
            if not re.match(r"// *([A-Z0-9-]+(-NEXT|-SAME|-DAG|-NOT|-LABEL|-COUNT-\d+|-EMPTY)?):", line) or line.startswith("// Page:"):
                comment.append(line[2:].strip())
        elif not line:
            comment = []
    return found


def globals_used(test, text):
    names = set(re.findall(r"global_load_const @(\w+)", text))
    return [line for line in test.splitlines() if (m := re.match(r"ml_program\.global private @(\w+)", line)) and m[1] in names]


def optimize(tool, options, text):
    done = subprocess.run([tool, "-", *options], input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"gptc-opt {' '.join(options)}:\n{done.stderr}")
    return done


def after(tool, options, text):
    """The function as the passes leave it, without the module around it and with its arguments' names."""
    lines = optimize(tool, options, text).stdout.splitlines()
    inner = [line[2:] for line in lines if line.startswith("  ")]
    start = next(i for i, line in enumerate(inner) if line.startswith("func.func"))
    result = "\n".join(inner[start:])
    for i, name in enumerate(re.findall(r"%(\w+): ", text[text.index("func.func"):text.index("{\n")])):
        result = re.sub(rf"%arg{i}\b", "%" + name, result)
    return result


def head(stem):
    """What the source says before its first #include, without the frame."""
    name = "".join(part.capitalize() if part not in ("kv",) else "KV" for part in stem.split("-"))
    text = read("lib", "Fusion", name + ".cpp").split("#include")[0]
    lines = [line[2:].removeprefix(" ") for line in text.splitlines() if line.startswith("//") and not line.startswith("//===")]
    title = re.match(r"//===- \S+ - (.*?) -*===//", text)[1]
    return title, "\n".join(lines).strip()


def examples(test):
    found = functions(test)
    chosen = [each for each in found if any(line.startswith("Page:") for line in each[0])] or found[:1]
    for comment, text in chosen[:MOST_EXAMPLES]:
        yield " ".join(comment).replace("Page:", "").strip(), text


def reasons(tool, missed):
    """Reason and the functions that get it, in the order of the test."""
    options = passes(missed) + ["--remarks-filter=fusion", "--remark-format=emitRemark", "--split-input-file", "-o", os.devnull]
    found = {}
    for line in optimize(tool, options, missed).stderr.splitlines():
        if match := re.search(r'\[Missed\] (\S+) .*Function=(\S+) \| Remark="(.*)"$', line):
            found.setdefault(match[3], []).append(match[2])
    return found


def page(tool, stem):
    title, text = head(stem)
    test = read("test", "Fusion", stem + ".mlir")
    lines = [f"# {stem}", "", title[0].upper() + title[1:] + ".", "", "```", text, "```", ""]
    for comment, function in examples(test):
        needed = globals_used(test, function)
        module = "\n".join(needed + [function]) + "\n"
        lines += ["## Example", ""] + ([comment, ""] if comment else [])
        lines += ["```mlir", *needed, *([""] if needed else []), function, "```", "", f"becomes, by `gptc-opt FILE {' '.join(passes(test))}`,", "",
                  "```mlir", after(tool, passes(test), module), "```", ""]
    found = reasons(tool, read("test", "Fusion", stem + "-missed.mlir"))
    lines += ["## When it does not fire", "", "What `--remarks=fusion` says of a model; the function is in "
              f"[{stem}-missed.mlir](../../test/Fusion/{stem}-missed.mlir), whose first line runs this pass alone.", "", "| reason | example |", "| --- | --- |"]
    lines += [f"| {reason.replace('|', chr(92) + '|')} | {', '.join('`@' + name + '`' for name in dict.fromkeys(names))} |" for reason, names in found.items()]
    return "\n".join(lines) + "\n", title


def main():
    tool, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    stems = sorted(os.path.basename(path)[:-len("-missed.mlir")] for path in glob.glob(os.path.join(ROOT, "test", "Fusion", "*-missed.mlir")))
    index = ["# Fusions", "", "Made from the tests of test/Fusion by docs/fusions.py; `ninja gptc-doc` renews them.",
             "The examples are for gptc-opt: several take weights as arguments, which gptc refuses, since a kernel reads a global packed.", ""]
    for stem in stems:
        text, title = page(tool, stem)
        with open(os.path.join(out, stem + ".md"), "w", encoding="utf-8") as f:
            f.write(text)
        index.append(f"- [{stem}]({stem}.md): {title}")
    with open(os.path.join(out, "README.md"), "w", encoding="utf-8") as f:
        f.write("\n".join(index) + "\n")


main()
