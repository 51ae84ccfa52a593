#!/usr/bin/env python3
"""Runs scripts where an optional program or package is missing, and checks that the recipes of the build environment agree.

usage: check_scripts.py missing | environment | order

missing: each script of CASES runs with a PATH that has the basic programs of Debian only. It must print one line that names what is missing and how to
get it, and exit with 77. environment: Containerfile and .ci/run install the same packages, and devcontainer.json builds from the Containerfile.
order: a script that builds or runs tests configures with -DBUILD_TESTING=ON, because another script may have left the build folder without them.
Exit code: 0 all is well, 1 something is not, and is printed.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a minimal Debian has (coreutils, findutils, grep, sed, gzip, tar, perl-base, dpkg), and Python, which runs the scripts.
BASIC = """basename bash cat chmod cmp cp cut date dirname env find grep head id install ln ls mkdir mktemp mv nproc od perl python3 readlink realpath rm sed sh
    sha256sum sort tail tar tee test touch tr true uname wc xargs""".split()
TOOL = "/bin/true"  # stands for the tool: no script may get as far as to run it

# Name: command, what the line must have, programs that are there besides BASIC.
CASES = {
    "kernel headers": ("driver/linux/build.sh {folder}/module", "kernel headers.*linux-headers-amd64", ""),
    "kernel headers of a version": ("driver/linux/build.sh {folder}/module 6.1.0-0-amd64", "kernel headers.*linux-headers-6.1.0-0-amd64", ""),
    "kernel headers for sparse": ("driver/linux/check.sh {folder}/module", "kernel headers.*linux-headers-amd64", "sparse xz"),
    "sparse": ("driver/linux/check.sh {folder}/module", "sparse is missing", ""),
    "apt-get for the provider": ("driver/rdma-core/build.sh {folder}/provider", "apt-get is missing", ""),
    "libibverbs for the provider": ("driver/rdma-core/build.sh {folder}/provider", "libibverbs is missing.*libibverbs-dev", "apt-get dpkg-source dpkg-query:1"),
    "busybox": ("testbench/guest/linux/prepare.sh {folder}/linux /init", "busybox is missing.*busybox-static", ""),
    "kmod": ("testbench/guest/linux/prepare.sh {folder}/linux /init", "depmod is missing.*kmod", "busybox cpio gzip apt-get apt-cache dpkg-deb"),
    "lists of apt": ("testbench/guest/linux/prepare.sh {folder}/linux /init", "apt-get update", "busybox cpio gzip apt-get apt-cache:100 dpkg-deb depmod modprobe"),
    "guest with Soft-RoCE": ("tests/interop/build_guest.sh {folder}/guest", "apt-get is missing.*--interop", ""),
    "cargo": ("tests/clients/rust/run.sh {tool} {folder}", "cargo is missing.*1.85", ""),
    "rustc": ("tests/clients/rust/run.sh {tool} {folder}", "rustc is missing.*1.85", "cargo"),
    "rustc that does not run": ("tests/clients/rust/run.sh {tool} {folder}", "rustc does not run.*1.85", "cargo rustc:1"),
    "rustup": ("tests/clients/rust/run.sh {tool} {folder}", "this is .*1.85", "cargo rustc"),
    "QEMU": ("tests/interop/interop.py {tool} {folder}", "qemu.*scripts/interop.sh", ""),
    "QEMU for vectors": ("tests/interop/verify_device.py {tool} {folder} tests/vectors --known tests/interop/soft_roce_vectors.toml", "qemu.*scripts/interop.sh", ""),
    "driver in a guest": ("tests/guest/linux_driver.py {tool} {folder}", "rnic_ib.ko", ""),
    "planted driver": ("tests/guest/linux_planted.py {tool} {folder}", "rnic_ib.ko", ""),
    "races of the driver": ("tests/guest/linux_races.py {tool} {folder}", "rnic_ib.ko", ""),
    "provider for kernel checks": ("scripts/kernel_checks.sh {folder}", "rnic_provider", ""),
    "parser for a kernel": ("tests/guest/kernel/build.sh kasan", "bison is missing.*bison", "apt-get dpkg-deb xz make gcc bc flex"),
    "driver with Soft-RoCE": ("tests/guest/linux_peers.py {tool} {folder} {folder}", "rnic_ib.ko", ""),
    "perftest": ("tests/verbs/clients.py {tool} perftest", "ib_write_bw.*scripts/setup.sh --clients", ""),
    "gdb": ("tests/verbs/debugging.py {tool} docs/debugging.md", "gdb.*scripts/setup.sh --clients", ""),
    "Chromium": ("tests/report/test_report.py {tool} {folder}", "Chromium.*scripts/", ""),
    "Chromium for pictures": ("scripts/screenshots.py {tool} {folder} {folder}", "Chromium.*--browser", ""),
    "Slurm": ("scripts/campaign --runs 1", "sbatch.*slurm-wlm", ""),
    "Slurm for the test": ("tests/nightly/test_campaign.py {folder}", "sbatch.*--slurm", ""),
    "valgrind": ("scripts/driver_cost.py {tool}", "valgrind.*package valgrind", ""),
    "perf": ("scripts/simulator_profile.py {tool} copy", "perf.*linux-perf", ""),
    "fst2vcd": ("scripts/trace_usage.py waves.fst", "fst2vcd.*gtkwave", ""),
    "Yosys": ("scripts/synth.py icrc --out {folder}", "yosys.*package yosys", ""),
    "Yosys for proofs": ("scripts/prove.py", "yosys.*package yosys", ""),
    "clang-format": ("scripts/check_format.py", "clang-format.*package clang-format", ""),
    "shellcheck": ("tests/tools/check_shell.sh", "shellcheck.*package shellcheck", ""),
}
# What scripts look for in a folder of their own choice cannot be hidden from them. Name: file, with which there is no such case.
UNHIDDEN = {"kmod": pathlib.Path("/usr/sbin/depmod")}


def make_path(folder, more):
    """A folder of links to BASIC and of programs that do nothing but exit with the number behind their name (0)."""
    folder.mkdir()
    for name in BASIC:
        if found := sys.executable if name == "python3" else shutil.which(name):
            (folder / name).symlink_to(found)
    for word in more.split():
        name, _, code = word.partition(":")
        (folder / name).write_text(f"#!/bin/sh\nexit {code or 0}\n")
        (folder / name).chmod(0o755)
    return folder


def wrong_with(command, said, more, folder):
    """What is wrong with a case, or nothing."""
    environment = {"PATH": str(make_path(folder / "bin", more)), "HOME": str(folder), "LANG": "C.UTF-8", "RNIC_KERNEL_HEADERS": str(folder),
                   "RNIC_CHECKPATCH": str(folder / "checkpatch.pl")}
    (folder / "checkpatch.pl").write_text("exit 0\n")
    words = [word.format(folder=folder, tool=TOOL) for word in command.split()]
    interpreter = [sys.executable] if words[0].endswith(".py") else []
    run = subprocess.run([*interpreter, str(ROOT / words[0]), *words[1:]], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=60)
    if run.returncode != 77:
        return f"exit code {run.returncode}, not 77:\n{run.stdout}"
    if not any(re.search(said, line) for line in run.stdout.splitlines()):
        return f"no line that matches '{said}':\n{run.stdout}"
    return "" if "Traceback" not in run.stdout else run.stdout


def check_missing():
    wrong = []
    for name, case in CASES.items():
        if name in UNHIDDEN and UNHIDDEN[name].exists():
            continue
        with tempfile.TemporaryDirectory(prefix="rnic_missing_") as folder:
            if problem := wrong_with(*case, pathlib.Path(folder)):
                wrong.append(f"{name} is missing, {case[0]}: {problem}")
    return wrong


def setup_of(file):
    """The switches with which a file runs scripts/setup.sh."""
    return re.findall(r"scripts/setup\.sh((?: --\w+)*)", re.sub(r"^#.*", "", (ROOT / file).read_text(), flags=re.M))


def check_environment():
    wrong = []
    image, ci = ([switches for switches in setup_of(file) if switches] for file in ("Containerfile", ".ci/run"))
    if image != ci:
        wrong.append(f"Containerfile installs with scripts/setup.sh{image}, .ci/run with scripts/setup.sh{ci}")
    place = ROOT / ".devcontainer"
    built = json.loads((place / "devcontainer.json").read_text())["build"]
    if (place / built["dockerfile"]).resolve() != ROOT / "Containerfile" or (place / built["context"]).resolve() != ROOT:
        wrong.append("devcontainer.json does not build from Containerfile")
    return wrong


def check_order():
    tests = {name for file in (ROOT / "tests").rglob("CMakeLists.txt") for name in re.findall(r"add_(?:executable|library)\((\w+)", file.read_text())}
    wrong = []
    for file in sorted((ROOT / "scripts").glob("*.sh")):
        text = re.sub(r"^ *#.*", "", file.read_text(), flags=re.M).replace("\\\n", " ")
        targets = [name for names in re.findall(r"cmake --build .*?--target ([\w ]+)", text) for name in names.split()]
        everything = re.search(r"cmake --build (?!.*--target)|^ *ctest ", text, re.M)
        if everything or any(name in tests or name.startswith("test_") for name in targets):
            lines = re.findall(r"^ *cmake --preset.*", text, re.M)
            wrong += [f"scripts/{file.name} builds tests, without -DBUILD_TESTING=ON:{line}" for line in lines if "-DBUILD_TESTING=ON" not in line]
    return wrong


def main():
    checks = {"missing": check_missing, "environment": check_environment, "order": check_order}
    if len(sys.argv) != 2 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    wrong = checks[sys.argv[1]]()
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
