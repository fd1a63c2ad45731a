"""Compares the numbered constraints of a page with those that tests provoke.

usage: constraints.py docs/Semantics.md test/Dialect/*-invalid.mlir
"""
import re
import sys

page, *tests = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    stated = set(re.findall(r"\b[a-z_]+-C\d+\b", file.read()))
provoked = set()
for path in tests:
    with open(path, encoding="utf-8") as file:
        provoked |= set(re.findall(r"\{\{\[([a-z_]+-C\d+)\]", file.read()))
print("stated, no test:", *sorted(stated - provoked))
print("tested, not stated:", *sorted(provoked - stated))
sys.exit(stated != provoked)
