#!/usr/bin/env python3
"""Hold the figures of the benchmark: `rnic bench` must give what tests/system/bench.json says.

usage: check_bench.py [--write] PROGRAM FIGURES    PROGRAM: rnic, FIGURES: the file

Simulated time is exact, so a figure that differs has a reason. One that is worse fails. One that is better fails too, until
it is written down with --write: otherwise nobody would notice when it is lost again.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# Depends on the machine.
WALL_CLOCK = {"simulated_cycles_per_second"}
LESS_IS_BETTER = ("_cycles", "_ns", "recovery_round_trips_middle", "recovery_round_trips_last")


def measure(program, names):
    """Figures by name, those of `names` or all."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "figures.json"
        only = [word for name in names for word in ("--figure", name)]
        subprocess.run([program, "bench", "--json", path, *only], check=True, stdout=subprocess.DEVNULL)
        figures = json.loads(path.read_text())
    return {name: value for name, value in figures.items() if name not in WALL_CLOCK}


def verdict(name, was, now):
    """What is to be said about a figure, nothing if it is what it was."""
    if was == now:
        return ""
    better = now < was if name.endswith(LESS_IS_BETTER) else now > was
    return f"{name}: {was} -> {now}, " + ("better: write it down with --write" if better else "worse")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the figures down")
    parser.add_argument("program", help="rnic")
    parser.add_argument("figures", type=pathlib.Path, help="the file")
    args = parser.parse_args()
    # Written down is every figure that there is; which, says a whole run.
    held = measure(args.program, []) if args.write else json.loads(args.figures.read_text())
    # Each in a process of its own: what was measured before it leaves its traces, of a percent or two.
    now = {name: value for figure in held for name, value in measure(args.program, [figure]).items()}
    if args.write:
        args.figures.write_text(json.dumps(now, indent=2) + "\n")
        return 0
    problems = [text for name in held if (text := verdict(name, held[name], now[name]))]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
