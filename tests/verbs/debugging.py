#!/usr/bin/env python3
"""Runs the commands of docs/debugging.md with gdb, as they stand there, and checks what they print.

usage: debugging.py RNIC PAGE

A line of a block `sh` that ends with & runs in the background, until what it starts can be reached. The block `gdb` behind a block `sh` is typed to it.
Programs get a TCP port that no other test has. Exit code: 0 all is well, 1 something is not, 77 a program is missing.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import tcp_ports  # noqa: E402

PATIENCE = 300  # seconds; a machine under load is slow
NEEDED = {"gdb": "gdb", "ibv_rc_pingpong": "ibverbs-utils", "tshark": "tshark", "fst2vcd": "gtkwave"}
LISTENS = "0A"  # state of a socket in /proc/net/tcp


class Failure(Exception):
    pass


def sections(page):
    """For each heading of the page, its fenced blocks: (language, text)."""
    found = {}
    for part in re.split(r"^## ", page.read_text(), flags=re.M):
        found[part.splitlines()[0]] = re.findall(r"^```(sh|gdb)\n(.*?)^```$", part, re.M | re.S)
    return found


def listens(port):
    """Whether a socket of TCP listens at the port."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        lines = pathlib.Path(table).read_text().splitlines()[1:] if pathlib.Path(table).exists() else []
        if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == LISTENS for line in lines):
            return True
    return False


class Shell:
    """Runs blocks in a folder, with the tool in PATH; what runs in the background ends with it."""

    def __init__(self, rnic, folder):
        self.folder, self.port, self.background = folder, tcp_ports.free_port(), []
        self.environment = {**os.environ, "PATH": f"{rnic.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "DEBUGINFOD_URLS": ""}
        self.environment.pop("XDG_RUNTIME_DIR", None)

    def start(self, line):
        process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.background.append(process)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if process.poll() is not None:
                raise Failure(f"{line}: exit code {process.returncode}\n{process.stdout.read()}")
            served = subprocess.run(["rnic", "ps", "--dir", "m"], cwd=self.folder, env=self.environment, capture_output=True).returncode == 0
            if served if line.startswith("rnic serve") else listens(self.port):
                return
            time.sleep(0.05)
        raise Failure(f"{line}: cannot be reached")

    def run(self, block, typed=""):
        """What the lines in the foreground print. Raises Failure when one ends with another code than 0."""
        said = ""
        for line in block.replace("ibv_rc_pingpong", f"ibv_rc_pingpong -p {self.port}").splitlines():
            if line.rstrip().endswith("&"):
                self.start(line.rstrip(" &"))
                continue
            run = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment, input=typed, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
            said += run.stdout
            if run.returncode != 0:
                raise Failure(f"{line}: exit code {run.returncode}\n{run.stdout}")
        return said

    def end(self):
        """Ends what runs in the background: programs first, then the machine, which must end with 0."""
        for process in reversed(self.background):
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=PATIENCE)
            if process.returncode != 0:
                raise Failure(f"in the background: exit code {process.returncode}\n{said}")

    def kill(self):
        for process in self.background:
            process.kill()


def expect(said, *patterns):
    """In this order, each behind the other."""
    at = 0
    for pattern in patterns:
        found = re.compile(pattern, re.M).search(said, at)
        if found is None:
            raise Failure(f"'{pattern}' is missing, or not where it belongs, in:\n{said}")
        at = found.end()


def check_head(shell, blocks):
    expect(shell.run(blocks[0][1]), r"^Breakpoint 1(\.\d+)?, .*\bibv_open_device.* at .*driver/verbs/\w+\.cpp:\d+$", r"^#0 .*ibv_open_device \(\w+=0x.* at .*\.cpp:\d+$")


def check_stop(shell, blocks):
    (_, commands), (_, typed) = blocks
    said = re.sub(r"\n {4}", "", shell.run(commands, typed))  # gdb breaks lines
    expect(said, r"Breakpoint 1(\.\d+)?, rnic::verbs::poll_cq \(face=0x\w+, count=\d+, completions=0x\w+\) at .*driver/verbs/poll\.cpp:\d+$",
           r"#0 .*poll_cq \(.* at .*poll\.cpp:\d+$", r"^host1\n  TxFrames +[1-9]", r"RRoCE .* RC Send ", r"^(\(gdb\) )?[1-9]\d*$", r"\b5 iters in ", r"exited normally")
    for name in ("waves.fst", "waves.host1.fst", "waves.host1.gtkw", "wire.pcap"):
        if not (shell.folder / name).stat().st_size:
            raise Failure(f"{name} is empty")


def check_breakpoints(shell, page, libraries):
    """gdb finds each place of the table in one of the libraries, with a line where it is one place."""
    places = {"libibverbs.so.1": [], "librdmacm.so.1": [], "librnic_nd2.so": []}
    for place in re.findall(r"^\| .* \| `([\w:]+)` \|$", page.read_text(), re.M):
        library = "librnic_nd2.so" if "::nd2::" in place else "librdmacm.so.1" if place.startswith("rdma_") else "libibverbs.so.1"
        places[library].append(place)
    for library, ones in places.items():
        if not ones:
            raise Failure(f"the table has no place of {library}")
        breaks = " ".join(f"-ex 'break {one}'" for one in ones)
        said = shell.run(f"gdb -batch {breaks} {libraries / library}")
        expect(said, *(rf"^Breakpoint {number} at 0x\w+: (file \S+, line \d+\.|\S+ \(\d+ locations\))$" for number in range(1, len(ones) + 1)))


def check_replay(shell, blocks):
    said = shell.run(blocks[0][1])
    expect(said, "5 iters in", "are those of the log", "are those of the log")
    if (shell.folder / "again.pcap").read_bytes() != (shell.folder / "run/wire.pcap").read_bytes():
        raise Failure("the replay has other packets")
    if not (shell.folder / "again.fst").stat().st_size:
        raise Failure("again.fst is empty")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rnic, page = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    if lacking := [f"{name} (Debian's package {package})" for name, package in NEEDED.items() if shutil.which(name) is None]:
        print(f"skipped: {', '.join(lacking)} is missing; scripts/setup.sh --clients installs it")
        sys.exit(77)
    blocks = sections(page)
    with tempfile.TemporaryDirectory(prefix="rnic_debugging_") as folder:
        shell = Shell(rnic, pathlib.Path(folder))
        try:
            check_head(shell, next(iter(blocks.values())))
            check_stop(shell, blocks["Stop a program, and look at the hardware"])
            shell.end()
            check_breakpoints(shell, page, rnic.parent.parent / "lib")
            check_replay(shell, blocks["Repeat a run"])
        except Failure as failure:
            print(f"debugging.py: {failure}")
            sys.exit(1)
        finally:
            shell.kill()


if __name__ == "__main__":
    main()
