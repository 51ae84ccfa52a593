#!/usr/bin/env python3
"""Compares what libibverbs.so.1, or another library of its kind, exports with a list: names, versions, and that they are functions, but for one variable.

usage: check_exports.py LIBRARY LIST

A line of LIST is NAME@@VERSION (the version that programs linked today get) or NAME@VERSION. Also: the name by which programs ask for it, and
that no symbol of the driver is among them. Exit code: 0 the same, 1 not, and the difference is printed.
"""
import pathlib
import subprocess
import sys

VARIABLES = {"verbs_allow_disassociate_destroy"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Of each symbol but the versions themselves: its name with its version, its type in nm."""
    symbols = {}
    for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        _, kind, name = line.split()
        if kind != "A":
            symbols[name] = kind
    return symbols


def main():
    library, listed = sys.argv[1:]
    symbols = exported(library)
    wanted = set(pathlib.Path(listed).read_text().split())
    wrong = [f"missing: {name}" for name in sorted(wanted - set(symbols))]
    wrong += [f"not in the list: {name}" for name in sorted(set(symbols) - wanted)]
    for name, kind in sorted(symbols.items()):
        if kind not in ("BD" if name.split("@")[0] in VARIABLES else "T"):
            wrong.append(f"{name}: of type {kind}")
    name = f"{pathlib.Path(library).name.split('.so')[0]}.so.1"
    if f"SONAME               {name}\n" not in run("objdump", "-p", library):
        wrong.append(f"SONAME is not {name}")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
