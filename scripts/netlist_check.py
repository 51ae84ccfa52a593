#!/usr/bin/env python3
"""Compare the netlist that Yosys makes of each leaf block with its source, in simulation.

usage: netlist_check.py [--out DIR] [--cycles N] [--seed S] [--passed FILE] [--record FILE] [MODULE...]
  MODULE   default: every leaf block (a module that instantiates nothing but modules of rtl/common)
  --passed nothing is done when this file says that the same sources have passed; --record writes that into it

Yosys 0.23 accepts some constructs and builds wrong hardware without a word, so each netlist runs beside its source in one
Verilated model: random bits on every input, all outputs compared in every cycle. Registers and memories start as zero in both.
Prints a line a block; exits 1 if one differs.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import needed
from rtl_tools import PACKAGE, ROOT, RTL, Passed, instances, modules, seal, yosys

NETLIST = ("proc; flatten; opt; wreduce; peepopt; opt_clean; share; opt; fsm; opt; memory -nomap; opt_clean; check -assert; "
           "write_json {json}; rename {top} {top}__netlist; write_verilog -noattr {verilog}")
MAIN = """#include <Vequivalence.h>
#include <verilated.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
int main(int argc, char** argv) {
  const long cycles = std::atol(argv[1]);
  std::mt19937_64 rng(std::strtoull(argv[2], nullptr, 0));
  VerilatedContext context;
  context.randReset(0);
  Vequivalence dut(&context);
  const char* names[] = {NAMES};
  constexpr int count = sizeof names / sizeof *names;
  long differ[count] = {};
  for (long cycle = 0; cycle < cycles; ++cycle) {
    auto* bytes = reinterpret_cast<unsigned char*>(&dut.stimulus_i);
    for (unsigned i = 0; i < sizeof dut.stimulus_i; ++i) bytes[i] = static_cast<unsigned char>(rng() & (cycle % 3 ? ~0ULL : rng()));
    dut.rst_ni = cycle >= 3;
    dut.clk_i = 0;
    dut.eval();
    for (int i = 0; i < count && cycle > 3; ++i) differ[i] += reinterpret_cast<unsigned char*>(&dut.differ_o)[i / 8] >> (i % 8) & 1;
    dut.clk_i = 1;
    dut.eval();
  }
  dut.final();
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    std::printf("%-28s %s\\n", names[i], differ[i] ? "DIFFERS" : "same");
    failed += differ[i] != 0;
  }
  std::printf("%d passed, %d failed\\n", count - failed, failed);
  return failed != 0;
}
"""


def leaves(names):
    common = {name for name, file in names.items() if file.parent.name == "common"}
    return [name for name, file in names.items() if name not in common and instances(file, names) <= common and name != "rnic_top"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--out", default=str(ROOT / "build/netlist"), type=pathlib.Path)
    parser.add_argument("--cycles", default=2000, type=int)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--passed", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    if options.modules and (options.passed or options.record):
        parser.error("--passed and --record are about all blocks")
    names, out = modules(), options.out.resolve()
    sealed = seal(names, ROOT, NETLIST, MAIN)
    if options.passed and Passed(options.passed).holds("netlists", sealed):
        print(f"the RTL is that which passed ({options.passed})")
        return
    out.mkdir(parents=True, exist_ok=True)
    chosen = options.modules or leaves(names)
    unknown = [name for name in chosen if name not in names]
    if unknown:
        sys.exit(f"netlist_check.py: no such module: {' '.join(unknown)}")
    body, offset, netlists = [], 0, []
    for number, name in enumerate(chosen):
        netlist, ports_file = out / f"{name}__netlist.v", out / f"{name}.json"
        yosys(NETLIST.format(top=name, json=ports_file, verilog=netlist), out / f"{name}.log", name, names)
        netlists.append(str(netlist))
        ports = json.loads(ports_file.read_text())["modules"][name]["ports"]
        source, twin, compare = [], [], []
        for port, info in ports.items():
            width = len(info["bits"])
            if port in ("clk_i", "rst_ni"):
                wires = (port, port)
            elif info["direction"] == "input":
                wires = (f"stimulus_i[{offset}+:{width}]",) * 2
                offset += width
            else:
                wires = tuple(f"{port}_{number}_{side}" for side in "ab")
                body.append(f"  logic [{width - 1}:0] {wires[0]}, {wires[1]};")
                compare.append(f"{wires[0]} != {wires[1]}")
            source.append(f".{port}({wires[0]})")
            twin.append(f".{port}({wires[1]})")
        body.append(f"  {name} u_{number}_source ({', '.join(source)});\n  {name}__netlist u_{number}_netlist ({', '.join(twin)});")
        body.append(f"  assign differ_o[{number}] = {' || '.join(compare)};")
    wrapper = out / "equivalence.sv"
    wrapper.write_text("\n".join(["module equivalence (", "  input wire logic clk_i, input wire logic rst_ni,",
                                  f"  input wire logic [{max(offset, 65) - 1}:0] stimulus_i, output logic [{max(len(chosen), 65) - 1}:0] differ_o);",
                                  *body, "endmodule", ""]))
    (out / "main.cpp").write_text(MAIN.replace("NAMES", ", ".join(f'"{name}"' for name in chosen)))
    folders = [arg for folder in sorted({file.parent for file in names.values()}) for arg in ("-y", str(folder))]
    command = ["verilator", "--cc", "--exe", "--build", "-j", "2", "-Wno-fatal", "-Wno-WIDTH", "-Wno-lint", "-Wno-style", "-DSYNTHESIS",
               f"-I{RTL}/include", *folders, "--x-initial", "0", "--x-assign", "0", "-O3", "-CFLAGS", "-O1", "--output-split", "20000", "--top-module", "equivalence",
               "--Mdir", str(out / "obj"), str(PACKAGE), str(wrapper), *netlists, str(out / "main.cpp")]
    needed.require("verilator", "verilator")
    build = subprocess.run(command, capture_output=True, text=True, check=False)
    if build.returncode:
        sys.exit(build.stdout[-2000:] + build.stderr[-3000:] + "\nnetlist_check.py: the comparison model did not build")
    code = subprocess.run([out / "obj/Vequivalence", str(options.cycles), str(options.seed)], check=False).returncode
    if code == 0:
        Passed(options.record).record("netlists", sealed)
    sys.exit(code)


if __name__ == "__main__":
    main()
