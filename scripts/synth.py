#!/usr/bin/env python3
"""Synthesize blocks of the NIC with Yosys.

usage: synth.py [--check] [--below] [--json FILE] [--source DIR] [--out DIR] [BLOCK...]
       synth.py --luts [--hold FILE] [--json FILE] [--source DIR] [--out DIR] [BLOCK...]
  BLOCK    modules to report; default: the subsystems of rnic_top, its rooms and what is in them
  --check  only: the whole rnic_top elaborates, `check -assert` passes, no latch (quick; no table)
  --passed with --check: nothing is done when this file says that the same sources have passed; --record writes that into it
  --below  report every module below the blocks too (with no BLOCK: every module of the NIC, rnic_top among them; takes some ten minutes of processor time)
  --luts   map to the cells of UltraScale+ and count levels of LUT and carry (lut_levels.py says how): the whole NIC, flat but for the borders of its
           subsystems, or each BLOCK by itself, flat, its ports taken for registers
  --hold   fail when a subsystem is deeper than in this file, which --json has written; nothing is mapped when the file's figures are those of the sources
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

import lut_levels
import rtl_tools
from lut_levels import plain
from rtl_tools import ROOT, closure, modules, subsystems, yosys

COARSE = "proc; opt; memory -nomap; opt_clean; check -assert; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"
# ABC's default script saves area at any price: it turns every carry look-ahead into a ripple, so that depth says nothing.
MAP = "abc -g AND,OR,XOR,MUX -script +strash;ifraig;dch,-f;map,-B,0.9"
GATES = f"proc; opt; wreduce; peepopt; alumacc; share; opt; memory -nomap; opt_clean; techmap; opt -fast; {MAP}; opt_clean; check -assert"
# What synth_xilinx does, its RAMs, carry chains, flip-flops and costs of LUTs among it, but for what takes long and makes nothing less deep: it searches
# again for what can be shared when all is single gates, and puts LUTs and flip-flops into cells with names. Ports are those of a part of a chip, not pads.
XILINX = "synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top} -run"
LUTS = (f"{XILINX} begin:prepare; proc; opt -nodffe -nosdff; opt; wreduce; peepopt; opt_clean; flatten; opt_expr; opt_clean; opt_merge; "
        f"techmap -map +/cmp2lut.v -map +/cmp2lcu.v -D LUT_WIDTH=6; alumacc; opt -nodffe -nosdff; memory -nomap; opt_clean; {XILINX} map_memory:fine; "
        f"opt_expr; techmap -map +/techmap.v -D LUT_SIZE=6 -map +/xilinx/arith_map.v; opt_expr; opt_clean; {XILINX} map_ffs:map_luts; "
        "abc -luts 2:2,3,6:5,10,20,40; opt_clean; attrmap -remove src; write_json {netlist}")
LIMIT = 4 * 3600  # seconds of one run of Yosys; the whole NIC takes minutes on a machine that has nothing else to do


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


def kept(top, names):
    """Subsystems below `top` that stay apart: what rnic_top is made of, but for what is common and so belongs to whoever uses it. With parameters,
    too."""
    apart = sorted(name for name in subsystems(names) & closure(top, names) - {top} if names[name].parent.name != "common")
    return [pattern for name in apart for pattern in (name, f"$paramod\\\\{name}\\\\*", f"$paramod$*\\\\{name}")]


def luts(top, names, out, source):
    """Figures of `top` and of the subsystems below it in LUTs."""
    apart = kept(top, names)
    keep = f"setattr -mod -set keep_hierarchy 1 {' '.join(apart)}; " if apart else ""
    netlist = out / f"{top}.luts.json"
    yosys(keep + LUTS.format(top=top, netlist=netlist), out / f"{top}.luts.log", top, names, LIMIT, source)
    try:
        return lut_levels.levels(json.loads(netlist.read_text()), top)
    except lut_levels.NetlistError as error:
        sys.exit(f"synth.py: {error}, see {netlist}")


def seal(figures, names, source):
    """What figures of the NIC's levels, and all that they come from, have in common with no others: the same sources need not be mapped again."""
    inside = {name: names[name] for name in closure("rnic_top", names)}
    return rtl_tools.seal(inside, source, LUTS, pathlib.Path(lut_levels.__file__).read_text(), json.dumps(figures, sort_keys=True))


def report_luts(options, names, out, source):
    """The work of --luts."""
    held = json.loads(options.hold.read_text()) if options.hold else None
    if held and held["seal"] == seal(held["figures"], names, source):
        print(f"the RTL is that of the figures of {options.hold}")
        return
    found = {}
    print(f"{'subsystem':<24}{'levels':>8}{'deep ends':>11}{'LUTs':>9}{'carry':>8}{'flip-flops':>12}{'RAMB36':>8}{'LUT RAM':>9}  from, to", flush=True)
    for block in options.blocks or ["rnic_top"]:
        for name, entry in sorted(luts(block, names, out, source).items()):
            found[name] = entry
            print(f"{name:<24}{entry['levels']:>8}{entry['deep']:>11}{entry['luts']:>9}{entry['carry']:>8}{entry['flops']:>12}{entry['ramb36']:>8}"
                  f"{entry['lutram']:>9}  {entry['from']}, {entry['to']}", flush=True)
    if options.json:
        made = {"figures": found, "seal": seal(found, names, source)}
        options.json.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    problems = lut_levels.deeper(held["figures"], found) if held else []
    if problems:
        sys.exit("\n".join(problems) + "\nIf it must be: scripts/synth.py --luts --json docs/synthesis/luts.json && scripts/synth_table.py, and say why in the commit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--passed", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--below", action="store_true")
    parser.add_argument("--luts", action="store_true")
    parser.add_argument("--hold", type=pathlib.Path)
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
    if options.hold and (options.blocks or not options.luts):
        parser.error("--hold: the figures of the whole NIC, with --luts, are held")
    if options.hold and not options.hold.is_file():
        parser.error(f"--hold: no file {options.hold}")
    unknown = [block for block in options.blocks if block not in names]
    if unknown:
        sys.exit(f"synth.py: no such module: {' '.join(unknown)}")
    if options.check:
        sealed = rtl_tools.seal(names, source, COARSE)
        if options.passed and rtl_tools.Passed(options.passed).holds("rnic_top", sealed):
            print(f"the RTL is that which passed ({options.passed})")
            return
        yosys(COARSE, out / "rnic_top.check.log", "rnic_top", names, source=source)
        print("rnic_top: elaborated, check -assert passed, no latch")
        rtl_tools.Passed(options.record).record("rnic_top", sealed)
        return
    if options.luts:
        report_luts(options, names, out, source)
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
