#!/usr/bin/env python3
"""Checks that each C++ source includes what it uses. The build makes units of several sources, in which one sees what another has included; here each is
compiled alone, as far as its syntax and types. A warning is an error here.

usage: check_alone.py [--jobs N] [FOLDER...]

FOLDER: the sources below it only (testbench/compare). Needs a configured and built build/release. Exit code: 0 all do, 1 one does not, and is printed; 2 usage.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = ROOT / "build/release/compile_commands.json"


def sources(folders):
    """Sources that are compiled as part of a unit: path, and the command of the unit."""
    found = {}
    for entry in json.loads(COMMANDS.read_text()):
        unit = pathlib.Path(entry["directory"], entry["file"])
        if "Unity" not in unit.parts:
            continue
        for name in re.findall(r'#include "([^"]+)"', unit.read_text()):
            path = pathlib.Path(name)
            if any(path.is_relative_to(folder) for folder in folders):
                found[path] = (entry, unit)
    return found


def compile_alone(path, entry, unit):
    """What the compiler says; "" when it is content."""
    words = shlex.split(entry["command"])
    output = words.index("-o")
    del words[output:output + 2]
    words = [str(path) if word == entry["file"] or word == str(unit) else "-fsyntax-only" if word == "-c" else word for word in words]
    done = subprocess.run(words, cwd=entry["directory"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.stderr or (f"exit code {done.returncode}" if done.returncode else "")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("folders", nargs="*")
    given = parser.parse_args()
    if not COMMANDS.exists():
        print(f"{COMMANDS.relative_to(ROOT)} is not there: configure and build the preset release first", file=sys.stderr)
        return 2
    found = sources([ROOT / folder for folder in given.folders] or [ROOT])
    if not found:
        print("no source is there", file=sys.stderr)
        return 2
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for path, said in pool.map(lambda one: (one[0], compile_alone(one[0], *one[1])), sorted(found.items())):
            if said:
                failed += 1
                errors = [line for line in said.splitlines() if "error:" in line]
                print("\n".join(errors[:3] or [f"{path}: {said[:500]}"]))
    print(f"{len(found)} sources, {failed} of them do not compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
