"""What the RTL scripts share: where the sources are and how Yosys reads them."""
import hashlib
import json
import pathlib
import re
import subprocess
import sys

import needed

ROOT = pathlib.Path(__file__).resolve().parent.parent
RTL = ROOT / "rtl"
PACKAGE = RTL / "generated/rnic_pkg.sv"


def modules(source=ROOT):
    """Every module of the RTL of a checkout, by name: its file."""
    return {file.stem: file for file in sorted((source / "rtl").rglob("*.sv")) if file.name != PACKAGE.name}


def instances(file, names):
    """Names of the modules that `file` instantiates."""
    text = re.sub(r"//[^\n]*", "", file.read_text())
    return {name for name in re.findall(r"^\s*(\w+)\s+(?:#\s*\(|u_\w+\s*\()", text, re.M) if name in names and name != file.stem}


def closure(top, names):
    """`top` and all modules below it."""
    found, todo = set(), [top]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += instances(names[name], names)
    return found


def subsystems(names):
    """What rnic_top is made of: its modules, and those inside of its rooms (the ones of rtl/top)."""
    found = instances(names["rnic_top"], names)
    rooms = {name for name in found if names[name].parent.name == "top"}
    return found.union(*(instances(names[room], names) for room in rooms))


def yosys(commands, log, top, names, timeout=1800, source=ROOT):
    """Runs Yosys on `top` and what it needs, of the checkout `source`; returns its log. Exits with the end of the log when it fails, or does not
    end within `timeout` seconds."""
    needed.require("yosys", "yosys")
    files = " ".join(str(names[name]) for name in sorted(closure(top, names)))
    script = f"read_verilog -sv -DSYNTHESIS -I{source}/rtl/include {source}/rtl/generated/{PACKAGE.name} {files}; hierarchy -check -top {top}; {commands}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as out:
        try:
            result = subprocess.run(["yosys", "-p", script], stdout=out, stderr=subprocess.STDOUT, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            sys.exit(f"{top}: Yosys has not ended within {timeout} s, log in {log}")
    text = log.read_text()
    if result.returncode:
        sys.exit("".join(text[-3000:]) + f"\n{top}: Yosys failed, log in {log}")
    return text


def seal(names, source, *rest):
    """A digest of the modules in `names` (comments and blanks aside), what they include, the version of Yosys, and `rest`: equal only for the same work."""
    needed.require("yosys", "yosys")
    version = subprocess.run(["yosys", "-V"], stdout=subprocess.PIPE, text=True, check=True).stdout
    files = [*names.values(), source / "rtl/generated" / PACKAGE.name, *(source / "rtl/include").glob("*.svh")]
    parts = [re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", file.read_text())) for file in sorted(files)]
    return hashlib.sha256("\n".join([*parts, version, *rest]).encode()).hexdigest()


class Passed:
    """Record of checks of the RTL that have passed, by name: the seal of what they checked. A check of the same sources by the same Yosys need not run again."""

    def __init__(self, file):
        self.file = file

    def read(self):
        return json.loads(self.file.read_text()) if self.file and self.file.is_file() else {}

    def holds(self, name, value):
        return self.read().get(name) == value

    def record(self, name, value):
        if self.file:
            self.file.write_text(json.dumps({**self.read(), name: value}, indent=1, sort_keys=True) + "\n")
