#!/usr/bin/env python3
"""Which layer of tests sees which mutant of scripts/mutants.toml: the whole NIC is built once with all of them in it, and for each one at a time
run vectors (until one fails), random programs against the reference NIC (rnic compare) and random traffic (rnic soak), those runs of them that reach
the mutant (scripts/mutant_reach.py): one that does not cannot notice it.

scripts/mutate.sh holds that unit tests kill every mutant; this says what else would have. A mutant is killed by the wire checker when in any of
these runs, as far as they went, it named a rule that the NIC broke on the wire. The result of each mutant goes into tests/planted/mutants.json as
soon as it is known; a mutant that is there with the text that it has now is not tried again, so a run may end at any time and the next goes on.

What nothing outside can see says why, with `unseen` in the list: a kind of KINDS and what it is that hides it. --check holds the three against each
other: a mutant that was seen has no reason to be unseen, one that was not has one, and the page is that of the record.

Exit code: 0 all that was to be tried has been; 1 a run fails without a mutation, or something does not build, or --check finds something; 2 wrong use.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import math
import pathlib
import re
import signal
import sys
import time
import zlib

import mutant_reach
import mutate

RECORD = mutate.ROOT / "tests/planted/mutants.json"
PAGE = mutate.ROOT / "docs/mutants.md"
BEGIN, END = "<!-- table: written by scripts/mutant_table.py -->", "<!-- end of the table -->"
LAYERS = ("vectors", "compare", "soak", "wire")
# One thread each: two take nearly twice the processor's time.
COMPARE = ["compare", "--operations", "1500", "--seed", "1", "--jobs", "1", "--threads", "1", "--differences", "1", "--no-shrink"]
SOAK = ["soak", "--cycles", "60000", "--qps", "12", "--seed", "1", "--threads", "1", "--failures", ""]
# Vectors in which the RTL does nothing that a mutant could change.
NOT_OF_THE_NIC = ("adapter", "connection", "interfaces")
KINDS = {
    "redundant": "another check refuses the same",
    "time": "the same comes of it at another time, of which no document says anything",
    "unreachable": "what it is about cannot come by in a whole NIC: another block sees to that",
    "size": "it would take more memory, packets or time than a vector has",
    "open": "no document says what is to come of it",
    "random": "it depends on what a memory holds that nobody has written",
}


@dataclasses.dataclass
class Outcome:
    """How a run ended: `killed` says by what, and is empty if it passed; `wire` the rule that the checker on the wire named, if it did."""
    killed: str
    wire: str
    seconds: float


def text_of(mutant):
    """A number for what the mutant does, so that one that has changed is tried again."""
    return zlib.crc32("\n".join([mutant["file"], mutant.get("after", ""), mutant["old"], mutant["new"]]).encode())


def wire_rule(lines):
    """The first rule that the checker on the wire says a NIC broke, without time and numbers of what broke it."""
    for index, line in enumerate(lines):
        if "broke a rule of the wire" in line and index + 1 < len(lines):
            return lines[index + 1].strip().rpartition(": ")[2]
    return ""


def attempt(program, number, arguments, limit, stop_at=""):
    """Runs the tool with a mutant; arguments as of mutate.run_tool."""
    lines, failed, code, seconds = mutate.run_tool(program, number, arguments, limit, stop_at)
    killed = pathlib.Path(failed).stem
    if not killed and code:
        asserted = any("Assertion failed in" in line for line in lines)
        killed = ("an assertion" if asserted else "no end" if code == -signal.SIGXCPU
                  else f"signal {-code}" if code < 0 else "differs" if arguments[0] == "compare" else "fails")
    return Outcome(killed, wire_rule(lines), seconds)


def vectors_of_nic():
    """All vectors in which a mutant could change something, as paths below tests/vectors."""
    folder = mutate.ROOT / "tests/vectors"
    return [str(file.relative_to(folder)) for file in sorted(folder.glob("*/*.json")) if file.parent.name not in NOT_OF_THE_NIC]


def verify_arguments(paths):
    return ["verify", "--jobs", "1", "--threads", "1", "--failures", "", *(str(mutate.ROOT / "tests/vectors" / path) for path in paths)]


def find_reach(mutants, jobs):
    """Which mutants each vector reaches, by path, and those of the layers behind them, by name."""
    program = mutant_reach.build(mutants, jobs)
    runs = {path: verify_arguments([path]) for path in vectors_of_nic()}
    return mutant_reach.of_runs(program, mutants, runs | {"compare": COMPARE, "soak": SOAK}, jobs)


def limit_of(seconds):
    """Seconds of processor time for a run that takes so many without a mutation: with one it may be slower."""
    return 20 + 2 * seconds


def vectors_that_reach(name, reach):
    return [path for path, reached in reach.items() if path.endswith(".json") and name in reached]


def rules_of(paths):
    """Path, clause and rule of each vector."""
    vectors = {path: json.loads((mutate.ROOT / "tests/vectors" / path).read_text()) for path in paths}
    return {path: f"{path} {vector['clause']} {vector['rule']}" for path, vector in vectors.items()}


def words_of(text):
    """The words of a rule that say something, without their endings."""
    return {word[:5] for word in re.findall("[a-z]{4,}", text.lower())}


class Relevance:
    """How much the rules of vectors say of what that of a mutant says: the rarer a word that both have, the more it tells."""

    def __init__(self, rules):
        """`rules`: what is said of each vector, by path."""
        self.words = {path: words_of(rule) for path, rule in rules.items()}
        self.vectors_with = collections.Counter(word for words in self.words.values() for word in words)

    def of(self, path, mutant):
        common = self.words[path] & words_of(f"{mutant['name']} {mutant['rule']}".replace("_", " "))
        return sum(math.log(len(self.words) / self.vectors_with[word]) for word in common)


def in_order(mutant, vectors, reach, relevance):
    """Those whose rule is most like its own first, then those that reach the fewest: they are about little else."""
    return sorted(vectors, key=lambda path: (-relevance.of(path, mutant), len(reach[path])))


def layers(program, mutant, reach, relevance, seconds, most, vectors_alone):
    """What each layer says of a mutant. `seconds`: what each layer takes without a mutation; `most`: vectors to run,
    of those that reach it; `vectors_alone`: the other layers have been asked, and did not see it."""
    name, wire = mutant["name"], ""
    vectors = in_order(mutant, vectors_that_reach(name, reach), reach, relevance)
    result = {"text": text_of(mutant), "reached": len(vectors), "run": min(len(vectors), most), "vectors": "", "compare": "", "soak": ""}
    runs = [("vectors", verify_arguments(vectors[:most]), "FAIL ")] if vectors else []
    if not vectors_alone:
        runs += [(layer, arguments, "") for layer, arguments in (("compare", COMPARE), ("soak", SOAK)) if name in reach[layer]]
    seconds = seconds | {"vectors": seconds["vectors"] * result["run"] / (len(reach) - 2)}
    for layer, arguments, stop_at in runs:
        outcome = attempt(program, mutant["id"], arguments, limit_of(seconds[layer]), stop_at)
        wire = wire or outcome.wire
        result[layer] = outcome.killed
    return result | {"wire": wire}


def seconds_of(program):
    """Seconds of processor time that each layer takes. A Problem if one fails without a mutation."""
    seconds = {}
    for layer, run in (("vectors", verify_arguments(vectors_of_nic())), ("compare", COMPARE), ("soak", SOAK)):
        outcome = attempt(program, 0, run, 7200)
        if outcome.killed or outcome.wire:
            raise mutate.Problem(f"{layer} does not pass without a mutation: {outcome.killed} {outcome.wire}")
        seconds[layer] = outcome.seconds
        print(f"{layer}: passes without a mutation in {outcome.seconds:.0f} s", flush=True)
    return seconds


def read_record(mutants):
    """Results of those mutants that still are what they were."""
    told = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return {name: result for name, result in told.items() if name in mutants and result["text"] == text_of(mutants[name]) and "run" in result}


def is_seen(result):
    return any(result[layer] for layer in LAYERS)


def is_tried(result, reached, most):
    """Whether it was run with as many vectors, or needs no more; `reached`: how many reach it now."""
    return is_seen(result) or result["run"] >= min(reached, most)


def write_record(results):
    lines = [f" {json.dumps(name)}: {json.dumps(results[name])}" for name in sorted(results)]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def table(mutants, results):
    """The page's table: a line a folder of rtl/, and the mutants that only unit tests see."""
    lines = ["| folder of `rtl` | mutants | tried | " + " | ".join(LAYERS) + " | unit tests alone |", "|---|---|---|" + "---|" * (len(LAYERS) + 1)]
    by_folder = {}
    for name, mutant in mutants.items():
        by_folder.setdefault(pathlib.Path(mutant["file"]).parent.name, []).append(name)
    rows = sorted(by_folder.items()) + [("all", list(mutants))]
    for folder, names in rows:
        tried = [results[name] for name in names if name in results]
        alone = sum(not is_seen(result) for result in tried)
        lines.append(f"| {folder} | {len(names)} | {len(tried)} | " + " | ".join(str(sum(bool(result[layer]) for result in tried)) for layer in LAYERS) + f" | {alone} |")
    alone = {name: mutants[name] for name in mutants if name in results and not is_seen(results[name])}
    if unexplained := [name for name, mutant in alone.items() if "unseen" not in mutant]:
        lines += ["", "Seen by unit tests alone, for no reason that is known:", "", "| mutant | block | vectors that reach it | run | rule |", "|---|---|---|---|---|"]
        lines += [f"| `{name}` | `{block_of(alone[name])}` | {results[name]['reached']} | {results[name]['run']} | {alone[name]['rule']} |" for name in unexplained]
    for kind, meaning in KINDS.items():
        if of_kind := [name for name, mutant in alone.items() if mutant.get("unseen", "").startswith(kind + ": ")]:
            lines += ["", f"Seen by unit tests alone ({len(of_kind)}), because {meaning}:", "", "| mutant | block | rule | why |", "|---|---|---|---|"]
            lines += [f"| `{name}` | `{block_of(alone[name])}` | {alone[name]['rule']} | {alone[name]['unseen'][len(kind) + 2:]} |" for name in of_kind]
    return lines


