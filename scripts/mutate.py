#!/usr/bin/env python3
"""Mutation test of the RTL: takes each check of scripts/mutants.toml out in turn and runs the unit tests that should notice.

A mutant replaces one expression of the RTL by another. All mutants are built into one copy of the sources, below build/mutate, each behind a
condition on a number that the test program reads from the environment when it starts (RNIC_MUTANT); so a unit test is built once, not once a
mutant, and the checkout is never touched. With no mutant chosen every test must pass; with one chosen, one of its tests must fail.

--vectors puts the folders of tests/vectors to the proof instead: the whole NIC is built once with all mutants in it, and the vectors of each folder
are run against mutants of the blocks that [vectors] of the list names for it, until one of them fails. A folder that kills none is a defect.
With --record each vector of a folder of frame vectors runs with every mutant of its blocks, and tests/planted/seen_to_fail.json is told which ones
it has noticed: they are about the RTL alone, and the faults of scripts/planted_faults.py don't reach them. A vector that notices none is a defect.

Exit code: 0 all killed, or with --vectors one by each folder; 1 one survives, its text is not found any more, or something does not build or fails without a mutation; 2 wrong use.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts/mutants.toml"
RECORD = ROOT / "tests/planted/seen_to_fail.json"
RECORDED = 3  # mutants of a frame vector
WORK = ROOT / "build/mutate"
RTL = WORK / "rtl"
# The number of the chosen mutant, for the whole RTL; the copies of the sources refer to it.
PACKAGE = """package mutate_pkg;
  import "DPI-C" function int rnic_mutant();
  int chosen = rnic_mutant();
endpackage
"""
CHOICE = """#include <cstdlib>
extern "C" int rnic_mutant() {
  const char* number = std::getenv("RNIC_MUTANT");
  return number != nullptr ? std::atoi(number) : 0;
}
"""


class Problem(Exception):
    """Something that the user has to put right; the text says what."""


def read_list(path, tests):
    """The whole of a list of mutants, and its mutants by name. `tests`: the key that says which test, or tests, of the list should notice a mutant."""
    with open(path, "rb") as file:
        data = tomllib.load(file)
    mutants = {}
    for entry in data["mutant"]:
        missing = {"name", "rule", "file", "old", "new", tests} - entry.keys()
        if missing:
            raise Problem(f"{path.name}: mutant {entry.get('name', '?')} has no {', '.join(sorted(missing))}")
        if entry["name"] in mutants:
            raise Problem(f"{path.name}: two mutants are called {entry['name']}")
        for test in [entry[tests]] if isinstance(entry[tests], str) else entry[tests]:
            if test not in data["test"]:
                raise Problem(f"{path.name}: mutant {entry['name']}: no test {test}")
        mutants[entry["name"]] = entry
    return data, mutants


def load():
    """Tests, mutants and folders of vectors of the list, by name."""
    data, mutants = read_list(LIST, "tests")
    for entry in mutants.values():
        entry["id"] = (zlib.crc32(entry["name"].encode()) & 0x7FFFFFFF) or 1
    if len({entry["id"] for entry in mutants.values()}) != len(mutants):
        raise Problem(f"{LIST.name}: two names have one number: rename a mutant")
    return data["test"], mutants, data["vectors"]


def pattern(text):
    """A regular expression for the text; any white space stands for any other."""
    return r"\s+".join(re.escape(word) for word in text.split())


def place(mutant, source):
    """First and last position of the expression that the mutant replaces. It follows `after`, if there is one, and occurs once."""
    head = pattern(mutant.get("after", ""))
    found = list(re.finditer(f"{head}\\s*({pattern(mutant['old'])})", source))
    if len(found) != 1:
        times = "not found" if not found else f"found {len(found)} times"
        raise Problem(f"{mutant['name']}: text {times} in {mutant['file']}: {mutant.get('after', '')} {mutant['old']}")
    return found[0].span(1)


def behind_number(mutant, _, text):
    """What the expression `text` becomes so that it is the mutant's when its number is chosen."""
    return f"((mutate_pkg::chosen == 32'd{mutant['id']}) ? ({mutant['new']}) : ({text}))"


