#!/usr/bin/env python3
"""Elaborates the RTL with slang, which reads SystemVerilog as strictly as the commercial tools do: no error, no warning, latches and several
drivers of a variable included.

slang comes from PyPI (pyslang, VERSION below), into build/slang, when it is not there.

usage: slang.py     Exit code: 0 clean, 1 not, and slang says where; 77 slang cannot be installed
"""
import pathlib
import subprocess
import sys
import venv

import needed

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "build/slang"
VERSION = "12.1.0"


def own_python():
    """The interpreter that has slang; made when it is missing."""
    python = PLACE / "bin/python"
    probe = [str(python), "-c", f"import importlib.metadata as m; assert m.version('pyslang') == '{VERSION}'"]
    if python.exists() and subprocess.run(probe, capture_output=True).returncode == 0:
        return python
    try:
        venv.create(PLACE, clear=True, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", f"pyslang=={VERSION}"], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr or error.output
        print(f"slang.py: cannot install pyslang {VERSION} into {PLACE}: {said.decode() if isinstance(said, bytes) else said}", file=sys.stderr)
        needed.missing(f"pyslang {VERSION}", "it needs Debian's package python3-venv, which scripts/setup.sh --tests installs, and a Python package index")
    return python


def elaborate():
    from pyslang.driver import Driver
    package = ROOT / "rtl/generated/rnic_pkg.sv"
    sources = [package, *sorted(path for path in (ROOT / "rtl").rglob("*.sv") if path != package)]
    driver = Driver()
    driver.addStandardArgs()
    arguments = ["slang", f"-I{ROOT}/rtl/include", "--top", "rnic_top", *map(str, sources)]
    if not (driver.parseCommandLine(" ".join(arguments)) and driver.processOptions() and driver.parseAllSources()):
        return 1
    compilation = driver.createCompilation()
    driver.reportCompilation(compilation, True)
    driver.runAnalysis(compilation)
    diagnostics = driver.diagEngine
    driver.reportDiagnostics(False)
    return 1 if diagnostics.numErrors + diagnostics.numWarnings else 0


if __name__ == "__main__":
    if pathlib.Path(sys.prefix).resolve() == PLACE.resolve():
        sys.exit(elaborate())
    sys.exit(subprocess.run([str(own_python()), __file__]).returncode)
