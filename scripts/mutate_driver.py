#!/usr/bin/env python3
"""Mutation test of the driver: puts each fault of scripts/driver_mutants.toml into the sources in turn and runs the tests that should notice.

A mutant replaces one piece of text of a C++ source, or a header, by another. The program of a test is compiled once, below build/mutate_driver; for
a mutant only its source is compiled again, from a copy (of a header: the sources that include it), and the program linked with it, so the checkout is
never touched.

Exit code: 0 all killed; 1 one survives, its text is not found any more, or something does not build or fails without a mutation; 2 wrong use.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

from mutate import Problem, environment, place, read_list, run

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts/driver_mutants.toml"
WORK = ROOT / "build/mutate_driver"
RELEASE = ROOT / "build/release"


def load():
    """Tests and mutants of the list, by name."""
    data, mutants = read_list(LIST, "test")
    return data["test"], mutants


def sources_of(test):
    """Files of a test's program, relative to the checkout."""
    found = [str(file.relative_to(ROOT)) for pattern in test["sources"] for file in sorted(ROOT.glob(pattern))]
    found = [file for file in found if file not in test.get("without", [])]
    if not found:
        raise Problem(f"{LIST.name}: no file is {' or '.join(test['sources'])}")
    return found


def is_header(mutant):
    return mutant["file"].endswith(".hpp")


def mutated(mutant, test):
    """The source with its fault."""
    if not is_header(mutant) and mutant["file"] not in sources_of(test):
        raise Problem(f"{mutant['name']}: {mutant['file']} is no source of {mutant['test']}")
    source = (ROOT / mutant["file"]).read_text()
    first, last = place(mutant, source)
    return source[:first] + mutant["new"] + source[last:]


def compile_one(source, test, to, log, before=()):
    """`before`: folders in which headers are looked for first. What it includes is written beside the object."""
    launcher = ["ccache"] if shutil.which("ccache") else []
    run([*launcher, "g++", "-std=c++20", "-O1", "-w", *(f"-I{folder}" for folder in before), f"-I{ROOT}", "-MMD", f'-DRNIC_SOURCE_DIR="{ROOT}"',
         *(f"-I{ROOT}/{folder}" for folder in test.get("includes", [])), *(f"-D{definition}" for definition in test.get("definitions", [])), "-c", str(source), "-o", str(to)], log, env=environment())


def includes(built, header):
    """Whether the source of an object includes a header, at any depth."""
    named = built.with_suffix(".d").read_text().replace("\\\n", " ").split()
    return header in named or f"{ROOT}/{header}" in named  # ccache may have made them relative


def libraries_of(test, log):
    """What a test's program is linked with besides its sources: with `like`, what a program of the release build is, which is brought up to date.
    A source that is compiled here stands before the library that has it too, so that it is taken from nowhere else."""
    if "like" not in test:
        return ["-lpthread"]
    run(["cmake", "--preset", "release", "-DBUILD_TESTING=ON"], log, cwd=ROOT)  # scripts/run.sh leaves it without tests
    run(["cmake", "--build", str(RELEASE), "--target", test["like"]], log)
    commands = subprocess.run(["ninja", "-C", str(RELEASE), "-t", "commands", f"bin/{test['like']}"], stdout=subprocess.PIPE, text=True, check=True).stdout
    words = shlex.split(commands.splitlines()[-1].removeprefix(": && ").removesuffix(" && :"))
    output = words.index("-o")
    options = [word for word in words[1:output] if not word.endswith(".o")]
    rest = [word for word in words[output + 2:] if not word.endswith(".o")]
    return options + [str(RELEASE / word) if word.endswith(".a") else word for word in rest]


def link(objects, libraries, program, log):
    run(["g++", "-o", str(program), *map(str, objects), *libraries], log)


# A program that has had no processor time for so many seconds waits for what does not come.
ASLEEP = 40


