#!/usr/bin/env python3
"""Proves blocks of the RTL (tests/formal), with Yosys and what ABC has for it: property-directed reachability.

usage: prove.py [--list] [--no-mutants] [PROOF...]
  PROOF         by their names in tests/formal/proofs.toml; default: all
  --list        say what there is, and prove nothing
  --no-mutants  do not break the blocks

A proof is a module prove_<name> in tests/formal: the block, and what must hold of it whatever its inputs do. All of its inputs are free in each cycle;
`initial assume (!rst_ni)` begins with a reset, of registers that hold anything. What the block itself asserts (rtl/include/assert.svh) is proved
with it; the assertions about its inputs, which proofs.toml names in `assume`, are taken for granted. It holds for ever, or, where proofs.toml gives a
`depth` and says `why` it is enough, for so many cycles.

Each proof has mutants: changes of the block with which it must fail.

Exit code: 0 all is proved and each mutant seen, 1 not, 2 wrong use, 77 a program is missing. Logs and, of a failure, waves: build/formal.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib

import needed
import rtl_tools

FOLDER = rtl_tools.ROOT / "tests/formal"
OUT = rtl_tools.ROOT / "build/formal"
KEYS = {"name", "says", "depth", "why", "assume", "mutants"}
SECONDS = 600


def fail(text):
    print(f"prove.py: {text}", file=sys.stderr)
    sys.exit(2)


def proofs():
    """The proofs of proofs.toml by name, looked at."""
    with open(FOLDER / "proofs.toml", "rb") as file:
        listed = tomllib.load(file)["proof"]
    for proof in listed:
        name = proof.get("name", "without a name")
        if unknown := set(proof) - KEYS:
            fail(f"{name}: what is {', '.join(sorted(unknown))}?")
        if ("why" in proof) != ("depth" in proof):
            fail(f"{name}: a depth has a why, and the other way round")
        if "says" not in proof:
            fail(f"{name}: says, in a line, what is proved")
        if not proof.get("mutants"):
            fail(f"{name}: a proof that nothing makes fail proves nothing; name a mutant")
        if not (FOLDER / f"prove_{name}.sv").exists():
            fail(f"{name}: there is no tests/formal/prove_{name}.sv")
    return {proof["name"]: proof for proof in listed}


def translate(proof, stem, replaced):
    """Writes a proof as circuits, for ABC and for the solver that draws waves; replaced: file of the RTL -> the one to take instead."""
    names = rtl_tools.modules() | {file.stem: file for file in FOLDER.glob("*.sv")}
    wrapper = FOLDER / f"prove_{proof['name']}.sv"
    below = set().union(*(rtl_tools.closure(block, names) for block in rtl_tools.instances(wrapper, names)))
    files = " ".join(str(replaced.get(names[name], names[name])) for name in sorted(below))
    granted = " ".join(f"chformal -assert2assume c:{name};" for name in proof.get("assume", []))
    script = (f"read_verilog -sv -formal -DFORMAL -I{rtl_tools.RTL}/include {rtl_tools.PACKAGE} {files} {wrapper};"
              f" hierarchy -check -top prove_{proof['name']}; proc; opt_clean; memory -nomap; memory_map; flatten; async2sync; opt_clean; {granted}"
              f" setundef -undriven -anyseq; check -assert; dffunmap; write_smt2 -wires {OUT}/{stem}.smt2;"
              f" opt -fast; techmap; opt -fast; dffunmap; abc -g AND -fast; opt_clean; write_aiger -B -zinit {OUT}/{stem}.aig")
    with open(OUT / f"{stem}.yosys.log", "w") as log:
        if subprocess.run(["yosys", "-p", script], stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
            print(pathlib.Path(log.name).read_text()[-2000:], file=sys.stderr)
            fail(f"{proof['name']}: Yosys failed, log in {log.name}")


def fault(proof, stem):
    """The cycle of the first fault that ABC finds, or None when there is none."""
    search = f"bmc3 -F {proof['depth']}" if "depth" in proof else "pdr"
    log = OUT / f"{stem}.log"
    with open(log, "w") as out:
        try:
            subprocess.run(["yosys-abc", "-c", f"read_aiger {OUT}/{stem}.aig; fold; strash; scorr; dc2; {search}"],
                           stdout=out, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            fail(f"{proof['name']}: no answer within {SECONDS} s, log in {log}")
    text = log.read_text()
    if found := re.search(r"was asserted in frame (\d+)", text):
        return int(found[1])
    if "Property proved" in text or "Networks are equivalent" in text or ("depth" in proof and "No output asserted" in text):
        return None
    fail(f"{proof['name']}: ABC said nothing clear, log in {log}")


def draw(stem, cycle):
    """Says where waves up to a fault are, if the solver finds it in a minute."""
    command = ["yosys-smtbmc", "-s", "z3", "--noprogress", "-t", str(cycle + 2), "--dump-vcd", OUT / f"{stem}.vcd", OUT / f"{stem}.smt2"]
    solver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        said = solver.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        os.killpg(solver.pid, signal.SIGKILL)  # with z3, which it has started
        solver.wait()
        return f"log: {OUT}/{stem}.log"
    broken = " ".join(re.findall(r"Assert failed in \w+: (\S+)", said))
    return f"{broken}, waves: {OUT}/{stem}.vcd"


def prove(proof, mutants):
    """Proves, breaks; prints a line, returns whether all was as it must be."""
    name, began = proof["name"], time.monotonic()
    translate(proof, name, {})
    if (cycle := fault(proof, name)) is not None:
        print(f"{name:20} FAILED in cycle {cycle}: {draw(name, cycle)}")
        return False
    seen = 0
    for number, mutant in enumerate(proof["mutants"] if mutants else []):
        file = rtl_tools.RTL / mutant["file"]
        text = file.read_text()
        if text.count(mutant["from"]) != 1:
            fail(f"{name}: mutant {number}: {mutant['from']!r} stands {text.count(mutant['from'])} times in {file}, not once")
        broken = OUT / f"{name}_mutant{number}" / file.name
        broken.parent.mkdir(exist_ok=True)
        broken.write_text(text.replace(mutant["from"], mutant["to"]))
        stem = f"{name}_mutant{number}"
        translate(proof, stem, {file: broken})
        if fault(proof, stem) is None:
            print(f"{name:20} FAILED: holds with mutant {number} as well ({mutant['from']!r} -> {mutant['to']!r})")
            return False
        seen += 1
    how = f"for {proof['depth']} cycles" if "depth" in proof else "for ever"
    print(f"{name:20} holds {how}, {seen} mutants seen, {time.monotonic() - began:.0f} s: {proof['says']}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-mutants", action="store_true")
    parser.add_argument("proofs", nargs="*")
    options = parser.parse_args()
    known = proofs()
    if wrong := [name for name in options.proofs if name not in known]:
        fail(f"no proof is called {', '.join(wrong)}; --list says what there is")
    if options.list:
        for proof in known.values():
            print(f"{proof['name']:20} {proof['says']}")
        return
    for tool in ("yosys", "yosys-abc", "yosys-smtbmc", "z3"):
        needed.require(tool, tool.split("-")[0])
    OUT.mkdir(parents=True, exist_ok=True)
    results = [prove(known[name], not options.no_mutants) for name in options.proofs or known]
    sys.exit(0 if all(results) else 1)


main()
