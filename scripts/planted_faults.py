#!/usr/bin/env python3
"""Plants faults into driver and reference NIC, and sees which vectors notice each.

usage: planted_faults.py [--jobs N] [--fault NAME ...] [--vector FOLDER/NAME ...] [--record]   builds once, runs the vectors with each fault
       planted_faults.py --check       fails when a vector or a fault is open, or table and record don't fit sources and vectors (lint)
       planted_faults.py --open        what the record leaves open
       planted_faults.py --self-test   sees the check fail (lint)

tests/planted/faults.toml lists the faults: `name`, `file`, `old`, the text that is replaced (once in the file, or once behind `after`; any white
space stands for any other), and `new`. All of them are built into one copy of the sources, below build/planted, each behind a number that the tool
reads from the environment when it starts (RNIC_PLANTED_FAULT), so there is one build and the checkout is never touched. The vectors run on the
reference NIC (rnic verify --nic model), for which all of them take seconds. A `new` of `true` or `false` replaces a condition, one that ends with a
semicolon a statement, any other a value. `also` is a list of further places of the same fault, each with `file`, `old`, `new` and perhaps `after`: where
two layers guard one rule, the fault is in both.

A fault that more than a quarter of the vectors notice is no evidence: it breaks everything, and says nothing of any one vector. Frame vectors
(docs/vectors.md) are about the RTL alone: for them scripts/mutate.sh --vectors frames --record writes which mutants they notice.

--record writes tests/planted/seen_to_fail.json: for each vector the faults that it noticed, those that the fewest others noticed first; how many
noticed each; and what is open: vectors that never failed, and faults that no vector noticed. With --vector it adds these vectors to what the record
says of the others: for new ones, and for those that have changed.

Exit code: 0; 1 a vector never fails, no vector notices a fault, a fault's text is not found any more, or a run did not end; 2 wrong use.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zlib

from mutate import Problem, place, run, write
from mutate import load as load_mutants

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/planted/faults.toml"
RECORD = ROOT / "tests/planted/seen_to_fail.json"
VECTORS = ROOT / "tests/vectors"
COPY = ROOT / "build/planted/source"
COPIED = ("CMakeLists.txt", "CMakePresets.json", "cmake", "driver", "model", "rtl", "scripts", "testbench")
NO_VECTORS = ("clauses.json", "statements.json")
MOST = 0.25  # of the vectors: a fault that more of them notice is no evidence
KEPT = 3  # faults of a vector that are recorded
SECONDS = 120  # of processor time, for all vectors with one fault; without one they take two
BYTES = 8 << 30  # of memory, likewise
HEADER = """#pragma once
#include <cstdlib>
namespace planted {
inline const unsigned chosen = [] {
  const char* number = std::getenv("RNIC_PLANTED_FAULT");
  return number != nullptr ? static_cast<unsigned>(std::atoi(number)) : 0U;
}();
inline bool on(unsigned number) { return chosen == number; }
}  // namespace planted
"""


def load_faults(table=TABLE, more=()):
    """Faults by name, in the order of the table, each with its number. `more`: what each has beside its place."""
    faults = {}
    with open(table, "rb") as file:
        for entry in tomllib.load(file).get("fault", []):
            missing = {"name", "file", "old", "new", *more} - entry.keys()
            if missing:
                raise Problem(f"{table.name}: fault {entry.get('name', '?')} has no {', '.join(sorted(missing))}")
            if entry["name"] in faults:
                raise Problem(f"{table.name}: two faults are called {entry['name']}")
            for place_too in entry.get("also", []):
                missing = {"file", "old", "new"} - place_too.keys()
                if missing:
                    raise Problem(f"{table.name}: fault {entry['name']}: also: no {', '.join(sorted(missing))}")
            # Of the name, so that no other fault is built anew when the table changes.
            entry["id"] = (zlib.crc32(entry["name"].encode()) & 0x7FFFFFFF) or 1
            faults[entry["name"]] = entry
    if len({entry["id"] for entry in faults.values()}) != len(faults):
        raise Problem(f"{table.name}: two names have one number: rename a fault")
    return faults


def parts(faults):
    """Each place of each fault, as a fault of its own, by file."""
    by_file = {}
    for fault in faults.values():
        for part in (fault, *fault.get("also", [])):
            by_file.setdefault(part["file"], []).append({**part, "name": fault["name"], "id": fault["id"]})
    return by_file


@functools.cache
def all_vectors():
    """Vectors as folder/name: those that the reference NIC runs, and frame vectors."""
    run_by_nic, frames = [], []
    for file in sorted(VECTORS.rglob("*.json")):
        if file.name in NO_VECTORS:
            continue
        is_frame = re.search(r'^\s*"frame":\s*"', file.read_text(), re.MULTILINE)
        (frames if is_frame else run_by_nic).append(str(file.relative_to(VECTORS).with_suffix("")))
    return run_by_nic, frames


def vector_names():
    return all_vectors()[0]


def planted_text(fault, text):
    """What stands for `text`: itself, or what the fault makes of it."""
    new, condition = fault["new"], f"::planted::on({fault['id']}U)"
    if new in ("true", "false"):
        return f"({condition} ? {new} : static_cast<bool>({text}))"
    if new.endswith(";"):
        return f"{{ if ({condition}) {{ {new} }} else {{ {text} }} }}"
    return f"({condition} ? ({new}) : ({text}))"


def planted(source, faults):
    """The source with all its faults, each behind its number."""
    places = {}
    for fault in faults:
        places.setdefault(place(fault, source), []).append(fault)
    end = len(source)
    for (first, last), group in sorted(places.items(), reverse=True):
        if last > end:
            raise Problem(f"{group[0]['name']}: overlaps another fault of {group[0]['file']}")
        text = source[first:last]
        for fault in group:
            text = planted_text(fault, text)
        source = source[:first] + text + source[last:]
        end = first
    # Behind the include guard and in front of everything else.
    return f'#include "driver/planted.hpp"\n{source}'


def check_table(faults):
    """Whether each fault's text is where the table says; a line for each that is not."""
    problems = []
    for name, group in parts(faults).items():
        file = ROOT / name
        if not file.is_file():
            problems += [f"{part['name']}: no file {name}" for part in group]
            continue
        source = file.read_text()
        for part in group:
            try:
                place(part, source)
            except Problem as problem:
                problems.append(str(problem))
    return problems


