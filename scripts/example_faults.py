#!/usr/bin/env python3
"""Plants faults into driver and RTL, and sees that the examples notice each.

usage: example_faults.py [--jobs N] [NAME ...]   builds the tool once with all faults in it, and runs the tests of the examples with each fault
       example_faults.py --list                  prints the faults; fails when one's text is not found any more, or an example has none (lint)

tests/planted/example_faults.toml lists them: `name`, `rule`: what is no longer so, `file`, `old`, `new`, perhaps `after`, as in faults.toml beside it
(scripts/planted_faults.py), and `examples`: programs of examples/ of which each must notice it. Files of rtl/ may have faults too: `new` stands for an
expression. The test of an example is what test_lockstep (nd2/lockstep) has under its name, from build/release or the folder of --bin; it runs with the
tool of build/example_faults, which reads from the environment which fault is in it (RNIC_PLANTED_FAULT).

Exit code: 0 all noticed; 1 one is not, its text is not found any more, or an example fails without a fault; 2 wrong use.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

from mutate import CHOICE, PACKAGE, Problem, mutated, write
from planted_faults import ROOT, build, check_table, copy_sources, load_faults

TABLE = ROOT / "tests/planted/example_faults.toml"
WORK = ROOT / "build/example_faults"
COPY = WORK / "source"
RTL = WORK / "rtl"
SECONDS = 120  # of processor time, for one run of the tool


def examples():
    """Programs of examples/, by their main functions."""
    mains = re.compile(r"^int (main|NdkConsumerMain)\(", re.MULTILINE)
    return sorted(file.stem for file in (ROOT / "examples").glob("*.cpp") if mains.search(file.read_text()))


def load():
    faults = load_faults(TABLE, ("rule", "examples"))
    problems = check_table(faults)
    known = examples()
    problems += [f"{name}: there is no example {each}" for name, fault in faults.items() for each in fault["examples"] if each not in known]
    problems += [f"{TABLE.name}: no fault for {each}" for each in known if not any(each in fault["examples"] for fault in faults.values())]
    return faults, problems


def copy_rtl(faults):
    """The RTL with its faults, each behind its number."""
    for file in sorted((ROOT / "rtl").rglob("*.s*v*")):
        own = [fault for fault in faults if ROOT / fault["file"] == file]
        source = file.read_text()
        write(RTL / file.relative_to(ROOT / "rtl"), mutated(source, own) if own else source)
    write(WORK / "mutate_pkg.sv", PACKAGE)
    write(WORK / "mutate_choice.cpp", CHOICE.replace("RNIC_MUTANT", "RNIC_PLANTED_FAULT"))


def build_tool(faults, jobs):
    COPY.mkdir(parents=True, exist_ok=True)
    copy_rtl([fault for fault in faults.values() if fault["file"].startswith("rtl/")])
    copy_sources({name: fault for name, fault in faults.items() if not fault["file"].startswith("rtl/")}, COPY)
    return build(jobs, COPY, [f"-DRNIC_RTL_COPY={RTL}", f"-DRNIC_RTL_COPY_SOURCES={WORK / 'mutate_pkg.sv'};{WORK / 'mutate_choice.cpp'}",
                              "-DRNIC_RTL_COPY_MODELS=^rnic_top_model$"])


def passes(tests, tool, example, number):
    """Whether the test of an example passes with a fault; its output is in the folder of the build."""
    log = WORK / f"{example}.{number}.log"
    environment = {**os.environ, "RNIC_TOOL": str(tool), "RNIC_PLANTED_FAULT": str(number), "PATH": f"{tests.parent}:{os.environ['PATH']}"}
    with open(log, "w") as out:
        done = subprocess.run(["prlimit", f"--cpu={SECONDS}", str(tests), f"[{example}]", "--abort"], stdout=out, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, env=environment, check=False)
    if "No test" in log.read_text():
        raise Problem(f"{tests.name} has no test [{example}]")
    return done.returncode == 0


def try_all(args, faults, chosen):
    tests = args.bin.absolute() / "test_lockstep"
    if not tests.exists():
        raise Problem(f"{tests} is missing: cmake --preset release -DBUILD_TESTING=ON && cmake --build --preset release --target test_lockstep builds it")
    tool = build_tool(faults, args.jobs)
    wanted = sorted({each for fault in chosen for each in fault["examples"]})
    if failed := [each for each in wanted if not passes(tests, tool, each, 0)]:
        raise Problem(f"without a fault: {', '.join(failed)}: logs in {WORK}")
    problems = []
    for fault in chosen:
        for each in fault["examples"]:
            noticed = not passes(tests, tool, each, fault["id"])
            print(f"{each:14} {'notices' if noticed else 'PASSES WITH'}  {fault['name']}", flush=True)
            if not noticed:
                problems.append(f"{each} does not notice: {fault['rule']}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="*", help="these faults alone")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="where test_lockstep and the examples are")
    parser.add_argument("--jobs", type=int, default=1, help="compilers at a time (default 1)")
    args = parser.parse_args()
    faults, problems = load()
    unknown = [name for name in args.name if name not in faults]
    if unknown or args.jobs < 1:
        parser.error(f"no fault {', '.join(unknown)}" if unknown else "--jobs: at least 1")
    chosen = [fault for name, fault in faults.items() if not args.name or name in args.name]
    if args.list:
        for fault in chosen:
            print(f"{fault['name']:40} {', '.join(fault['examples']):50} {fault['rule']}")
    elif not problems:
        problems = try_all(args, faults, chosen)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        sys.exit(f"example_faults.py: {problem}")
