#!/usr/bin/env python3
"""What of rtl/ the tests reach (docs/coverage.md): lines, branches and bits that change, of all models that ran, merged by place in the sources.

usage: coverage.py FOLDER... [--build BUILD] [--explained FILE] [--least PERCENT] [--json FILE] [--lines] [--bits] [--within FILE...]
  FOLDER       with the files MODEL.hits that programs of the preset coverage left (RNIC_COVERAGE)
  --build      where the tables MODEL.points are (build/coverage)
  --explained  lines that nothing need reach, each with the reason (tests/coverage/explained.toml)
  --least      percent of the lines of rtl/ must be reached (98)
  --lines      prints every line that is not reached, with its place; --bits: signals of which a bit never changes
  --within     of these files alone (names below rtl/); nothing is judged
Exit code: 0; 1 less is reached, a line is neither reached nor explained, or an explanation is of a line that there is not; 2 usage.
"""
import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIT = re.compile(r"\[\d+\]$")


def numbers(text):
    """Lines of "12-14,17"."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def tables(build):
    found = {path.stem: path for path in sorted(build.rglob("*.points"))}
    if not found:
        sys.exit(f"coverage.py: there is no table *.points below {build}: build the preset coverage")
    return found


def read(folders, build):
    """Of each point of rtl/, by (kind, file, line, column, comment): lines of it, and whether something reached it."""
    points, files = {}, 0
    for model, table in tables(build).items():
        rows = [line.split("\t") for line in table.read_text().splitlines()]
        hits = bytearray(len(rows))
        for folder in folders:
            path = folder / f"{model}.hits"
            if path.exists():
                files += 1
                data = path.read_bytes()
                if len(data) != len(rows):
                    sys.exit(f"coverage.py: {path} has {len(data)} points, its table {len(rows)}")
                for index, hit in enumerate(data):
                    hits[index] |= hit
        for (kind, file, line, column, _, comment, lines), hit in zip(rows, hits):
            file = os.path.normpath(file)  # of a unit test: by way of the folder of the includes
            if file.startswith("rtl/"):
                key = (kind, file, int(line), int(column), comment)
                known = points.setdefault(key, [lines, False])
                known[1] = known[1] or hit != 0
    if files == 0:
        sys.exit(f"coverage.py: nothing in {', '.join(map(str, folders))} belongs to the tables below {build}")
    return points


class File:
    def __init__(self, name):
        self.name, self.text = name, (ROOT / name).read_text().splitlines()
        self.lines, self.branches, self.bits = {}, [0, 0], {}

    def add(self, kind, line, comment, lines, hit):
        if kind == "v_toggle":
            self.bits[line, comment] = hit
            return
        if kind not in ("v_line", "v_branch"):
            return
        self.branches[0] += hit
        self.branches[1] += 1
        for each in numbers(lines):
            # A line counts as reached when all that stands in it is.
            self.lines[each] = self.lines.get(each, True) and hit

    def missed(self):
        return [line for line, hit in sorted(self.lines.items()) if not hit]

    def still(self):
        """Signals, and how many of their bits never change."""
        signals = collections.Counter(BIT.sub("", comment) for (_, comment), hit in self.bits.items() if not hit)
        return sorted(signals.items())


def explanations(path):
    entries = []
    for number, entry in enumerate(tomllib.loads(path.read_text()).get("explained", []), 1):
        if set(entry) != {"files", "lines", "reason"}:
            sys.exit(f"coverage.py: {path}: entry {number} needs files, lines and reason, nothing else")
        entries.append(entry | {"used": set()})
    return entries


def explain(files, entries):
    """Of each file the lines that are not reached, and that an entry explains. Marks what of the entries stands in a file."""
    explained = {}
    for file in files:
        mine = [entry for entry in entries if any(fnmatch.fnmatchcase(file.name, glob) for glob in entry["files"])]
        for line, hit in file.lines.items():
            text = " ".join(file.text[line - 1].split())
            for entry in mine:
                if text in entry["lines"]:
                    entry["used"].add(text)
                    if not hit:
                        explained.setdefault(file.name, set()).add(line)
    return explained


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=pathlib.Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/coverage")
    parser.add_argument("--explained", type=pathlib.Path, default=ROOT / "tests/coverage/explained.toml")
    parser.add_argument("--least", type=float, default=98.0)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--bits", action="store_true")
    parser.add_argument("--within", nargs="+", default=[])
    arguments = parser.parse_args()
    for folder in arguments.folders:
        if not folder.is_dir():
            parser.error(f"there is no folder {folder}")
    by_name = {}
    for (kind, name, line, _, comment), (lines, hit) in sorted(read(arguments.folders, arguments.build).items()):
        if name not in by_name:
            by_name[name] = File(name)
        by_name[name].add(kind, line, comment, lines, hit)
    files = [file for name, file in sorted(by_name.items()) if not arguments.within or name.removeprefix("rtl/") in arguments.within]
    entries = explanations(arguments.explained)
    explained = explain(files, entries)

    print(f"{'file':44}{'lines':>8}{'reached':>9}{'%':>7}{'explained':>11}{'open':>6}{'branches %':>12}{'bits %':>8}")
    sums, told = collections.Counter(), []
    for file in files:
        row = {"lines": len(file.lines), "reached": len(file.lines) - len(file.missed()), "explained": len(explained.get(file.name, ())),
               "branches": file.branches[1], "branches_reached": file.branches[0],
               "bits": len(file.bits), "bits_changed": sum(file.bits.values())}
        sums.update(row)
        told.append({"file": file.name, **row, "not_reached": [[line, file.text[line - 1].strip()] for line in file.missed()
                                                                if line not in explained.get(file.name, ())],
                     "still": file.still()})
    for row in [*told, {"file": "all", **sums}]:
        left = row["lines"] - row["reached"] - row["explained"]
        print(f"{row['file']:44}{row['lines']:8}{row['reached']:9}{percent(row['reached'], row['lines']):7.1f}{row['explained']:11}{left:6}"
              f"{percent(row['branches_reached'], row['branches']):12.1f}{percent(row['bits_changed'], row['bits']):8.1f}")
    if arguments.lines:
        for row in told:
            for line, text in row["not_reached"]:
                print(f"{row['file']}:{line}: {text}")
    if arguments.bits:
        for row in told:
            for signal, count in row["still"]:
                print(f"{row['file']}: {signal}: {count} bits never change")
    if arguments.json:
        arguments.json.write_text(json.dumps({"lines": dict(sums), "files": told}, indent=1) + "\n")
    if arguments.within:
        return 0

    wrong = []
    reached = percent(sums["reached"], sums["lines"])
    if reached < arguments.least:
        wrong.append(f"{reached:.2f} % of the lines are reached, not {arguments.least:g} %")
    open_lines = sum(len(row["not_reached"]) for row in told)
    if open_lines:
        wrong.append(f"{open_lines} lines are neither reached nor explained (--lines names them): reach them, remove them, or explain them in "
                     f"{arguments.explained}")
    for entry in entries:
        for text in sorted(set(entry["lines"]) - entry["used"]):
            wrong.append(f"{arguments.explained}: '{text}' in {', '.join(entry['files'])} is no line with a statement: take the explanation out")
    for each in wrong:
        print(f"coverage.py: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