def copy_sources(faults, copy=COPY):
    by_file = parts(faults)
    kept = {copy / "driver/planted.hpp"}
    for name in COPIED:
        top = ROOT / name
        for file in [top] if top.is_file() else sorted(top.rglob("*")):
            if not file.is_file() or "__pycache__" in file.parts:
                continue
            to, relative = copy / file.relative_to(ROOT), str(file.relative_to(ROOT))
            kept.add(to)
            if relative in by_file:
                write(to, planted(file.read_text(), by_file[relative]))
            elif not to.exists() or to.read_bytes() != file.read_bytes():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)  # with the time of now, for the build
    write(copy / "driver/planted.hpp", HEADER)
    for name in COPIED:
        for file in (copy / name).rglob("*"):
            if file.is_file() and file not in kept:
                file.unlink()


def build(jobs, copy=COPY, options=()):
    """The tool with all faults in it. Its folders lie as in a checkout, so ccache knows what no fault is in."""
    run(["cmake", "--preset", "release", "-DBUILD_TESTING=OFF", *options], copy.parent / "cmake.log", cwd=copy)
    run(["cmake", "--build", "build/release", "--target", "rnic_commands", "rnic_check", "-j", str(jobs)], copy.parent / "make.log", cwd=copy)
    return copy / "build/release/bin/rnic"


def try_fault(program, number, names):
    """Runs the vectors with a fault, until more have failed than may for it to be evidence. Returns the names of those that failed, and how the run
    ended if not by itself."""
    command = ["prlimit", f"--cpu={SECONDS}", f"--as={BYTES}", "stdbuf", "-oL", str(program), "verify", "--nic", "model", "--jobs", "1", "--failures", "",
               *[str(VECTORS / f"{name}.json") for name in names]]
    failed, seen = set(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          env={**os.environ, "RNIC_PLANTED_FAULT": str(number)}) as process:
        for line in process.stdout:
            word, _, rest = line.partition(" ")
            if word not in ("pass", "FAIL"):
                continue
            seen += 1
            if word == "FAIL":
                failed.add(str(pathlib.Path(rest.split(".json")[0]).relative_to(VECTORS)))
                if len(failed) > MOST * len(vector_names()):
                    process.kill()
                    return failed, ""
    return failed, "" if seen == len(names) else f"exit code {process.returncode} after {seen} vectors"


