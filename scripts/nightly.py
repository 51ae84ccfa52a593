#!/usr/bin/env python3
"""Random runs of a night: what they are, one of them, all that fit into some hours, and what came of them over the nights.

usage: nightly.py run --results DIR [--hours H] [--first SEED] [--tree BUILD] [--size S]   a round of seeded runs, then long ones in turn, then seeded ones
       nightly.py worlds --results DIR [--worlds N] [--first-world SEED] [--tree BUILD] [--size S]   N worlds (200) with seeds of their own, fuzzed
       nightly.py plan --runs N [--first SEED] [--size S]                                  N seeded runs, a line of JSON each
       nightly.py one PLAN INDEX --out DIR [--tree BUILD]                                  that run of a plan; its line goes to DIR/INDEX.json
       nightly.py merge PLAN DIR --results DIR                                             lines of all runs of a plan; those that left none are lost
       nightly.py trend --results DIR                                                      the nights beside each other; writes DIR/trend.html

Seeds come from the date: 2026-11-25 begins with 20261125000. A run leaves a line of JSON in DIR/runs.jsonl (night, commit, run, seed, command, exit,
seconds, figures), and, if it fails, its output in DIR/failures; its command replays it. Exit code: 0 no run has failed, 1 some have, 2 usage.
"""
import argparse
import datetime
import html
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 4 * 3600  # seconds, for one run
LONG_LIMIT = 12 * 3600
TAIL = 20_000  # characters of the output of a failed run that are kept

# Seeded runs: name, command, environment. {seed}, {n:...} (a number that --size scales), {tool}, {bin} and {json} (file for figures) are put in.
SEEDED = [
    ("verify", "{tool} verify --world {seed} --junit {json} {vectors}", {}),
    ("soak", "{tool} soak --world {seed} --seed {seed} --cycles {n:200000} --json {json}", {}),
    ("soak_lossless", "{tool} soak --world {seed} --seed {seed} --cycles {n:50000} --no-faults --json {json}", {}),
    ("soak_at_rest", "{tool} soak --world {seed} --seed {seed} --cycles {n:20000} --check-rest --json {json}", {}),
    ("fuzz", "{tool} fuzz --world {seed} --seed {seed} --frames {n:50000} --corpus tests/fuzz_corpus --json {json}", {}),
    # A run compares fewer than a thousand programs, each with a seed of its own.
    ("compare", "{tool} compare --seed {seed}000 --operations {n:50000} --json {json} --vectors build/nightly/differences", {}),
    ("compare_world", "{tool} compare --world {seed} --seed {seed}000 --operations {n:25000} --json {json} --vectors build/nightly/differences", {}),
    ("raw_differences", "scripts/raw_differences.py {tool} --seed {seed} --cases {n:2000} --keep build/nightly/raw", {}),
    ("pcie_sweep", "{bin}/test_system_pcie_sweep", {"RNIC_SEED": "{seed}", "RNIC_SWEEP": "{n:200}"}),
    ("client_calls", "{bin}/test_driver -w NoTests 'whatever a client asks for*'", {"RNIC_SEED": "{seed}", "RNIC_CALLS": "{n:50000000}"}),
    ("connections", "{bin}/test_system_many_connections", {"RNIC_SEED": "{seed}", "RNIC_NIC": "model", "RNIC_CONNECTIONS": "{n:10000}"}),
    ("kills", "{bin}/test_server_kills", {"RNIC_SEED": "{seed}", "RNIC_KILLS": "{n:1000}", "RNIC_TOOL": "{tool}"}),
]
# One of many (worlds).
FUZZED_WORLD = ("fuzz_world", "{tool} fuzz --world {seed} --seed {seed} --frames {n:10000} --json {json}", {})
FIRST_WORLD = 500  # behind the first seed of a night, and behind those of its other runs
# Those that have waited longest come first (in_turn); where none has run yet, the short ones do.
LONG = [
    ("driver_mutants", "scripts/mutate_driver.py -j $(nproc)"),
    ("sources_alone", "scripts/check_alone.py"),
    ("closed_points", "python3 tests/system/test_coverage.py {tool} Sample"),
    ("netlists", "scripts/netlist_check.py --out {build}/netlist && scripts/synth.py --check --out {build}/synth"),
    ("outside", "tests/outside/run.sh {build}/outside --build"),
    ("vector_schema", "tests/tools/check_vector_schema.py {tool} --all"),
    ("mutants", "scripts/mutate.sh"),
    ("connections_nd2", "RNIC_CONNECTIONS=100000 {bin}/test_nd2_programs 'connections that come and go*'"),
    ("fuzz_worlds", "scripts/nightly.py worlds --results {results} --tree {build}"),
    ("connections_rtl", "RNIC_CONNECTIONS=10000 {bin}/test_system_many_connections"),
    ("proofs", "ctest --test-dir {build} -L formal"),
    ("planted_faults", "scripts/planted_faults.py --jobs $(nproc)"),
    ("example_faults", "scripts/example_faults.py --jobs $(nproc) --bin {bin}"),
    ("tsan", "scripts/sanitize.sh thread"),
    ("asan", "scripts/sanitize.sh address --all"),
    ("coverage", "scripts/coverage.sh --all"),
    ("kernel_checks", "scripts/kernel_checks.sh {build}"),
    ("mutants_by_vectors", "scripts/mutate.sh --vectors"),
    ("mutants_by_layer", "scripts/mutant_table.py --minutes 180"),
]
# What the page of the trend draws: run, figure (None: how many runs), what it is.
DRAWN = [(None, None, "runs"), (None, "failed", "runs that failed"), ("soak", "cycles", "cycles of soak"), ("fuzz", "frames", "frames of fuzz"),
         ("verify", "tests", "vectors"),
         ("compare", "operations", "operations compared"), (None, "hours", "hours of runs")]


