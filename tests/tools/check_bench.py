#!/usr/bin/env python3
"""Hold the figures of the benchmark: `rnic bench` must give what tests/system/bench.json says.

usage: check_bench.py [--write] PROGRAM FIGURES    PROGRAM: rnic, FIGURES: the file

Simulated time is exact, so a figure that differs has a reason. One that is worse fails. One that is better fails too, until
it is written down with --write: otherwise nobody would notice when it is lost again. A figure that is measured and not in
the file fails like one that is in the file and not measured.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# Depends on the machine.
WALL_CLOCK = {"simulated_cycles_per_second", "simulated_cycles_per_second_one_thread", "wall_us_per_small_write", "wall_mb_per_s"}
LESS_IS_BETTER = ("_cycles", "_ns", "recovery_round_trips_middle", "recovery_round_trips_last")


def names(program):
    """Figures that there are, but for those that depend on the machine."""
    run = subprocess.run([program, "bench", "--list"], check=True, capture_output=True, text=True)
    return [name for name in run.stdout.split() if name not in WALL_CLOCK]


def measure(program, name):
    """One figure, in a process of its own: what was measured before it leaves its traces, of a percent or two."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "figures.json"
        subprocess.run([program, "bench", "--json", path, "--figure", name], check=True, stdout=subprocess.DEVNULL)
        return json.loads(path.read_text())["results"][name]


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
    now = {name: measure(args.program, name) for name in names(args.program)}
    if args.write:
        args.figures.write_text(json.dumps(now, indent=2) + "\n")
        return 0
    held = json.loads(args.figures.read_text())
    problems = [f"{name}: {value}, not written down yet: do so with --write" for name, value in now.items() if name not in held]
    problems += [f"{name}: there is no such figure any more" for name in held if name not in now]
    problems += [text for name in held if name in now and (text := verdict(name, held[name], now[name]))]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