def record(results, names):
    """What the record holds: `vectors` (vector -> faults that it noticed, those first that the fewest others noticed), `faults` (how many noticed
    each; null: more than may), `never_failed`, `unnoticed`."""
    evidence = {name: failed for name, failed in results.items() if len(failed) <= MOST * len(names)}
    noticed = {}
    for vector in names:
        by = sorted((len(failed), fault) for fault, failed in evidence.items() if vector in failed)
        noticed[vector] = [fault for _, fault in by[:KEPT]]
    return {"vectors": {vector: by for vector, by in noticed.items() if by},
            "never_failed": [vector for vector, by in noticed.items() if not by],
            "faults": {fault: len(failed) if fault in evidence else None for fault, failed in results.items()},
            "unnoticed": [fault for fault, failed in results.items() if not failed]}


def added(told, results, vectors):
    """The record with what some vectors, new or changed, have noticed. Their old evidence goes; how many noticed a fault is then that of the last
    whole run, but for those that nobody had noticed."""
    counts = {fault: told["faults"].get(fault, 0) for fault in results}
    for fault, failed in results.items():
        counts[fault] = counts[fault] or (counts[fault] if counts[fault] is None else len(failed))
    noticed = {vector: by for vector, by in told["vectors"].items() if vector not in vectors}
    for vector in vectors:
        by = sorted((counts[fault], fault) for fault, failed in results.items() if vector in failed and counts[fault] is not None)
        if by:
            noticed[vector] = [fault for _, fault in by[:KEPT]]
    known = {vector for vector in told["never_failed"] if vector not in vectors} | set(vectors)
    return {**told, "vectors": noticed, "never_failed": sorted(known - noticed.keys()), "faults": counts,
            "unnoticed": [fault for fault, count in counts.items() if count == 0]}


def load_record():
    return json.loads(RECORD.read_text())


def write_record(told):
    """Frame vectors are recorded by mutate.py."""
    frames = load_record().get("frames", {}) if RECORD.exists() else {}
    RECORD.write_text(json.dumps({**told, "frames": frames}, indent=1, sort_keys=True) + "\n")


def check_record(told, faults, mutants, vectors, frames):
    """Lines about what is open or missing in the record."""
    problems = []
    known = {*told["vectors"], *told["never_failed"]}
    problems += [f"vector {name} is missing: scripts/planted_faults.py --record --vector {name}" for name in vectors if name not in known]
    problems += [f"there is no vector {name}" for name in sorted(known) if name not in vectors]
    problems += [f"vector {name} has never been seen to fail: it wants a fault of {TABLE.name} that it notices" for name in told["never_failed"]]
    problems += [f"vector {name}: no fault" for name, by in told["vectors"].items() if not by]
    problems += [f"{name}: there is no fault {fault}" for name, by in told["vectors"].items() for fault in by if fault not in faults]
    problems += [f"{name}: fault {fault} is no evidence" for name, by in told["vectors"].items() for fault in by if not told["faults"].get(fault, 1)]
    problems += [f"fault {name} has not run" for name in faults if name not in told["faults"]]
    problems += [f"no vector notices fault {name}" for name in told["unnoticed"] if name in faults]
    seen = told.get("frames", {})
    problems += [f"frame vector {name} has never been seen to fail: scripts/mutate.sh --vectors frames --record" for name in frames if not seen.get(name)]
    problems += [f"there is no frame vector {name}" for name in seen if name not in frames]
    problems += [f"{name}: there is no mutant {mutant}" for name, by in seen.items() for mutant in by if mutant not in mutants]
    return [f"{RECORD.name}: {problem}" for problem in problems]


def check(faults):
    return check_table(faults) + check_record(load_record(), faults, load_mutants()[1], *all_vectors())


