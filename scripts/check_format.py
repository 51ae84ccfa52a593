#!/usr/bin/env python3
"""Checks how the sources are written: C++ as clang-format does it (.clang-format), RTL within 100 columns and 300 lines a module, no tabs, no blanks at line
ends.

usage: check_format.py [--fix]

--fix lets clang-format rewrite the C++, and removes blanks at line ends. Exit code: 0 all is well, 1 something is not, and is printed, 77 clang-format is missing.
"""
import argparse
import pathlib
import subprocess
import sys

import needed

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("driver", "examples", "model", "testbench", "tests")
RTL_COLUMNS = 100
RTL_LINES = 300


def sources(folders, suffixes):
    """Files that people write, below the folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and "generated" not in path.parts:
                yield path


def check_cpp(fix):
    """Files that clang-format would write differently; with fix it does."""
    needed.require("clang-format", "clang-format")
    files = [str(path) for path in sources(FOLDERS, {".cpp", ".hpp"})]
    if fix:
        subprocess.run(["clang-format", "-i", *files], check=True)
        return []
    run = subprocess.run(["clang-format", "--dry-run", *files], capture_output=True, text=True, check=True)
    places = [line for line in run.stderr.splitlines() if "clang-format-violations" in line]
    return [f"{place.split(': ')[0]}: not as clang-format writes it" for place in places]


def check_rtl(fix):
    """Lines of the RTL that are too long, or have a tab or blanks where none belong."""
    problems = []
    for path in sources(("rtl", "tests"), {".sv", ".svh"}):
        text = path.read_text()
        if fix:
            path.write_text("".join(line.rstrip() + "\n" for line in text.splitlines()))
            text = path.read_text()
        lines = len(text.splitlines())
        if lines > RTL_LINES and path.suffix == ".sv":
            problems.append(f"{path}: {lines} lines, at most {RTL_LINES}: look for the two modules in it")
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{path}:{number}"
            if len(line) > RTL_COLUMNS:
                problems.append(f"{place}: {len(line)} columns, at most {RTL_COLUMNS}")
            if "\t" in line or line != line.rstrip():
                problems.append(f"{place}: a tab, or blanks at the end of the line")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="rewrite what a machine can")
    fix = parser.parse_args().fix
    problems = check_cpp(fix) + check_rtl(fix)
    for problem in problems:
        print(problem.replace(f"{ROOT}/", ""))
    if problems:
        print(f"check_format.py: {len(problems)} places; --fix puts right what a machine can", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
