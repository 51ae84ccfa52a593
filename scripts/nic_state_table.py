#!/usr/bin/env python3
"""Write a table of the state of a Verilated model, for testbench/state_check.cpp: a line for each signal of the design.

usage: nic_state_table.py HEADER OUTPUT
  HEADER   the design header that Verilator wrote (Vrnic_top___024root.h)
Left out is what is no state: the clocks, what Verilator keeps for itself, variables of loops and functions.
"""
import re
import sys
from pathlib import Path

MEMBER = re.compile(r"^\s*(?:[CSIQ]Data/\*[\d:]+\*/|VlWide<\d+>/\*[\d:]+\*/|VlUnpacked<.*>) (\w+);$", re.M)
NO_STATE = re.compile(r"^__V|____V|unnamedblk|_clk$|__DOT__clk_o$|_clock__DOT__enable_q$")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    names = [name for name in MEMBER.findall(Path(sys.argv[1]).read_text()) if not NO_STATE.search(name)]
    if not names:
        sys.exit(f"nic_state_table.py: no signal of the design in {sys.argv[1]}")
    Path(sys.argv[2]).write_text("".join(f"STATE({name})\n" for name in names))


main()
