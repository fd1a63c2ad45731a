"""Writes NfcTables.inc from Python's unicodedata: python3 nfc_tables.py > NfcTables.inc"""
import sys
import textwrap
import unicodedata

characters = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]

ranges = []
for c in characters:
    if combining := unicodedata.combining(chr(c)):
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == combining:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, combining])

decompositions = []
for c in characters:
    parts = unicodedata.decomposition(chr(c)).split()
    if parts and not parts[0].startswith("<"):
        parts = [int(part, 16) for part in parts] + [0]
        composes = parts[1] != 0 and unicodedata.normalize("NFC", chr(parts[0]) + chr(parts[1])) == chr(c)
        decompositions.append((c, parts[0], parts[1], composes))

parts_of = {c: (first, second) for c, first, second, _ in decompositions}


def depth(c):
    return 1 + max(map(depth, parts_of[c])) if c in parts_of else 0


assert max(map(depth, parts_of)) <= 4
pairs = sorted((first, second, i) for i, (_, first, second, composes) in enumerate(decompositions) if composes)


def table(declaration, entries):
    print(f"{declaration} = {{")
    print(textwrap.fill(", ".join(entries), 79, initial_indent="    ", subsequent_indent="    ", break_long_words=False))
    print("};")


print(f"// Written by nfc_tables.py from Unicode {unicodedata.unidata_version}; not to be edited.")
table("static constexpr ClassRange classRanges[]", ("{%#x,%#x,%d}" % tuple(r) for r in ranges))
table("static constexpr Decomposition decompositions[]", ("{%#x,%#x,%#x,%d}" % d for d in decompositions))
table("static constexpr uint16_t compositions[]", (str(i) for _, _, i in pairs))