def block_of(mutant):
    return pathlib.Path(mutant["file"]).stem


def page_of(mutants, results):
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n".join(table(mutants, results)) + "\n" + END + after


def problems_of(mutants, results):
    """What is wrong with the list and the record, a line each."""
    problems = []
    for name, mutant in mutants.items():
        reason = mutant.get("unseen")
        if reason is not None and reason.partition(": ")[0] not in KINDS:
            problems.append(f"{name}: unseen = \"{reason}\" begins with none of {', '.join(kind + ':' for kind in KINDS)}")
        elif name in results and is_seen(results[name]) and reason is not None:
            problems.append(f"{name} has been seen: {', '.join(layer for layer in LAYERS if results[name][layer])}; take \"unseen\" away in {mutate.LIST.name}")
        elif name in results and not is_seen(results[name]) and reason is None:
            problems.append(f"{name}: nothing but a unit test has seen it, and {mutate.LIST.name} does not say why (\"unseen\"): write a vector, or the reason")
    return problems


def check(mutants, results):
    problems = problems_of(mutants, results)
    if page_of(mutants, results) != PAGE.read_text():
        problems.append(f"{PAGE.name} is not that of {RECORD.name}: scripts/mutant_table.py --page")
    return problems


def self_test():
    """What --check says of each defect, and which vectors are run first."""
    def mutant(name, **more):
        return {"name": name, "file": f"rtl/a/{name}.sv", "rule": "Credits of a shared queue", **more}

    def result(seen):
        return dict.fromkeys(LAYERS, "") | {"reached": 3, "run": 2, "vectors": "one" if seen else ""}

    mutants = {"seen": mutant("seen"), "unseen": mutant("unseen", unseen="time: it is later")}
    results = {"seen": result(True), "unseen": result(False)}
    assert not problems_of(mutants, results)
    assert not problems_of(mutants, {})  # what has not been tried is not wrong
    defects = {
        "seen has been seen": (mutants | {"seen": mutant("seen", unseen="time: it is later")}, results),
        "unseen: nothing but a unit test": (mutants | {"unseen": mutant("unseen")}, results),
        "begins with none of": (mutants | {"unseen": mutant("unseen", unseen="it is later")}, results),
    }
    for line, (wrong, of) in defects.items():
        problems = problems_of(wrong, of)
        assert len(problems) == 1 and line in problems[0], (line, problems)
    assert any("| it is later |" in line for line in table(mutants, results))
    assert any("3 | 2 |" in line for line in table(mutants | {"unseen": mutant("unseen")}, results))

    assert is_tried(results["seen"], 900, 200) and is_tried(results["unseen"], 2, 200) and not is_tried(results["unseen"], 3, 200)
    rules = {"a.json": "credits of a receiver", "b.json": "credits of a queue that is shared", "c.json": "credits", "d.json": "windows"}
    reach = {"a.json": "xy", "b.json": "xyz", "c.json": "x", "d.json": "x"}
    assert in_order(mutants["seen"], list(rules), reach, Relevance(rules)) == ["b.json", "c.json", "a.json", "d.json"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="*", help="mutants to try, also those that have been tried (default: all that have not)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after so many minutes")
    parser.add_argument("--vectors", type=int, default=200,
                        help="vectors to run each with, at most (default 200); one that was not seen with fewer, of those that there are now, is tried again")
    parser.add_argument("--page", action="store_true", help="try nothing, write the table of docs/mutants.md anew")
    parser.add_argument("--check", action="store_true", help="try nothing, say where list, record and page disagree")
    parser.add_argument("--self-test", action="store_true", help="see --check fail")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="compilers, then mutants, at a time (default 1)")
    args = parser.parse_args()
    if args.jobs < 1 or args.vectors < 1:
        parser.error("--jobs, --vectors: at least 1")
    return parser, args


