#!/usr/bin/env python3
"""Write the tables of docs/synthesis.md: area and depth of each block, of the foundation and now, and of each subsystem in LUTs.

usage: synth_table.py [--check] [--folder DIR] [--page FILE]
  --check   change nothing; exit 1 when the page does not show the figures
  --folder  where the figures are (default docs/synthesis): foundation.json and now.json, made by `synth.py --below --json`, luts.json by `synth.py --luts --json`
  --page    the page; what stands between the lines that begin and end a table is written anew (default docs/synthesis.md)
"""
import argparse
import json
import pathlib
import sys

from lut_levels import GOAL
from rtl_tools import ROOT, modules, subsystems

BLOCKS = ("<!-- table: scripts/synth_table.py -->", "<!-- end of table -->")
LUTS = ("<!-- table of LUTs: scripts/synth_table.py -->", "<!-- end of table of LUTs -->")
LUT_COLUMNS = (("levels", "levels"), ("deep", f"ends beyond {GOAL}"), ("luts", "LUTs"), ("carry", "CARRY4"), ("flops", "flip-flops"), ("ramb36", "RAMB36"),
               ("lutram", "LUT RAM"))
LEVEL_NS, CLOCK_MHZ = 0.4, 250
COLUMNS = (("gates", "gates"), ("flops", "flip-flops"), ("bits", "memory bits"), ("depth", "depth"))


def number(value):
    return f"{value:,}"


def row(name, then, now):
    cells = [number(figures[key]) if key in figures else "–" for key, _ in COLUMNS for figures in (then.get(name, {}), now.get(name, {}))]
    return f"| {name} | " + " | ".join(cells) + " |"


def table(title, names, then, now):
    head = "| " + title + " | " + " | ".join(f"{label}, foundation | now" for _, label in COLUMNS) + " |"
    rule = "|---|" + "---:|" * (2 * len(COLUMNS))
    return [head, rule, *(row(name, then, now) for name in names), ""]


def page(then, now):
    """The tables: the NIC and its subsystems, then the blocks by folder."""
    sources = modules()
    known = set(then) | set(now)
    large = ["rnic_top", *sorted(subsystems(sources) & known)]
    lines = ["", *table("the NIC, its subsystems", large, then, now)]
    folders = {}
    for name in sorted(known - set(large)):
        folders.setdefault(sources[name].parent.name if name in sources else "gone", []).append(name)
    for folder, names in sorted(folders.items()):
        lines += table(f"`{folder}`", names, then, now)
    return "\n".join(lines)


def luts_page(found):
    """What the levels mean for the clock, and the table of LUTs by subsystem."""
    levels = max(entry["levels"] for entry in found.values())
    whole = {key: levels if key == "levels" else sum(entry[key] for entry in found.values()) for key, _ in LUT_COLUMNS}
    lines = ["", f"**Figures in nanoseconds, here and of `rnic bench`, hold at a clock of {CLOCK_MHZ} MHz; the deepest path has {levels} levels, with which an UltraScale+ FPGA "
             f"runs at about {1000 / (LEVEL_NS * levels):.0f} MHz today.**", ""]
    lines += ["| subsystem | " + " | ".join(label for _, label in LUT_COLUMNS) + " | the deepest path |", "|---|" + "---:|" * len(LUT_COLUMNS) + "---|"]
    for name, entry in [("the NIC", {**whole, "from": "", "to": ""}), *sorted(found.items())]:
        path = f"`{entry['from']}` to `{entry['to']}`" if entry["to"] else ""
        lines.append(f"| {name} | " + " | ".join(number(entry[key]) for key, _ in LUT_COLUMNS) + f" | {path} |")
    return "\n".join([*lines, ""])


def renewed(text, marks, made, page_name):
    """`text` with `made` between its lines `marks`."""
    begin, end = marks
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        sys.exit(f"synth_table.py: {page_name} has no place for a table: a line {begin} and a line {end}")
    return text[:text.index(begin)] + begin + "\n" + made + text[text.index(end):]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", default=ROOT / "docs/synthesis", type=pathlib.Path)
    parser.add_argument("--page", default=ROOT / "docs/synthesis.md", type=pathlib.Path)
    options = parser.parse_args()
    try:
        then, now, luts = (json.loads((options.folder / f"{name}.json").read_text()) for name in ("foundation", "now", "luts"))
        text = options.page.read_text()
    except (OSError, json.JSONDecodeError) as error:
        sys.exit(f"synth_table.py: {error}")
    made = renewed(renewed(text, BLOCKS, page(then, now), options.page), LUTS, luts_page(luts["figures"]), options.page)
    if made == text:
        return
    if options.check:
        sys.exit(f"synth_table.py: {options.page} does not show the figures of {options.folder}: run scripts/synth_table.py")
    options.page.write_text(made)


if __name__ == "__main__":
    main()