def mutated(source, mutants, spliced=behind_number):
    """The source with all its mutants. `spliced` gives for a mutant, the expression that it replaces and what other mutants have made of that what is
    to stand there."""
    places = {}
    for mutant in mutants:
        places.setdefault(place(mutant, source), []).append(mutant)
    end = len(source)
    for (first, last), group in sorted(places.items(), reverse=True):
        if last > end:
            raise Problem(f"{group[0]['name']}: overlaps another mutant of {group[0]['file']}: use the same text for both")
        text = source[first:last]
        for mutant in group:
            text = spliced(mutant, source[first:last], text)
        source = source[:first] + text + source[last:]
        end = first
    return source


def write(path, text):
    """Writes a file unless it holds the text already, so that nothing is built again for nothing."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def copy_sources(mutants, folder=RTL, spliced=behind_number):
    """The RTL with the mutants, below the build folder. Returns what is wrong with the list, a line a mutant. `spliced` as of mutated."""
    problems = []
    by_file = {}
    for mutant in mutants.values():
        if not (ROOT / mutant["file"]).is_file():
            problems.append(f"{mutant['name']}: no file {mutant['file']}")
        else:
            by_file.setdefault(mutant["file"], []).append(mutant)
    for file in sorted((ROOT / "rtl").rglob("*.s*v*")):
        source = file.read_text()
        good = []
        for mutant in by_file.get(str(file.relative_to(ROOT)), []):
            try:
                place(mutant, source)
                good.append(mutant)
            except Problem as problem:
                problems.append(str(problem))
        write(folder / file.relative_to(ROOT / "rtl"), mutated(source, good, spliced) if good else source)
    kept = {folder / file.relative_to(ROOT / "rtl") for file in (ROOT / "rtl").rglob("*.s*v*")}
    for file in folder.rglob("*.s*v*"):
        if file not in kept:
            file.unlink()
    write(WORK / "mutate_pkg.sv", PACKAGE)
    write(WORK / "mutate_choice.cpp", CHOICE)
    return problems


def run(command, log, **options):
    """Runs a command with its output in a file; a Problem with the end of it when the command fails."""
    if shutil.which(command[0]) is None:
        raise Problem(f"{command[0]} is missing: scripts/setup.sh installs what the project is built with")
    with open(log, "w") as out:
        result = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, **options)
    if result.returncode:
        raise Problem(f"{' '.join(str(word) for word in command[:3])} ... failed, log in {log}:\n{log.read_text()[-3000:]}")


def check_syntax():
    """Verilator must accept the RTL with all mutants in it."""
    folders = [argument for folder in sorted(RTL.iterdir()) if folder.is_dir() for argument in ("-y", str(folder))]
    run(["verilator", "--lint-only", "--assert", "-Wno-lint", "-Wno-fatal", f"-I{RTL}/include", *folders, "--top-module", "rnic_top", str(WORK / "mutate_pkg.sv"),
         str(RTL / "generated/rnic_pkg.sv"), str(RTL / "rnic_top.sv")], WORK / "syntax.log")


def environment():
    """For compilers: paths relative to the checkout, so that another checkout finds what this one compiled."""
    return {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}


def build_main():
    """The test programs' main function, compiled once."""
    objects = WORK / "catch_main.o"
    source = ROOT / "tests/support/catch_main.cpp"
    if not objects.exists() or objects.stat().st_mtime < source.stat().st_mtime:
        launcher = ["ccache"] if shutil.which("ccache") else []
        run([*launcher, "g++", "-std=c++20", "-O1", "-c", str(source), "-o", str(objects)], WORK / "catch_main.log", env=environment())


