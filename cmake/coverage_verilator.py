#!/usr/bin/env python3
"""Verilator for the preset coverage (docs/coverage.md): verilator_bin with its options, and then a change of what it wrote: the points of coverage
are bytes that all models and processes share (testbench/coverage/cover_points.hpp), not counters of each model, and their names are in a table beside
the sources, MODEL.points, a line each: kind, file, line, column, instance, comment, lines. MODEL is the prefix and a digest of that table.

usage: coverage_verilator.py VERILATOR_OPTIONS...
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

INSERT = re.compile(r'\s*vlSelf->__vlCoverInsert\(&\(vlSymsp->__Vcoverage\[(\d+)\]\),\s*first,\s*"([^"]*)",\s*(\d+),\s*(\d+),'
                    r'\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\);')
COUNTERS = re.compile(r"std::atomic<uint32_t> __Vcoverage\[(\d+)\];")


def change(folder, prefix):
    symbols = folder / f"{prefix}__Syms.h"
    text = symbols.read_text()
    found = COUNTERS.search(text)
    if not found:
        return  # a model without a point
    points, left = {}, 0
    for source in sorted(folder.glob(f"{prefix}*.cpp")):
        code = source.read_text()
        changed = INSERT.sub(lambda match: points.setdefault(int(match[1]), []).append(match.groups()[1:]) or "", code)
        left += "__vlCoverInsert(&(" in changed
        if changed != code:
            source.write_text(changed)
    count = int(found[1])
    if sorted(points) != list(range(count)) or left:
        sys.exit(f"coverage_verilator.py: {prefix} has {count} points, {len(points)} of which have names")
    lines = []
    for number in range(count):
        # A module that is not inlined shares its points among its instances.
        file, line, column, instance, page, comment, covered = points[number][0]
        file = file[file.index("rtl/"):] if "rtl/" in file else file
        lines.append("\t".join((page.split("/")[0], file, line, column, instance, comment, covered)))
    table = "\n".join(lines) + "\n"
    model = f"{prefix}.{hashlib.sha256(table.encode()).hexdigest()[:12]}"
    for old in folder.glob("*.points"):
        old.unlink()
    (folder / f"{model}.points").write_text(table)
    text = text.replace(found[0], "static inline rnic::testbench::CoverPoint* const __Vcoverage =\n"
                        f'        rnic::testbench::cover_points("{model}", {count});')
    symbols.write_text(text.replace('#include "verilated.h"\n', '#include "verilated.h"\n#include "testbench/coverage/cover_points.hpp"\n', 1))


def main():
    options = sys.argv[1:]
    # What it wrote before has been changed: it must write all of it again.
    code = subprocess.run([shutil.which("verilator_bin") or sys.exit("coverage_verilator.py: there is no verilator_bin"), "--no-skip-identical", *options]).returncode
    if code == 0 and "--Mdir" in options:
        change(pathlib.Path(options[options.index("--Mdir") + 1]), options[options.index("--prefix") + 1])
    sys.exit(code)


if __name__ == "__main__":
    main()
