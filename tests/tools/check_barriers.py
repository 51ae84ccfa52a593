#!/usr/bin/env python3
"""Compile the barriers of driver/mmio.hpp for each processor that has them, and look at what comes out.

usage: check_barriers.py COMPILER    COMPILER: C++, for x86-64 or ARM64

The instructions of ARM64 pass through a compiler for x86-64 as text. Where there is aarch64-linux-gnu-g++ it compiles
and assembles them.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BARRIERS = {
    "x86_64": {"dma_write": [], "window_write": ["sfence"], "window_flush": ["sfence"], "dma_read": [], "dma_release": []},
    "aarch64": {"dma_write": ["dmb oshst"], "window_write": ["dmb oshst"], "window_flush": ["dsb st"],
                "dma_read": ["dmb oshld"], "dma_release": ["dmb oshld"]},
}


def compile_it(compiler, *options):
    command = [compiler, "-std=c++20", "-O2", f"-I{ROOT}", "-o", "-", *options, str(ROOT / "tests/driver/barriers.cpp")]
    return subprocess.run(command, capture_output=True, text=True)


def bodies(assembly):
    """Instructions of each function, one blank between name and operands, without the return."""
    found = {}
    for name, body in re.findall(r"^(\w+):\n(.*?)\.size\t\1", assembly, re.M | re.S):
        lines = [" ".join(line.split()) for line in body.splitlines() if re.match(r"\t[a-z]", line)]
        found[name] = [line for line in lines if line not in ("ret", "endbr64")]
    return found


def check(processor, compiler, *options):
    run = compile_it(compiler, "-S", *options)
    if run.returncode != 0:
        return [f"{processor}: does not compile:\n{run.stderr}"]
    code = bodies(run.stdout)
    wrong = [f"{processor}: {name} is {code.get(name)}, not {expected}"
             for name, expected in BARRIERS[processor].items() if code.get(name) != expected]
    accesses = [line for line in code.get("kept_apart", []) if re.search(r"\((%rdi)\)|\[x0\]", line)]
    if compiler_processor(compiler) == processor and len(accesses) != 3:
        wrong.append(f"{processor}: the compiler moved accesses over a barrier: {code.get('kept_apart')}")
    print(f"{processor}: {', '.join(f'{n} {c}' for n, c in code.items() if n in BARRIERS[processor])}")
    return wrong


def compiler_processor(compiler):
    return subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=True).stdout.split("-")[0]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    compiler, own = sys.argv[1], compiler_processor(sys.argv[1])
    wrong = check(own, compiler)
    if own != "aarch64":
        wrong += check("aarch64", compiler, "-DPRETEND_ARM64")
        cross = shutil.which("aarch64-linux-gnu-g++")
        if cross:
            wrong += check("aarch64", cross)
            if compile_it(cross, "-c", "-o", "/dev/null").returncode != 0:
                wrong.append("aarch64: does not assemble")
        else:
            print("aarch64: not assembled, there is no aarch64-linux-gnu-g++")
    unknown = compile_it(compiler, "-S", "-DPRETEND_UNKNOWN")
    if unknown.returncode == 0 or "say what orders memory" not in unknown.stderr:
        wrong.append("a processor that nobody has thought of compiles")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