def build(name, test, jobs):
    """Builds the program of one unit test, with all mutants in it. Arguments as in cmake/RnicRtl.cmake, but lint is not asked for."""
    top = ROOT / test["top"]
    if top.is_relative_to(ROOT / "rtl"):
        top = RTL / top.relative_to(ROOT / "rtl")
    folder = WORK / name
    folders = sorted({file.parent for file in RTL.rglob("*.sv")} - {RTL / "generated"})
    flags = f"-std=c++20 -I{ROOT} -w " + " ".join(f"-D{value.replace('@ROOT@', str(ROOT))}" for value in test.get("defines", []))
    command = ["verilator", "--cc", "--exe", "--assert", "-Wno-lint", "-Wno-fatal", "--top-module", top.stem, "--prefix", f"V{top.stem}",
               "--Mdir", str(folder), "--output-split", "20000", "-o", "program", "-CFLAGS", flags, f"-I{RTL}/include"]
    for directory in folders:
        command += ["-y", str(directory)]
    command += test.get("args", [])
    command += [str(WORK / "mutate_pkg.sv"), str(RTL / "generated/rnic_pkg.sv"), str(top), str(WORK / "mutate_choice.cpp"), str(WORK / "catch_main.o")]
    command += [str(ROOT / source) for source in test["sources"]]
    run(command, WORK / f"{name}.verilator.log")
    run(["make", "-C", str(folder), "-f", f"V{top.stem}.mk", f"-j{jobs}", "OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1",
         *(["OBJCACHE=ccache"] if shutil.which("ccache") else [])], WORK / f"{name}.make.log", env=environment())
    return folder / "program"


def execute(program, number, limit, log):
    """Runs a test program with a mutant, for at most `limit` seconds of processor time (a busy machine kills no mutant). Returns how it ended,
    'passed', 'failed', 'assertion' or 'time-out', and the processor time."""
    with open(log, "w") as out:
        process = subprocess.Popen(["prlimit", f"--cpu={int(limit)}", str(program), "--abort"], stdout=out, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, cwd=program.parent, env={**os.environ, "RNIC_MUTANT": str(number)})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    if process.returncode == 0:
        return "passed", seconds
    if process.returncode == -signal.SIGXCPU:
        return "time-out", seconds
    return "assertion" if "Assertion failed in" in log.read_text(errors="replace") else "failed", seconds


def kill(mutant, programs, limits):
    """Runs the mutant's tests until one notices."""
    for test in mutant["tests"]:
        how, seconds = execute(programs[test], mutant["id"], limits[test], WORK / f"mutant.{mutant['name']}.{test}.log")
        if how != "passed":
            return {"name": mutant["name"], "rule": mutant["rule"], "file": mutant["file"], "killed": True, "by": test, "how": how,
                    "seconds": round(seconds, 1)}
    return {"name": mutant["name"], "rule": mutant["rule"], "file": mutant["file"], "killed": False, "by": "", "how": "", "seconds": 0}


def copy_options(rtl, *sources):
    """For CMake: the RTL is this copy, with these sources of the build folder."""
    return [f"-DRNIC_RTL_COPY={rtl}", f"-DRNIC_RTL_COPY_SOURCES={';'.join(str(WORK / name) for name in sources)}"]


COPY_OPTIONS = copy_options(RTL, "mutate_pkg.sv", "mutate_choice.cpp")


def build_nic(jobs, name="nic", options=tuple(COPY_OPTIONS)):
    """Builds the tool with the mutated NIC in it, or with another copy of the RTL. Memories and registers begin at zero: with random values, as they
    begin everywhere else, hardly a mutant would not be reached by what stands in a memory before it was written."""
    folder = WORK / name
    run(["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DRNIC_MODEL_OPT=-O1",
         "-DRNIC_MODELS=^(rnic_top_model|rnic_verify)$", "-DRNIC_RTL_COPY_ARGS=--x-initial;0", *options], WORK / f"{name}.cmake.log")
    run(["ninja", "-C", str(folder), f"-j{jobs}", "rnic"], WORK / f"{name}.make.log")
    return folder / "bin/rnic"


