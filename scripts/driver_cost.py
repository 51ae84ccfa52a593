#!/usr/bin/env python3
"""Count the instructions and allocations of the driver's calls. usage: scripts/driver_cost.py PROGRAM [--verbs] [--json FILE] [--check FILE]

PROGRAM is driver_cost of a Release build (tests/driver/driver_cost.cpp): the NetworkDirect layer, and all below it, on
the fake device. Figures are instructions of one call, exact: callgrind collects inside the call alone, and the
difference of two runs, one with more calls, leaves out what happens once (the resolution of symbols, first touches).

The fake device's own work does not count. callgrind knows what each call of one of its functions cost, with all that
it called in turn; that is subtracted. What is left is the caller's: the virtual call too, and the driver's locks.
The ibv_wr_* calls are several, in a function of the program (batch_write), whose own instructions do not count either.

  --verbs       PROGRAM is verbs_cost (tests/verbs/verbs_cost.cpp): the verbs, with bars of twice the figures of
                NetworkDirect. Allocations are not counted
  --json FILE   writes the figures
  --check FILE  fails if a figure is beyond its bar, if there is an allocation, or, with the compiler and the C library
                that FILE names, if a figure is worse than in FILE; says so when one is better

Exit code: 0, 1 a figure is wrong, 77 valgrind is missing
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

import needed

POST = "rnic::nd2::QueuePair::{}(void*, ND2_SGE const*, unsigned int, unsigned long, unsigned int, unsigned int)"
SEND = "rnic::nd2::QueuePair::{}(void*, ND2_SGE const*, unsigned int, unsigned int)"
RECEIVE = "rnic::nd2::QueuePair::Receive(void*, ND2_SGE const*, unsigned int)"
POLL = "rnic::nd2::CompletionQueue::GetResults(ND2_RESULT*, unsigned int)"
DEVICE = "rnic::test::FakeDevice::"
# Figure: path of driver_cost, function, operations of a call, bar.
FIGURES = {
    "post_write_instructions": ("write", POST.format("Write"), 1, 250),
    "post_write_doorbell_instructions": ("write_doorbell", POST.format("Write"), 1, 250),
    "post_send_inline_instructions": ("send_inline", SEND.format("Send"), 1, 250),
    "post_receive_instructions": ("receive", RECEIVE, 1, 250),
    "poll_instructions_per_cqe": ("poll_batch", POLL, 16, 200),
    "poll_one_instructions": ("poll", POLL, 1, None),
    "poll_one_receive_instructions": ("poll_receive", POLL, 1, None),
}
VERBS = "rnic::verbs::{}"
VERBS_POST = VERBS.format("post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr**)")
BATCH = VERBS.format("batch_write(ibv_qp_ex*, ibv_sge const*)")
VERBS_FIGURES = {
    "verbs_post_write_instructions": ("write", VERBS_POST, 1, 432),
    "verbs_post_write_doorbell_instructions": ("write_doorbell", VERBS_POST, 1, 430),
    "verbs_post_send_inline_instructions": ("send_inline", VERBS_POST, 1, 438),
    "verbs_batch_write_instructions": ("batch_write", BATCH, 1, 432),
    "verbs_post_receive_instructions": ("receive", VERBS.format("post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**)"), 1, 320),
    "verbs_poll_instructions_per_cqe": ("poll_batch", VERBS.format("poll_cq(ibv_cq*, int, ibv_wc*)"), 16, 278),
}
FEW, MANY = 100, 200


def fail(message):
    sys.exit(f"driver_cost.py: {message}")


def count(program, path, function, calls, folder):
    """Instructions inside `function` and what it calls, without those inside the device."""
    out = os.path.join(folder, "callgrind")
    # Which copy loop the C library takes must not depend on the processor.
    tunables = "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no", "--compress-pos=no",
               "--collect-atstart=no", f"--toggle-collect={function}", program, path]
    if "rnic::verbs::" not in function:
        command.append(str(calls))
    environment = {**os.environ, "GLIBC_TUNABLES": tunables, "RNIC_COST_CALLS": str(calls)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        fail(f"{' '.join(command)}:\n{run.stderr}")
    total, caller, callee, of_call = 0, "", "", False
    with open(out) as lines:
        for line in lines:
            if line.startswith("fn="):
                caller = line[3:]
            elif line.startswith("cfn="):
                callee = line[4:]
            elif line.startswith("calls="):
                of_call = True
            elif line[:1].isdigit():
                cost = int(line.split()[-1])
                if not of_call:
                    total += 0 if caller.rstrip() == BATCH else cost
                elif callee.startswith(DEVICE) and not caller.startswith(DEVICE):
                    total -= cost
                of_call = False
    return total


def measure(program, wanted):
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (path, function, operations, _) in wanted.items():
            few, many = (count(program, path, function, calls, folder) for calls in (FEW, MANY))
            if few <= 0:
                fail(f"{path}: nothing was counted in {function}")
            figures[name] = (many - few) / ((MANY - FEW) * operations)
    if wanted is VERBS_FIGURES:
        figures["allocations"] = 0
        return rounded(figures)
    asked = subprocess.run([program, "--allocations"], capture_output=True, text=True, check=True).stdout
    figures["allocations"] = sum(int(line.split()[1]) for line in asked.splitlines())
    return rounded(figures)


def rounded(figures):
    return {name: int(value) if value == int(value) else round(value, 4) for name, value in figures.items()}


def toolchain():
    version = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"g++ {version}, {' '.join(platform.libc_ver())}, {platform.machine()}"


def check(figures, wanted, recorded):
    wrong = [f"{name}: {figures[name]}, and the bar is {bar}" for name, (_, _, _, bar) in wanted.items() if bar and figures[name] > bar]
    if figures["allocations"]:
        wrong.append(f"{figures['allocations']} allocations; posting and polling need none")
    if recorded["toolchain"] == toolchain():
        wrong += [f"{name}: {figures[name]}, it was {was}" for name, was in recorded["figures"].items() if figures[name] > was]
        for name, was in recorded["figures"].items():
            if figures[name] < was:
                print(f"{name} got better, from {was} to {figures[name]}: write it down")
    else:
        print(f"compared with the bars only: this is {toolchain()}, the figures were made with {recorded['toolchain']}")
    if wrong:
        fail("\n  " + "\n  ".join(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--verbs", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--check")
    arguments = parser.parse_args()
    needed.require("valgrind", "valgrind")
    wanted = VERBS_FIGURES if arguments.verbs else FIGURES
    figures = measure(arguments.program, wanted)
    for name, value in figures.items():
        bar = wanted[name][3] if name in wanted else 0
        print(f"{name:34} {value:8}" + ("" if bar is None else f"   (bar: {bar})"))
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(figures, out, indent=2)
            out.write("\n")
    if arguments.check:
        with open(arguments.check) as file:
            check(figures, wanted, json.load(file))


if __name__ == "__main__":
    main()
