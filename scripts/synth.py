#!/usr/bin/env python3
"""Synthesize blocks of the NIC with Yosys.

usage: synth.py [--check] [--below] [--json FILE] [--source DIR] [--out DIR] [BLOCK...]
  BLOCK    modules to report; default: the subsystems of rnic_top, its rooms and what is in them
  --check  only: the whole rnic_top elaborates, `check -assert` passes, no latch (quick; no table)
  --below  report every module below the blocks too (with no BLOCK: every module of the NIC, rnic_top among them; takes some ten minutes of processor time)
  --json   write the figures, for scripts/synth_table.py
  --source checkout whose rtl/ is synthesized (default: this one)
  --out    folder of the logs (default build/synth)

The table gives, for each block with everything below it: generic two-input gates and multiplexers, flip-flop bits, memories
(number and bits, kept as RAM), and the longest path in gates between registers, memories and ports. Each module is mapped by itself, once, with the
parameters it is used with (of several uses the largest is reported); the longest path is searched across the borders of the modules.
"""
import argparse
import json
import pathlib
import re
import sys

from rtl_tools import ROOT, modules, subsystems, yosys

COARSE = "proc; opt; memory -nomap; opt_clean; check -assert; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"
# ABC's default script saves area at any price: it turns every carry look-ahead into a ripple, so that depth says nothing.
MAP = "abc -g AND,OR,XOR,MUX -script +strash;ifraig;dch,-f;map,-B,0.9"
GATES = f"proc; opt; wreduce; peepopt; alumacc; share; opt; memory -nomap; opt_clean; techmap; opt -fast; {MAP}; opt_clean; check -assert"
LIMIT = 4 * 3600  # seconds of one run of Yosys; the whole NIC takes minutes on a machine that has nothing else to do


def plain(name):
    """The name of the source module of a module of the netlist, which may carry its parameters."""
    return re.sub(r"^\$paramod(\$[0-9a-f]+)?\\(\w+).*$", r"\2", name).lstrip("\\")


def cells(text):
    """Number of cells of each kind, by module, from what Yosys prints of them."""
    found = {}
    for name, part in re.findall(r"^=== (\S+) ===\n(.*?)(?=^===|\Z)", text, re.M | re.S):
        part = part.partition("Number of cells:")[2].partition("\n")[2].partition("\n\n")[0]
        found[name] = {kind: int(count) for kind, count in re.findall(r"^\s+(\S+)\s+(\d+)$", part, re.M)}
    return found


def memories(text):
    """Bits of each memory, by module, from a dump of the memory cells."""
    found, module, size = {}, None, 0
    for line in text.splitlines():
        if match := re.match(r"module (\S+)", line):
            module = match.group(1)
        elif match := re.match(r"\s+parameter (?:signed )?\\SIZE (\d+)$", line):
            size = int(match.group(1))
        elif match := re.match(r"\s+parameter (?:signed )?\\WIDTH (\d+)$", line):
            found.setdefault(module, []).append(size * int(match.group(1)))
    return found


def longest(text):
    """Longest path of each module: its gates, and the names where it begins and ends."""
    found = {}
    for part in re.split(r"^Longest topological path in ", text, flags=re.M)[1:]:
        name, length = re.match(r"(\S+) \(length=(-?\d+)\)", part).groups()
        ends = re.findall(r"^\s+(?:\d+|ff): (.*?)(?: \(via .*\))?$", part, re.M)
        clean = [re.sub(r"^.*\\(\w+)\$.*_DATA", r"\1", re.sub(r"^\\", "", end)).replace(" [", "[") for end in ends]
        found[name] = (max(int(length), 0), clean[0] if clean else "", clean[-1] if clean else "")
    return found


def mapped(top, names, out, source):
    """Maps every module of the hierarchy of `top`, then flattens each in its place and looks for its longest path. Returns what Yosys has said."""
    prefix = out / top
    yosys(f"{GATES}; tee -q -o {prefix}.stat stat; tee -q -o {prefix}.memories dump -m t:$mem*; setattr -mod -unset top *; flatten; "
          f"tee -q -o {prefix}.paths ltp -noff", out / f"{top}.log", top, names, LIMIT, source)
    return tuple((out / f"{top}.{what}").read_text() for what in ("stat", "memories", "paths"))


def below(name, design, done):
    """Gates, flip-flops, memories and memory bits of a module of the netlist with everything below it. `done` keeps what is known."""
    if name not in done:
        total = list(design[name]["own"])
        for cell, count in design[name]["below"].items():
            total = [a + count * b for a, b in zip(total, below(cell, design, done))]
        done[name] = total
    return done[name]


def reports(top, names, out, source):
    """Figures of `top` and of every module below it, by name."""
    stat, dump, found_paths = mapped(top, names, out, source)
    if "Detected loop" in found_paths:
        sys.exit(f"synth.py: {top}: combinational loop, see {out}/{top}.paths")
    kinds, bits, paths = cells(stat), memories(dump), longest(found_paths)
    design = {}
    for name, types in kinds.items():
        unknown = [kind for kind in types if not kind.startswith(("$_", "$mem")) and kind not in kinds]
        if unknown:
            sys.exit(f"synth.py: {plain(name)}: cells that are not gates: {' '.join(unknown)}")
        gates = sum(count for kind, count in types.items() if re.match(r"\$_(AND|OR|XOR|MUX|NOT|NAND|NOR|XNOR)_", kind))
        flops = sum(count for kind, count in types.items() if "DFF" in kind)
        design[name] = {"own": (gates, flops, len(bits.get(name, [])), sum(bits.get(name, []))),
                        "below": {kind: count for kind, count in types.items() if kind in kinds}}
    done = {}
    chosen = {}
    for name in design:
        if plain(name) not in chosen or below(name, design, done)[0] > below(chosen[plain(name)], design, done)[0]:
            chosen[plain(name)] = name
    found = {}
    for block, name in chosen.items():
        gates, flops, count, size = below(name, design, done)
        depth, start, end = paths[name]
        found[block] = {"gates": gates, "flops": flops, "memories": count, "bits": size, "depth": depth, "from": start, "to": end}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--below", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--source", default=ROOT, type=pathlib.Path)
    parser.add_argument("--out", default=str(ROOT / "build/synth"), type=pathlib.Path)
    options = parser.parse_args()
    source, out = options.source.resolve(), options.out.resolve()
    names = modules(source)
    if "rnic_top" not in names:
        parser.error(f"--source: no rnic_top below {source}/rtl")
    if options.json and (options.json.is_dir() or not options.json.absolute().parent.is_dir()):
        parser.error(f"--json: {options.json} cannot be written")
    unknown = [block for block in options.blocks if block not in names]
    if unknown:
        sys.exit(f"synth.py: no such module: {' '.join(unknown)}")
    if options.check:
        yosys(COARSE, out / "rnic_top.check.log", "rnic_top", names, source=source)
        print("rnic_top: elaborated, check -assert passed, no latch")
        return
    blocks = options.blocks or (["rnic_top"] if options.below else sorted(subsystems(names)))
    found = {}
    print(f"{'block':<24}{'gates':>10}{'flip-flops':>12}{'memories':>10}{'memory bits':>13}{'depth':>7}", flush=True)
    for block in blocks:
        all_below = reports(block, names, out, source)
        for name in sorted(all_below) if options.below else [block]:
            entry = found[name] = all_below[name]
            print(f"{name:<24}{entry['gates']:>10}{entry['flops']:>12}{entry['memories']:>10}{entry['bits']:>13}{entry['depth']:>7}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
