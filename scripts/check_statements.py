#!/usr/bin/env python3
"""Checks docs/statements.md: every vector and test that it names exists, and every statement names one or says *not yet*.

usage: check_statements.py [ROOT]     another tree than the repository's
       check_statements.py --self-test
"""
import pathlib
import re
import sys
import tempfile

PAGE = "docs/statements.md"
SPAN = re.compile(r'`([a-z0-9_]+)/([a-z0-9_]+)(?:: "([^"`]*)")?`')


def titles(text):
    """What stands in string literals, with adjacent ones joined, as a compiler does."""
    return re.sub(r'"\s*"', "", text)


def complaints(root):
    found = []
    statements = 0
    for number, line in enumerate((root / PAGE).read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("| ") or cells[0] == "statement":
            continue
        where = f"{PAGE}:{number}: "
        if len(cells) != 2 or not all(cells):
            found.append(where + "a row is a statement and what holds it")
            continue
        statements += 1
        spans = SPAN.findall(cells[1])
        if cells[1].count("`") != 2 * len(spans):
            found.append(where + 'a vector is `folder/name`, a test `folder/name: "title"`')
        if not spans and "*not yet*" not in cells[1]:
            found.append(where + "nothing holds it, and it does not say *not yet*")
        for folder, name, title in spans:
            vector = root / "tests/vectors" / folder / (name + ".json")
            test = root / "tests" / folder / (name + ".cpp")
            if not test.exists() if title else not (vector.exists() or test.exists()):
                found.append(where + f"there is no {folder}/{name}")
            elif title and f'"{title}"' not in titles(test.read_text()):
                found.append(where + f'{folder}/{name} has no test "{title}"')
    if not statements:
        found.append(f"{PAGE} has no statement")
    return found, statements


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in (("tests/vectors/send/success.json", "{}"), ("tests/driver/test_x.cpp", 'TEST_CASE("one\n"\n "two")')):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text.replace('one\n"', 'one "'))
        (root / "docs").mkdir()
        rows = {
            "| a | `send/success` |": 0,
            '| a | `driver/test_x: "one two"` (1) |': 0,
            "| a | *not yet*: nobody |": 0,
            "| a | nobody |": 1,
            "| a | `send/failure` |": 1,
            '| a | `driver/test_x: "three"` |': 1,
            '| a | `send/success: "one"` |': 1,
            "| a | `send` |": 2,
            "| a |": 1,
        }
        for row, expected in rows.items():
            (root / PAGE).write_text("| b | `send/success` |\n" + row + "\n")
            found, _ = complaints(root)
            if len(found) != expected:
                sys.exit(f"check_statements.py: self-test: {row!r} gives {found}, not {expected} complaints")
        (root / PAGE).write_text("nothing\n")
        if len(complaints(root)[0]) != 1:
            sys.exit("check_statements.py: self-test: an empty page passes")
    print("self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and not pathlib.Path(sys.argv[1]).is_dir()):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else pathlib.Path(__file__).resolve().parent.parent
    found, statements = complaints(root)
    for complaint in found:
        print(complaint)
    print(f"{statements} statements" + ("" if found else ", each held or said to be missing"))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
