#!/usr/bin/env python3
"""Checks that every settled point that a comment ("decisions 17 to 21") or a vector (document "Settled points") cites stands in
docs/decisions.md, and that the page has each number once, with choice, reason and source.

usage: check_decisions.py [ROOT]     another tree than the repository's
       check_decisions.py --self-test
"""
import json
import pathlib
import re
import sys
import tempfile

PAGE = "docs/decisions.md"
FOLDERS = ("docs", "driver", "model", "rtl", "scripts", "testbench", "tests")
SUFFIXES = {".cmake", ".cpp", ".hpp", ".h", ".md", ".py", ".sh", ".sv", ".svh", ".toml", ".txt"}
CITATION = re.compile(r"\b(?:decisions?|settled points?)\s+(\d+(?:(?:\s*,\s*|\s+(?:and|or|to)\s+)\d+)*)", re.I)


def page_points(text):
    """({number: cells}, complaints) of the table rows of the page."""
    points, complaints = {}, []
    for line in text.splitlines():
        row = re.match(r"\| (\d+) \|", line)
        if not row:
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        number = int(row[1])
        if number in points:
            complaints.append(f"{PAGE}: point {number} stands there twice")
        if len(cells) != 4 or not all(cells):
            complaints.append(f"{PAGE}: point {number} needs choice, reason and source")
        points[number] = cells
    return points, complaints


def numbers(text):
    """The points of "17 to 19, 21 and 23": {17, 18, 19, 21, 23}."""
    found = set()
    for first, last in re.findall(r"(\d+)(?:\s+to\s+(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def without_comments(text):
    return re.sub(r"^\s*//.*$", "", text, flags=re.M)


def vector_clause(path):
    """The clause of a vector about settled points, without what stands in parentheses; else None."""
    try:
        vector = json.loads(without_comments(path.read_text()))
    except json.JSONDecodeError:
        return None  # `rnic verify` says what is wrong with it
    if not isinstance(vector, dict) or vector.get("document") != "Settled points":
        return None
    return re.sub(r"\([^()]*\)", "", vector.get("clause", ""))


def citations(root):
    """(where, number) of all that is cited below root."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or path == root / PAGE:
                continue
            if path.suffix == ".json" and path.is_relative_to(root / "tests/vectors"):
                if path.name == "clauses.json":
                    listed = [entry["clause"] for entry in json.loads(path.read_text()).get("Settled points", [])]
                    yield from ((path, int(number)) for number in listed)
                    continue
                clause = vector_clause(path)
                if clause is None:
                    continue
                if not numbers(clause):
                    yield path, None
                yield from ((path, number) for number in numbers(clause))
            elif path.suffix in SUFFIXES and path.name != pathlib.Path(__file__).name:
                # A citation may go over the end of a line of comment.
                text = re.sub(r"\n\s*(?:///?|#)?\s*", " ", path.read_text(errors="replace"))
                for match in CITATION.finditer(text):
                    yield from ((path, number) for number in numbers(match[1]))


def check(root):
    page = root / PAGE
    if not page.is_file():
        return [f"{PAGE} is missing"], 0
    points, complaints = page_points(page.read_text())
    expected = set(range(1, max(points, default=0) + 1))
    complaints += [f"{PAGE}: point {number} is missing" for number in sorted(expected - points.keys())]
    cited = list(citations(root))
    for path, number in cited:
        if number is None:
            complaints.append(f"{path.relative_to(root)}: cites settled points, but none by number")
        elif number not in points:
            complaints.append(f"{path.relative_to(root)}: cites point {number}, which {PAGE} does not have")
    return complaints, len(cited)


def self_test():
    row = "| {} | choice | reason | source |\n"
    right = {PAGE: "".join(row.format(n) for n in range(1, 6)), "driver/a.hpp": "/// As settled (decisions 1, 3 to 5 and 2).\n",
             "tests/vectors/x/a.json": '{"document": "Settled points", "clause": "2 and 5 (of 9)"}', "tests/vectors/clauses.json": '{"Settled points": [{"clause": "4"}]}'}
    wrong = {"comment": {"driver/a.hpp": "// decisions 6\n"}, "end of a range": {"rtl/a.sv": "// decisions 2 to 6\n"}, "list": {"scripts/mutants.toml": 'rule = "decisions 1, 7"\n'},
             "over a line": {"tests/a.cpp": "// as in decisions\n// 6\n"}, "words": {"docs/a.md": "See settled point 12.\n"},
             "vector": {"tests/vectors/x/a.json": '{"document": "Settled points", "clause": "1, 6"}'}, "no number": {"tests/vectors/x/a.json": '{"document": "Settled points", "clause": "all"}'},
             "clause list": {"tests/vectors/clauses.json": '{"Settled points": [{"clause": "6"}]}'}, "twice": {PAGE: right[PAGE] + row.format(5)},
             "gap": {PAGE: right[PAGE] + row.format(7)}, "no reason": {PAGE: right[PAGE] + "| 6 | choice | | source |\n"}}
    for what, change in {"": {}, **wrong}.items():
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**right, **change}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            complaints, _ = check(root)
            if bool(complaints) != bool(what):
                print(f"self-test: {what or 'right tree'}: {complaints or 'nothing found'}")
                return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    complaints, cited = check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    print("\n".join(complaints) if complaints else f"{cited} citations, each in {PAGE}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
