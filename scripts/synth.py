#!/usr/bin/env python3
"""Synthesize blocks of the NIC with Yosys.

usage: synth.py [--check] [--out DIR] [BLOCK...]
  BLOCK    modules to report; default: the subsystems of rnic_top
  --check  only: the whole rnic_top elaborates, `check -assert` passes, no latch (quick; no table)
  --out    folder of the logs (default build/synth)

The table gives, for each block with everything below it: generic two-input gates and multiplexers, flip-flop bits, memories
(number and bits, kept as RAM), and the longest path in gates between registers.
"""
import argparse
import pathlib
import re
import sys

from rtl_tools import ROOT, instances, modules, yosys

COARSE = "proc; opt; memory -nomap; opt_clean; check -assert; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"
GATES = "flatten; opt; wreduce; peepopt; alumacc; share; opt; memory -nomap; opt_clean; techmap; opt; abc -g AND,OR,XOR,MUX; opt_clean; check -assert"


def report(block, names, out):
    text = yosys(f"proc; {GATES}; tee -o {out}/{block}.stat stat; tee -o {out}/{block}.ltp ltp -noff", out / f"{block}.log", block, names)
    del text
    stat = (out / f"{block}.stat").read_text()
    cells = {name: int(count) for name, count in re.findall(r"^\s+(\S+)\s+(\d+)\s*$", stat, re.M) if name.startswith("$")}
    gates = sum(count for name, count in cells.items() if re.match(r"\$_(AND|OR|XOR|MUX|NOT|NAND|NOR|XNOR)_", name))
    flops = sum(count for name, count in cells.items() if "DFF" in name)
    memories = sum(count for name, count in cells.items() if name.startswith("$mem"))
    bits = re.search(r"Number of memory bits:\s+(\d+)", stat)
    depth = re.search(r"length=(\d+)", (out / f"{block}.ltp").read_text())
    return gates, flops, memories, int(bits.group(1)) if bits else 0, int(depth.group(1)) if depth else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", default=str(ROOT / "build/synth"), type=pathlib.Path)
    options = parser.parse_args()
    names, out = modules(), options.out.resolve()
    unknown = [block for block in options.blocks if block not in names]
    if unknown:
        sys.exit(f"synth.py: no such module: {' '.join(unknown)}")
    if options.check:
        yosys(COARSE, out / "rnic_top.check.log", "rnic_top", names)
        print("rnic_top: elaborated, check -assert passed, no latch")
        return
    blocks = options.blocks or sorted(instances(names["rnic_top"], names))
    print(f"{'block':<20}{'gates':>10}{'flip-flops':>12}{'memories':>10}{'memory bits':>13}{'depth':>7}", flush=True)
    for block in blocks:
        gates, flops, memories, bits, depth = report(block, names, out)
        print(f"{block:<20}{gates:>10}{flops:>12}{memories:>10}{bits:>13}{depth:>7}", flush=True)


if __name__ == "__main__":
    main()