def main():
    parser, args = arguments()
    if args.self_test:
        return self_test()
    _, mutants, _ = mutate.load()
    if unknown := [name for name in args.name if name not in mutants]:
        parser.error(f"no mutant {', '.join(unknown)} (scripts/mutate.sh --list shows them)")
    results = read_record(mutants)
    if args.check:
        problems = check(mutants, results)
        print("\n".join(problems or [f"{len(results)} of {len(mutants)} mutants tried; what nothing outside has seen says why"]))
        return 1 if problems else 0
    if not args.page:
        start = time.monotonic()
        mutate.WORK.mkdir(parents=True, exist_ok=True)
        if problems := mutate.copy_sources(mutants):
            raise mutate.Problem("\n".join(problems))
        program = mutate.build_nic(args.jobs)
        seconds, reach = seconds_of(program), find_reach(mutants, args.jobs)
        relevance = Relevance(rules_of(vectors_of_nic()))
        todo = args.name or [name for name in mutants
                             if name not in results or not is_tried(results[name], len(vectors_that_reach(name, reach)), args.vectors)]
        # From all over the list, so that a part of it says something of the whole; those that have not been tried first.
        todo.sort(key=lambda name: (name in results, zlib.crc32(name.encode())))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            def attempt_one(name):
                late = time.monotonic() - start > 60 * args.minutes
                again = not args.name and name in results
                return name, None if late else layers(program, mutants[name], reach, relevance, seconds, args.vectors, again)
            futures = [pool.submit(attempt_one, name) for name in todo]
            for tried in concurrent.futures.as_completed(futures):
                if tried.exception() is not None:
                    pool.shutdown(cancel_futures=True)  # the others would be run, and what came of them lost
                name, result = tried.result()
                if result is None:
                    continue
                results[name] = result
                write_record(results)
                print(f"{name:32} " + ", ".join(f"{layer}: {result[layer] or 'not seen'}" for layer in LAYERS), flush=True)
    PAGE.write_text(page_of(mutants, results))
    print("\n".join(table(mutants, results)))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except mutate.Problem as problem:
        sys.exit(f"mutant_table.py: {problem}")
