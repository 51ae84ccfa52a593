#!/usr/bin/env python3
"""Write the table of docs/synthesis.md: area and depth of each block, of the foundation and now.

usage: synth_table.py [--check] [--folder DIR] [--page FILE]
  --check   change nothing; exit 1 when the page does not show the figures
  --folder  where the figures are: foundation.json and now.json, made by `synth.py --below --json` (default docs/synthesis)
  --page    the page; what stands between its lines TABLE and END is written anew (default docs/synthesis.md)
"""
import argparse
import json
import pathlib
import sys

from rtl_tools import ROOT, modules, subsystems

BEGIN, END = "<!-- table: scripts/synth_table.py -->", "<!-- end of table -->"
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", default=ROOT / "docs/synthesis", type=pathlib.Path)
    parser.add_argument("--page", default=ROOT / "docs/synthesis.md", type=pathlib.Path)
    options = parser.parse_args()
    try:
        then, now = (json.loads((options.folder / f"{name}.json").read_text()) for name in ("foundation", "now"))
        text = options.page.read_text()
    except (OSError, json.JSONDecodeError) as error:
        sys.exit(f"synth_table.py: {error}")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"synth_table.py: {options.page} has no place for the table: a line {BEGIN} and a line {END}")
    made = text[:text.index(BEGIN)] + BEGIN + "\n" + page(then, now) + text[text.index(END):]
    if made == text:
        return
    if options.check:
        sys.exit(f"synth_table.py: {options.page} does not show the figures of {options.folder}: run scripts/synth_table.py")
    options.page.write_text(made)


if __name__ == "__main__":
    main()
