"""What the RTL scripts share: where the sources are and how Yosys reads them."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RTL = ROOT / "rtl"
PACKAGE = RTL / "generated/rnic_pkg.sv"


def modules():
    """Every module of the RTL, by name: its file."""
    return {file.stem: file for file in sorted(RTL.rglob("*.sv")) if file != PACKAGE}


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


def yosys(commands, log, top, names, timeout=1800):
    """Runs Yosys on `top` and what it needs; returns its log. Exits with the end of the log when it fails."""
    files = " ".join(str(names[name]) for name in sorted(closure(top, names)))
    script = f"read_verilog -sv -DSYNTHESIS -I{RTL}/include {PACKAGE} {files}; hierarchy -check -top {top}; {commands}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as out:
        result = subprocess.run(["yosys", "-p", script], stdout=out, stderr=subprocess.STDOUT, timeout=timeout, check=False)
    text = log.read_text()
    if result.returncode:
        sys.exit("".join(text[-3000:]) + f"\n{top}: Yosys failed, log in {log}")
    return text