def processor_time(process):
    """Of all its threads, in clock ticks."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def wait_while_awake(process):
    """Ends a program that sleeps for ever. Its wait status and resource usage."""
    last, since = -1, time.monotonic()
    while True:
        ended, status, usage = os.wait4(process, os.WNOHANG)
        if ended:
            return status, usage
        if (now := processor_time(process)) != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > ASLEEP:
            os.kill(process, signal.SIGXCPU)
        time.sleep(0.05)


def execute(program, test, limit, log):
    """How the program ended, 'passed', 'failed' or 'time-out', and its processor time. At most `limit` seconds of that: a busy machine kills no mutant."""
    with open(log, "w") as out:
        process = subprocess.Popen(["prlimit", f"--cpu={int(limit)}", str(program), "--abort", *test.get("arguments", [])], stdout=out,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=program.parent, env=os.environ | test.get("environment", {}))
        status, usage = wait_while_awake(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
    how = "passed" if process.returncode == 0 else "time-out" if process.returncode == -signal.SIGXCPU else "failed"
    return how, usage.ru_utime + usage.ru_stime


def prepare(name, test, pool):
    """Builds the program of a test, which must pass. Returns its objects by source, its libraries, and the limit in seconds for a mutant."""
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    objects = {source: folder / (source.replace("/", "_") + ".o") for source in sources_of(test)}
    list(pool.map(lambda source: compile_one(ROOT / source, test, objects[source], objects[source].with_suffix(".log")), objects))
    libraries = libraries_of(test, folder / "libraries.log")
    link(objects.values(), libraries, folder / "program", folder / "link.log")
    built = time.monotonic() - start
    how, seconds = execute(folder / "program", test, 1800, folder / "program.log")
    if how != "passed":
        raise Problem(f"{name} does not pass without a mutation ({how}), log in {folder / 'program.log'}")
    print(f"{name}: built in {built:.0f} s, passes without a mutation in {seconds:.1f} s", flush=True)
    return objects, libraries, 60 + 5 * seconds


def kill(mutant, test, objects, libraries, limit):
    """How the test ended with the mutant in it: 'passed' if it did not notice."""
    folder = WORK / mutant["test"] / mutant["name"]
    spoiled = folder / mutant["file"]
    spoiled.parent.mkdir(parents=True, exist_ok=True)
    spoiled.write_text(mutated(mutant, test))
    own = [file for file, built in objects.items() if (includes(built, mutant["file"]) if is_header(mutant) else file == mutant["file"])]
    if not own:
        raise Problem(f"{mutant['name']}: no source of {mutant['test']} includes {mutant['file']}")
    new = {file: folder / objects[file].name for file in own}
    for file, built in new.items():
        compile_one(ROOT / file if is_header(mutant) else spoiled, test, built, built.with_suffix(".log"), [folder] if is_header(mutant) else [])
    link([new.get(file, built) for file, built in objects.items()], libraries, folder / "program", folder / "link.log")
    how, _ = execute(folder / "program", test, limit, folder / "program.log")
    (folder / "program").unlink()
    return how


def try_all(tests, chosen, jobs):
    """Names of the mutants that survive, and problems."""
    survived, problems = [], []

    def attempt(mutant, built):
        try:
            return mutant, kill(mutant, tests[mutant["test"]], *built)
        except Problem as problem:
            return mutant, str(problem)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, test in tests.items():
            own = [mutant for mutant in chosen if mutant["test"] == name]
            if not own:
                continue
            built = prepare(name, test, pool)
            for mutant, how in pool.map(lambda mutant: attempt(mutant, built), own):
                if how in ("failed", "time-out"):
                    print(f"  {mutant['name']:28} killed ({how})", flush=True)
                elif how == "passed":
                    print(f"  {mutant['name']:28} SURVIVED: {mutant['rule']}", flush=True)
                    survived.append(mutant["name"])
                else:
                    problems.append(how)
    return survived, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="*", help="mutants to try (default: all)")
    parser.add_argument("--list", action="store_true", help="print the mutants and their rules, and check that their texts are found")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="compilers and programs at a time (default 1)")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error("--jobs: at least 1")
    tests, mutants = load()
    unknown = [name for name in args.name if name not in mutants]
    if unknown:
        parser.error(f"no mutant {', '.join(unknown)} (--list shows them)")
    chosen = [mutant for name, mutant in mutants.items() if not args.name or name in args.name]
    problems, sound = [], []
    for mutant in chosen:
        try:
            mutated(mutant, tests[mutant["test"]])
            sound.append(mutant)
        except (Problem, OSError) as problem:
            problems.append(str(problem))
    if args.list:
        for mutant in sound:
            print(f"{mutant['name']:28} {mutant['file']:32} {mutant['rule']}")
    else:
        survived, more = try_all(tests, sound, args.jobs)
        problems += more
        print(f"{len(sound)} mutants, {len(survived)} survived" + "".join(f"\n  survived: {name}" for name in survived))
        problems += [f"{name} survived" for name in survived]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems or not sound else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        sys.exit(f"mutate_driver.py: {problem}")