def self_test():
    """A record with each defect, and whether the check sees it."""
    good = {"vectors": {"a/one": ["f"], "a/two": ["f", "g"]}, "never_failed": [], "faults": {"f": 2, "g": 1}, "unnoticed": [],
            "frames": {"frames/x": ["m"]}}
    parts_of = (dict.fromkeys("fg"), {"m": {}}, ["a/one", "a/two"], ["frames/x"])
    assert not check_record(good, *parts_of)
    defects = {
        "never been seen": {"vectors": {"a/one": ["f"]}, "never_failed": ["a/two"]},
        "vector a/two is missing": {"vectors": {"a/one": ["f"]}},
        "no vector a/three": {"vectors": {**good["vectors"], "a/three": ["f"]}},
        "vector a/one: no fault": {"vectors": {**good["vectors"], "a/one": []}},
        "no fault h": {"vectors": {**good["vectors"], "a/one": ["h"]}},
        "fault g is no evidence": {"faults": {"f": 2, "g": None}},
        "g has not run": {"faults": {"f": 2}},
        "notices fault g": {"unnoticed": ["g"]},
        "frame vector frames/x": {"frames": {}},
        "no frame vector frames/y": {"frames": {**good["frames"], "frames/y": ["m"]}},
        "no mutant n": {"frames": {"frames/x": ["n"]}},
    }
    for line, change in defects.items():
        problems = check_record({**good, **change}, *parts_of)
        assert any(line in problem for problem in problems), (line, problems)
    told = {**good, "vectors": {"a/one": ["f"]}, "never_failed": ["a/two"], "faults": {"f": 1, "g": 0}, "unnoticed": ["g"]}
    assert added(told, {"f": {"a/two"}, "g": {"a/two"}}, ["a/two"]) == {**good, "vectors": {"a/one": ["f"], "a/two": ["f", "g"]},
                                                                      "faults": {"f": 1, "g": 1}}


def print_open():
    told = load_record()
    print(f"{len(told['never_failed'])} of {len(told['never_failed']) + len(told['vectors'])} vectors never failed")
    for name in told["never_failed"]:
        print(f"  {name}")
    print(f"{len(told['unnoticed'])} of {len(told['faults'])} faults were noticed by no vector")
    for name in told["unnoticed"]:
        print(f"  {name}")


def run_faults(args, chosen, names):
    """Builds, and runs the vectors with each fault: failed vectors by fault, and lines about runs that did not end."""
    program = build(args.jobs)
    failed, early = try_fault(program, 0, names)
    if failed or early:
        raise Problem(f"without a fault: {early or ', '.join(sorted(failed))}")
    results, problems = {}, []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for fault, (failed, early) in zip(chosen, pool.map(lambda each: try_fault(program, each["id"], names), chosen)):
            results[fault["name"]] = failed
            print(f"{len(failed):5}  {fault['name']}" + (f"   {early}" if early else ""), flush=True)
            if early:
                problems.append(f"{fault['name']}: the run did not end: {early}")
    return results, problems


def try_all(args, faults):
    names = args.vector or vector_names()
    chosen = [fault for name, fault in faults.items() if not args.fault or name in args.fault]
    results, problems = run_faults(args, chosen, names)
    told = added(load_record(), results, names) if args.vector and args.record else record(results, vector_names())
    for vector in names:
        print(f"{vector}: {', '.join(told['vectors'].get(vector, []))}")
    print(f"{len(results)} faults, {len(told['unnoticed'])} of them noticed by no vector; {sum(name in told['vectors'] for name in names)} of"
          f" {len(names)} vectors have failed under one that at most {MOST:.0%} notice")
    if args.record:
        write_record(told)
    if not args.fault:
        problems += [f"{vector}: never failed" for vector in told["never_failed"] if vector in names]
        problems += [f"{fault}: no vector notices it" for fault in told["unnoticed"] if not args.vector]
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--fault", nargs="+", default=[], metavar="NAME", help="these alone")
    parser.add_argument("--vector", nargs="+", default=[], metavar="FOLDER/NAME", help="these alone")
    parser.add_argument("--jobs", type=int, default=1, help="runs and compilers at a time (default 1)")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    parser.add_argument("--check", action="store_true", help="run nothing; look that table and record are complete, and nothing is open")
    parser.add_argument("--self-test", action="store_true", help="see the check fail")
    parser.add_argument("--open", action="store_true", help="run nothing; print what never failed and what nobody noticed")
    args = parser.parse_args()
    faults = load_faults()
    unknown = [f"fault {name}" for name in args.fault if name not in faults]
    unknown += [f"vector {name}" for name in args.vector if name not in vector_names()]
    if unknown:
        parser.error(f"no {', no '.join(unknown)}")
    if args.jobs < 1 or (args.record and args.fault):
        parser.error("--jobs: at least 1" if args.jobs < 1 else "--record needs all faults")
    if args.self_test:
        self_test()
        return 0
    if args.open:
        print_open()
        return 0
    if args.check:
        problems = check(faults)
    else:
        problems = check_table(faults)
        if not problems:
            COPY.mkdir(parents=True, exist_ok=True)
            copy_sources(faults)
            problems = try_all(args, faults)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        sys.exit(f"planted_faults.py: {problem}")
