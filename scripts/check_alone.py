#!/usr/bin/env python3
"""Checks that each C++ source, and each header of the driver, includes what it uses. The build makes units of several sources, in which one sees what another
has included, and precompiles headers of tests; here each is compiled by itself, without them, as far as its syntax and types. A warning is an error here.

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
    """What the build compiles with more than its own includes: path, and the command. Headers of the driver come with that of its error table."""
    found = {}
    headers = [path for pattern in ("*.hpp", "*/*.hpp", "*/*.h") for path in (ROOT / "driver").glob(pattern)
               if path.parent.name not in ("linux", "rdma-core")]  # C, of other builds
    for entry in json.loads(COMMANDS.read_text()):
        unit = pathlib.Path(entry["directory"], entry["file"])
        words = shlex.split(entry["command"])
        if "Unity" in unit.parts:
            paths = [pathlib.Path(name) for name in re.findall(r'#include "([^"]+)"', unit.read_text())]
        else:
            paths = [unit] if "-Winvalid-pch" in words and unit.is_relative_to(ROOT / "tests") else []
        if ROOT / "driver/result.cpp" in paths:
            paths += headers
        found.update({path: (entry["directory"], alone(words, entry["file"])) for path in paths
                      if any(path.is_relative_to(folder) for folder in folders)})
    return found


def alone(words, file):
    """The command, without its source, its output and its precompiled header."""
    for option in ("-o", "-include"):
        while option in words:
            del words[words.index(option):words.index(option) + 2]
    return [word for word in words if word not in (file, "-c", "-Winvalid-pch")] + ["-fsyntax-only", "-x", "c++", "-"]


def compile_alone(path, folder, words):
    """What the compiler says; "" when it is content."""
    done = subprocess.run(words, cwd=folder, input=f'#include "{path}"\n', stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.stderr or (f"exit code {done.returncode}" if done.returncode else "")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("folders", nargs="*")
    given = parser.parse_args()
    if not COMMANDS.exists():
        print(f"{COMMANDS.relative_to(ROOT)} is missing: cmake --preset release -DBUILD_TESTING=ON && cmake --build --preset release makes it", file=sys.stderr)
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
    print(f"{len(found)} files, {failed} of them do not compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