class Numbers(dict):
    """For a command: `{n:COUNT}` is COUNT times the size, at least 1."""

    class Scaled:
        def __init__(self, size):
            self.size = size

        def __format__(self, count):
            return str(max(1, round(int(count) * self.size)))


def first_seed(day):
    return int(day.strftime("%Y%m%d")) * 1000


def planned_run(kind, seed, size):
    name, command, environment = kind
    folders = sorted(path.name for path in (ROOT / "tests/vectors").iterdir() if path.is_dir())
    # A small plan runs a folder of vectors.
    vectors = "tests/vectors" if size >= 1 else f"tests/vectors/{folders[seed % len(folders)]}"
    return {"run": name, "seed": seed, "size": size, "command": command, "environment": environment, "vectors": vectors}


def seeded_run(index, first, size):
    """Run `index` of a plan: kinds take turns, and each run has a seed of its own."""
    return planned_run(SEEDED[index % len(SEEDED)], first + index, size)


def commit():
    told = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return told.stdout.strip() or "unknown"


def figures_of(file):
    """Numbers of a command's results (those at their top, docs/results.md), or of JUnit (tests, failures)."""
    try:
        text = pathlib.Path(file).read_text()
    except OSError:
        return {}
    if text.lstrip().startswith("<"):
        import xml.etree.ElementTree as tree

        suites = [element for element in tree.fromstring(text).iter("testsuite")]
        return {key: sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures")}
    try:
        told = json.loads(text)["results"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {key: value for key, value in told.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}


def perform(planned, build, failures, limit=LIMIT):
    """Runs it, and returns its line. The whole output of a failure goes to a file in `failures`."""
    with tempfile.TemporaryDirectory(prefix="rnic_nightly_") as folder:
        file = pathlib.Path(folder) / "figures"
        words = Numbers(seed=planned.get("seed"), n=Numbers.Scaled(planned.get("size", 1)), tool=build / "bin/rnic", bin=build / "bin", build=build,
                        results=failures.parent, vectors=planned.get("vectors", "tests/vectors"), json=file)
        command = planned["command"].format_map(words)
        added = {key: value.format_map(words) for key, value in planned.get("environment", {}).items()}
        begin = time.monotonic()
        try:
            done = subprocess.run(["bash", "-c", command], cwd=ROOT, env={**os.environ, **added}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", timeout=limit)
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            code, output = "no end", (late.stdout or b"").decode(errors="replace")
        told = " ".join([*(f"{key}={shlex.quote(value)}" for key, value in added.items()), command.replace(f" --json {file}", "").replace(f" --junit {file}", "")])
        line = {"night": datetime.date.today().isoformat(), "commit": commit(), "run": planned["run"], "seed": planned.get("seed"), "command": told,
                "exit": code, "seconds": round(time.monotonic() - begin, 1), "figures": figures_of(file)}
    if code != 0:
        failures.mkdir(parents=True, exist_ok=True)
        (failures / f"{planned['run']}_{planned.get('seed', 'once')}.txt").write_text(f"{told}\n{output[-TAIL:]}")
    return line


def say(line):
    print(f"{'ok  ' if line['exit'] == 0 else 'FAIL'} {line['seconds']:8.1f} s  {line['run']}: {line['command']}", flush=True)


def append(results, lines):
    results.mkdir(parents=True, exist_ok=True)
    with open(results / "runs.jsonl", "a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def in_turn(lines):
    """The long runs, those that have waited longest first: name, command, and the seconds that it took last (0: it has never run)."""
    last = {line["run"]: (number, line["seconds"]) for number, line in enumerate(lines, 1)}
    return [(name, command, last.get(name, (0, 0))[1]) for name, command in sorted(LONG, key=lambda one: last.get(one[0], (0, 0))[0])]


def run(arguments):
    end = time.monotonic() + arguments.hours * 3600
    failed = []
    long_ones = in_turn(lines_of(arguments.results))

    def perform_and_say(planned, limit):
        line = perform(planned, arguments.tree, arguments.results / "failures", limit)
        say(line)
        append(arguments.results, [line])
        failed.extend([line] if line["exit"] != 0 else [])

    index = 0
    for index in range(len(SEEDED)):
        perform_and_say(seeded_run(index, arguments.first, arguments.size), LIMIT)
    waiting = []
    for name, command, seconds in long_ones:
        # The first in turn comes whatever it takes; what is longer than a night would have no turn otherwise.
        fits = time.monotonic() + (seconds if name != long_ones[0][0] else 0) < end
        if fits:
            perform_and_say({"run": name, "command": command}, LONG_LIMIT)
        else:
            waiting.append(name)
    while time.monotonic() < end:
        index += 1
        perform_and_say(seeded_run(index, arguments.first, arguments.size), LIMIT)
    if waiting:
        print("wait for another night: " + ", ".join(waiting))
    print(f"{len(failed)} runs failed" + "".join(f"\n  {line['command']}" for line in failed))
    return bool(failed)


def worlds(arguments):
    failed = []
    for seed in range(arguments.first_world, arguments.first_world + arguments.worlds):
        line = perform(planned_run(FUZZED_WORLD, seed, arguments.size), arguments.tree, arguments.results / "failures")
        say(line)
        append(arguments.results, [line])
        failed.extend([seed] if line["exit"] != 0 else [])
    print(f"{arguments.worlds} worlds, {len(failed)} failed" + (": " + ", ".join(map(str, failed)) if failed else ""))
    return bool(failed)


def plan(arguments):
    for index in range(arguments.runs):
        print(json.dumps(seeded_run(index, arguments.first, arguments.size)))
    return 0


def read_plan(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def one(arguments):
    planned = read_plan(arguments.plan)
    if not 0 <= arguments.index < len(planned):
        print(f"nightly.py: the plan has runs 0 to {len(planned) - 1}, none with number {arguments.index}", file=sys.stderr)
        return 2
    line = perform(planned[arguments.index], arguments.tree, arguments.out / "failures")
    say(line)
    part = arguments.out / f"{arguments.index}.part"
    part.write_text(json.dumps(line))
    part.rename(arguments.out / f"{arguments.index}.json")
    return line["exit"] != 0


def merge(arguments):
    """Also counts runs that left nothing: their machine has gone."""
    planned, lines, lost = read_plan(arguments.plan), [], []
    for index, each in enumerate(planned):
        file = arguments.parts / f"{index}.json"
        if file.exists():
            lines.append(json.loads(file.read_text()))
        else:
            lost.append(f"{index} ({each['run']}, seed {each['seed']})")
    append(arguments.results, lines)
    failed = [line for line in lines if line["exit"] != 0]
    for line in failed:
        say(line)
    print(f"{len(planned)} runs, {len(failed)} failed, {len(lost)} lost" + (": " + ", ".join(lost) if lost else ""))
    return bool(failed or lost)


def lines_of(results):
    """What has run, oldest first. Lines that are damaged are told of and left out."""
    lines = []
    file = results / "runs.jsonl"
    for number, text in enumerate(file.read_text().splitlines() if file.exists() else [], 1):
        try:
            line = json.loads(text)
            if {"night", "run", "seconds"} <= line.keys():
                lines.append(line)
                continue
        except (ValueError, AttributeError):
            pass
        print(f"{file}:{number}: no line of a run, left out", file=sys.stderr)
    return lines


def nights_of(results):
    """Of each night its lines, oldest night first."""
    nights = {}
    for line in lines_of(results):
        nights.setdefault(line["night"], []).append(line)
    if not nights:
        raise SystemExit(f"nightly.py: there is no run in {results / 'runs.jsonl'}: nothing has run")
    return dict(sorted(nights.items()))


def value(lines, kind, figure):
    chosen = [line for line in lines if kind in (None, line["run"])]
    if figure is None:
        return len(chosen)
    if figure == "failed":
        return sum(line["exit"] != 0 for line in chosen)
    if figure == "hours":
        return round(sum(line["seconds"] for line in chosen) / 3600, 2)
    return sum(line["figures"].get(figure, 0) for line in chosen)


def curve(values):
    """Values from left to right as a line of 300 by 60, 0 at the bottom."""
    most = max(values) or 1
    step = 300 / max(1, len(values) - 1)
    points = " ".join(f"{index * step:.1f},{60 - 56 * each / most:.1f}" for index, each in enumerate(values))
    dots = "".join(f'<circle cx="{index * step:.1f}" cy="{60 - 56 * each / most:.1f}" r="2"/>' for index, each in enumerate(values))
    return f'<svg viewBox="-4 0 308 64" width="308" height="64" fill="none" stroke="#2563a8"><polyline points="{points}"/>{dots}</svg>'


def trend(arguments):
    nights = nights_of(arguments.results)
    columns = [what for _, _, what in DRAWN]
    rows = [(night, [value(lines, kind, figure) for kind, figure, _ in DRAWN]) for night, lines in nights.items()]
    widths = [max(len(column), 12) for column in columns]
    print("night       " + "".join(f"{column:>{width + 2}}" for column, width in zip(columns, widths)))
    for night, values in rows:
        print(f"{night:12}" + "".join(f"{each:>{width + 2},}" for each, width in zip(values, widths)))
    failures = [line for lines in nights.values() for line in lines if line["exit"] != 0]
    body = "".join(f"<h2>{html.escape(column)}</h2>{curve([values[index] for _, values in rows])}" for index, column in enumerate(columns))
    table = "".join(f"<tr><td>{night}</td>" + "".join(f"<td>{each:,}</td>" for each in values) + "</tr>" for night, values in rows)
    broken = "".join(f"<li>{line['night']} {line['commit']}: <code>{html.escape(line['command'])}</code></li>" for line in failures)
    (arguments.results / "trend.html").write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Nights</title>"
        "<style>body{font:15px sans-serif;margin:2em;max-width:60em}td,th{padding:.2em .8em;text-align:right}h2{font-size:1em;margin-bottom:0}</style>"
        f"<h1>Nights {html.escape(rows[0][0])} to {html.escape(rows[-1][0])}</h1><table><tr><th>night</th>"
        + "".join(f"<th>{html.escape(column)}</th>" for column in columns) + f"</tr>{table}</table>{body}<h2>Runs that failed</h2>"
        + (f"<ul>{broken}</ul>" if failures else "<p>None.</p>") + "</html>\n")
    return 0


def positive(text):
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="action", required=True)

    def command(action, *names):
        added = commands.add_parser(action.__name__)
        added.set_defaults(action=action)
        options = {"--results": dict(type=pathlib.Path, required=True), "--tree": dict(type=pathlib.Path, default=ROOT / "build/release"),
                   "--first": dict(type=int, default=first_seed(datetime.date.today())), "--size": dict(type=positive, default=1.0),
                   "--worlds": dict(type=int, default=200), "--first-world": dict(type=int, default=first_seed(datetime.date.today()) + FIRST_WORLD),
                   "--hours": dict(type=positive, default=8.0), "--runs": dict(type=int, required=True), "--out": dict(type=pathlib.Path, required=True),
                   "plan": dict(type=pathlib.Path), "parts": dict(type=pathlib.Path), "index": dict(type=int)}
        for name in names:
            added.add_argument(name, **options[name])

    command(run, "--results", "--hours", "--first", "--tree", "--size")
    command(worlds, "--results", "--worlds", "--first-world", "--tree", "--size")
    command(plan, "--runs", "--first", "--size")
    command(one, "plan", "index", "--out", "--tree")
    command(merge, "plan", "parts", "--results")
    command(trend, "--results")
    arguments = parser.parse_args()
    if hasattr(arguments, "tree"):
        arguments.tree = arguments.tree.resolve()
        if not (arguments.tree / "bin/rnic").exists():
            parser.error(f"{arguments.tree}/bin/rnic is missing: scripts/nightly.sh builds it, and all tests")
    sys.exit(int(arguments.action(arguments)))


if __name__ == "__main__":
    main()