def build_frames(jobs):
    """Builds the tool with the mutants in what frame vectors run alone: all else is as in build/release, and ccache knows it."""
    folder = ROOT / "build/frames"
    run(["cmake", "--preset", "release", "-B", str(folder), "-DBUILD_TESTING=OFF", "-DRNIC_RTL_COPY_MODELS=^rnic_verify$", *COPY_OPTIONS],
        WORK / "frames.cmake.log", cwd=ROOT)
    run(["ninja", "-C", str(folder), f"-j{jobs}", "rnic"], WORK / "frames.make.log")
    return folder / "bin/rnic"


def run_tool(program, number, arguments, limit, stop_at):
    """Runs the tool with a mutant, for `limit` seconds of processor time, until it ends, or tells of a vector that fails if `stop_at` is "FAIL ".
    Returns the lines that it has printed, the file of that vector (or nothing), the exit code and the processor time."""
    command = ["prlimit", f"--cpu={int(limit)}", "stdbuf", "-oL", str(program), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace", cwd=WORK,
                               env={**os.environ, "RNIC_MUTANT": str(number)})
    lines, failed = [], ""
    with process.stdout as out:
        for line in out:
            if failed and not line.startswith(" "):
                break  # what it says of the vector is over
            lines.append(line.rstrip())
            if stop_at and line.startswith(stop_at):
                failed = pathlib.Path(line.split()[1].rstrip(":")).name
    if failed:
        os.kill(process.pid, signal.SIGKILL)  # Popen.kill would wait for one that has just ended, and its time be lost
    # Its own time, whatever else runs beside it.
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return lines, failed, process.returncode, used.ru_utime + used.ru_stime


def verify(program, number, folder, limit):
    """Runs the vectors of a folder with a mutant until one fails. Returns the name of that one (or how the run ended), nothing if all pass, and the
    processor time."""
    arguments = ["verify", "--jobs", "1", "--failures", "", str(ROOT / "tests/vectors" / folder)]
    _, failed, code, seconds = run_tool(program, number, arguments, limit, "FAIL ")
    if not failed and code:
        failed = "the time-out" if code == -signal.SIGXCPU else f"exit code {code}"
    return failed, seconds


