#!/usr/bin/env python3
"""Say which modules of the RTL the simulator's time goes into.

usage: simulator_profile.py TOOL COMMAND [OPTIONS]
  TOOL COMMAND [OPTIONS]   what to run, such as: build/profile/bin/rnic soak --cycles 60000 --threads 1

TOOL must have functions that are named by the module they come from:

  cmake -S . -B build/profile -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DRNIC_PROFILE=ON \\
        -DCMAKE_CXX_FLAGS="-fno-inline-functions-called-once -fno-inline-small-functions"
  ninja -C build/profile rnic

Such a tool is several times slower, which makes small functions look dearer than they are. Needs perf (Debian: linux-perf).
"""
import collections
import re
import subprocess
import sys
import tempfile

import needed

SYMBOL = re.compile(r"^\s*([\d.]+)%\s+\[.\]\s+(.*)$")
OF_MODULE = re.compile(r"(nba|ico|act|stl)_\w*__PROF__(\w+?)__l\d+")
PHASES = {"nba": "what follows an edge", "ico": "what follows inputs", "act": "clocks", "stl": "the beginning", "": "all the rest"}
LINES = 40


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    needed.require("perf", "linux-perf", switch=None)
    with tempfile.NamedTemporaryFile(suffix=".data") as data:
        if subprocess.run(["perf", "record", "-q", "-F", "2000", "-o", data.name, *sys.argv[1:]], check=False).returncode:
            sys.exit("simulator_profile.py: the run failed")
        report = subprocess.run(["perf", "report", "-i", data.name, "--no-children", "-F", "overhead,symbol", "--stdio", "-g", "none"],
                                check=True, capture_output=True, text=True).stdout
    modules, phases = collections.Counter(), collections.Counter()
    for line in report.splitlines():
        if found := SYMBOL.match(line):
            share, of = float(found[1]), OF_MODULE.search(found[2])
            phases[of[1] if of else ""] += share
            if of:
                modules[of[2]] += share
    if not modules:
        sys.exit(f"simulator_profile.py: no function of {sys.argv[1]} is named by a module; build it with -DRNIC_PROFILE=ON (see --help)")
    for phase, share in phases.most_common():
        print(f"{share:6.1f} %  {PHASES[phase]}")
    print()
    for module, share in modules.most_common(LINES):
        print(f"{share:6.2f} %  {module}")


main()