def failing(program, number, folder, limit):
    """Runs all vectors of a folder with a mutant. Returns the names of those that fail, a Problem if the run does not end."""
    command = ["prlimit", f"--cpu={int(limit)}", str(program), "verify", "--jobs", "1", "--failures", "", str(ROOT / "tests/vectors" / folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace", check=False,
                          env={**os.environ, "RNIC_MUTANT": str(number)})
    if done.returncode not in (0, 1):
        raise Problem(f"{folder}: exit code {done.returncode}")
    return {pathlib.Path(line.split()[1].rstrip(":")).stem for line in done.stdout.splitlines() if line.startswith("FAIL ")}


def record_frames(args, mutants, folders):
    """Writes which mutants the vectors of these folders notice, those first that the fewest notice; the exit code."""
    program = build_frames(args.jobs)
    noticed_by, problems = {}, []
    for folder in args.name:
        names = [file.stem for file in sorted((ROOT / "tests/vectors" / folder).glob("*.json"))]
        if failed := failing(program, 0, folder, 1800):
            raise Problem(f"{folder}: fails without a mutation: {', '.join(sorted(failed))}")
        noticed = {name: [] for name in names}
        for mutant in mutants.values():
            if pathlib.Path(mutant["file"]).stem in folders[folder]:
                failed = failing(program, mutant["id"], folder, 1800)
                print(f"{len(failed):5}  {mutant['name']}", flush=True)
                for name in failed:
                    noticed[name].append((len(failed), mutant["name"]))
        noticed_by |= {f"{folder}/{name}": [mutant for _, mutant in sorted(seen)[:RECORDED]] for name, seen in noticed.items()}
        problems += [f"{folder}/{name}: notices no mutant" for name, seen in noticed.items() if not seen]
    told = json.loads(RECORD.read_text())
    kept = {name: seen for name, seen in told.get("frames", {}).items() if name.split("/")[0] not in args.name}
    told["frames"] = kept | noticed_by
    RECORD.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def spread(mutants, most):
    """At most so many, from all over the list."""
    if len(mutants) <= most:
        return mutants
    return [mutants[i * len(mutants) // most] for i in range(most)]


def try_folder(program, folder, blocks, mutants, most):
    """How many mutants of these blocks the vectors of a folder kill; a Problem if they fail without one."""
    failed, seconds = verify(program, 0, folder, 1800)
    if failed:
        raise Problem(f"{folder}: fails without a mutation: {failed}")
    limit = 60 + 5 * seconds
    candidates = [mutant for mutant in mutants.values() if pathlib.Path(mutant["file"]).stem in blocks]
    chosen = spread(candidates, most)
    rest = [mutant for mutant in candidates if mutant not in chosen]
    killed, tried = [], []
    # A few that nobody notices say nothing of the others: as long as none is killed, there are more.
    for mutant in chosen + rest:
        if killed and len(tried) >= len(chosen):
            break
        tried.append(mutant["name"])
        failed, seconds = verify(program, mutant["id"], folder, limit)
        print(f"  {mutant['name']:32} {f'killed by {failed}' if failed else 'not noticed'} ({seconds:.0f} s)", flush=True)
        killed += [mutant["name"]] if failed else []
    return {"folder": folder, "tried": tried, "killed": killed}


def folder_problems(mutants, folders):
    """What is wrong with [vectors] of the list: folders that it lacks or that there are not, blocks without a mutant."""
    present = {path.name for path in (ROOT / "tests/vectors").iterdir() if path.is_dir()}
    blocks = {pathlib.Path(mutant["file"]).stem for mutant in mutants.values()}
    problems = [f"{LIST.name}: [vectors] has no folder {name}" for name in sorted(present - folders.keys())]
    problems += [f"{LIST.name}: [vectors]: there is no folder {name}" for name in sorted(folders.keys() - present)]
    return problems + [f"{LIST.name}: [vectors] {name}: no mutant of {block}" for name, of_it in folders.items() if not isinstance(of_it, str)
                       for block in of_it if block not in blocks]


def try_vectors(args, mutants, folders):
    """Prints for each folder how many mutants its vectors kill; the exit code."""
    problems = folder_problems(mutants, folders)
    program = build_nic(args.jobs)
    results = []
    for name in args.name or sorted(folders):
        if isinstance(folders[name], str):
            print(f"{name}: {folders[name]}", flush=True)
            continue
        print(name, flush=True)
        try:
            results.append(try_folder(program, name, folders[name], mutants, args.most))
        except Problem as problem:
            problems.append(str(problem))
    print(f"\n{'folder':20}{'mutants':>8}{'killed':>8}")
    for result in results:
        print(f"{result['folder']:20}{len(result['tried']):8}{len(result['killed']):8}" + ("" if result["killed"] else "   none: these vectors cannot fail"))
    for problem in problems:
        print(problem, file=sys.stderr)
    if args.json:
        args.json.write_text(json.dumps({"errors": problems, "folders": results}, indent=1) + "\n")
    return 1 if problems or any(not result["killed"] for result in results) else 0


def arguments():
    parser = argparse.ArgumentParser(prog="mutate.sh", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="*", help="mutants to try, or with --vectors folders of tests/vectors (default: all)")
    parser.add_argument("--vectors", action="store_true", help="run vectors instead of unit tests, and print how many mutants each folder kills")
    parser.add_argument("--most", type=int, default=8, help="with --vectors: mutants a folder, from all over its blocks (default 8); more of them while it has killed none")
    parser.add_argument("--record", action="store_true", help=f"with --vectors and folders of frame vectors: write into {RECORD.relative_to(ROOT)} what they notice")
    parser.add_argument("--list", action="store_true", help="print the mutants and their rules, and check that their texts are found, that Verilator reads what they make, and [vectors] of the list")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write the result: mutants, survived, errors, list")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="programs and compilers at a time (default 1)")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error("--jobs: at least 1")
    if args.record and not (args.vectors and args.name):
        parser.error("--record: of --vectors with names")
    if args.most < 1:
        parser.error("--most: at least 1")
    if args.json and (args.json.is_dir() or not args.json.absolute().parent.is_dir()):
        parser.error(f"--json: {args.json} cannot be written")
    return parser, args


def prepare(name, test, jobs):
    """Builds a test and runs it without a mutation, which must pass. Returns the program and the limit in seconds for a mutant."""
    start = time.monotonic()
    program = build(name, test, jobs)
    built = time.monotonic() - start
    how, seconds = execute(program, 0, 1800, WORK / f"{name}.log")
    if how != "passed":
        raise Problem(f"{name} does not pass without a mutation ({how}), log in {WORK / name}.log")
    print(f"{name}: built in {built:.0f} s, passes without a mutation in {seconds:.0f} s", flush=True)
    # Broken logic may make a test slower. The tests limit simulated time themselves: this is for what hangs.
    return program, 60 + 5 * seconds


def try_all(jobs, tests, chosen):
    """Test by test: builds it, and tries the mutants that need no other test any more. Returns results and problems."""
    programs, limits, problems, results = {}, {}, [], []
    build_main()
    todo = list(chosen)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name in [test for test in tests if any(test in mutant["tests"] for mutant in chosen)]:
            try:
                programs[name], limits[name] = prepare(name, tests[name], jobs)
            except Problem as problem:
                problems.append(str(problem))
            ready = [mutant for mutant in todo if all(test in programs for test in mutant["tests"])]
            todo = [mutant for mutant in todo if mutant not in ready]
            for result in pool.map(lambda mutant: kill(mutant, programs, limits), ready):
                verdict = f"killed by {result['by']} ({result['how']}, {result['seconds']:.0f} s)" if result["killed"] else "SURVIVED"
                print(f"  {result['name']:24} {verdict}", flush=True)
                results.append(result)
    return results, problems + [f"{mutant['name']}: not tried, its test cannot be run" for mutant in todo]


def main():
    parser, args = arguments()
    tests, mutants, folders = load()
    args.name = [name.removeprefix("tests/vectors/").rstrip("/") for name in args.name] if args.vectors else args.name
    unknown = [name for name in args.name if name not in (folders if args.vectors else mutants)]
    if unknown:
        parser.error(f"no {'folder' if args.vectors else 'mutant'} {', '.join(unknown)} ({'[vectors] of mutants.toml' if args.vectors else '--list'} shows them)")
    WORK.mkdir(parents=True, exist_ok=True)
    problems = copy_sources(mutants)
    if args.vectors:
        for problem in problems:
            print(problem, file=sys.stderr)
        lost = {problem.split(":")[0] for problem in problems}
        chosen = {name: mutant for name, mutant in mutants.items() if name not in lost}
        code = record_frames(args, chosen, folders) if args.record else try_vectors(args, chosen, folders)
        return 1 if problems else code
    chosen = [mutant for name, mutant in mutants.items() if not args.name or name in args.name]
    if args.list:
        for mutant in chosen:
            print(f"{mutant['name']:32} {mutant['file']:32} {mutant['rule']}")
        check_syntax()
        problems += folder_problems(mutants, folders)
        print("\n".join(problems), file=sys.stderr)
        return 1 if problems else 0
    lost = {problem.split(":")[0] for problem in problems}
    chosen = [mutant for mutant in chosen if mutant["name"] not in lost]
    results, more = try_all(args.jobs, tests, chosen)
    problems += more
    survived = [result["name"] for result in results if not result["killed"]]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(results)} mutants, {len(results) - len(survived)} killed, {len(survived)} survived"
          + (f", {len(problems)} problems" if problems else "") + "".join(f"\n  survived: {name}" for name in survived))
    if args.json:
        args.json.write_text(json.dumps({"mutants": len(results), "survived": len(survived), "errors": problems, "list": results}, indent=1) + "\n")
    return 1 if survived or problems or not results else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        sys.exit(f"mutate.sh: {problem}")
