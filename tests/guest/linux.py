#!/usr/bin/env python3
"""Boots Linux guests on hosts of machines (rnic linux), and looks whether the NIC is there as it should be (docs/guest.md).

usage: linux.py RNIC PROBE [--kills N]

PROBE is the program that looks, in the guest. Then two guests run it at once on two hosts of one machine; and guests are killed in the
middle of it (N times, 20), while the machine goes on, and is to keep nothing of them. Exit code: 0 all is well, 1 something is not, 77
something is missing that is needed.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 600  # seconds, for one guest; a machine under load is slow
SKIP = 77


class Failure(Exception):
    pass


class Machine:
    def __init__(self, rnic, folder, *arguments):
        self.rnic, self.folder, self.log, self.guests = rnic, folder, folder / "log", []
        ready, tell = os.pipe()
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([rnic, "serve", "--dir", folder / "run", "--ready-fd", str(tell), *arguments],
                                            stdout=log, stderr=subprocess.STDOUT, pass_fds=[tell])
        os.close(tell)
        with os.fdopen(ready) as pipe:
            if not pipe.read(1):
                raise Failure("the machine does not begin: " + self.log.read_text())

    def guest(self, host, *command, kernel=None, append=""):
        which = ["--kernel", kernel] if kernel else []
        guest = subprocess.Popen([self.rnic, "linux", "--dir", self.folder / "run", "--host", str(host), "--append", append, *which, "--", *command],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.guests.append(guest)
        return guest

    def give_up(self):
        """Nothing of it runs any more."""
        for guest in self.guests:
            if guest.poll() is None:
                os.killpg(guest.pid, signal.SIGKILL)
        self.process.kill()

    def all_figures(self):
        asked = subprocess.run([self.rnic, "ps", "--json", "--dir", self.folder / "run"], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(asked.stdout)["results"]["hosts"]

    def figures(self, host):
        return self.all_figures()[host]["guest"]

    def counters(self, host):
        asked = subprocess.run([self.rnic, "stat", "--json", "--dir", self.folder / "run"], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(asked.stdout)["results"]["hosts"][host]["counters"]

    def kept(self):
        """What it has: descriptors by kind, and mappings of guests' memory."""
        own = pathlib.Path("/proc") / str(self.process.pid)
        kinds = collections.Counter()
        for descriptor in (own / "fd").iterdir():
            try:
                kinds[os.readlink(descriptor).split("[")[0]] += 1
            except FileNotFoundError:
                pass  # of somebody who has just asked
        return dict(kinds), (own / "maps").read_text().count("memory-backend-memfd")

    def resident(self):
        """MiB of memory that is its own alone."""
        rollup = (pathlib.Path("/proc") / str(self.process.pid) / "smaps_rollup").read_text()
        return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_")) / 1024

    def told(self):
        """What it has said of drivers that break a rule."""
        return [line for line in self.log.read_text().splitlines() if "the driver breaks" in line]

    def wait_until(self, host, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition(self.figures(host)):
            if time.monotonic() > end:
                raise Failure(what)
            time.sleep(0.05)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        if code != 0:
            raise Failure(f"the machine ended with {code}: " + self.log.read_text())

    def end_well(self):
        """And nothing is to be said of its guests' drivers."""
        seen = [host["guest"]["ownership"] for host in self.all_figures() if "guest" in host]
        self.end()
        if self.told() or not all(one["entries"] and one["slots"] for one in seen):
            raise Failure(f"the machine says of the drivers: {self.told()}, having seen {seen}")


def outcome(guest, patience=PATIENCE):
    try:
        text, _ = guest.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(guest.pid, signal.SIGKILL)
        text, _ = guest.communicate()
        raise Failure(f"the guest does not end:\n{text}")
    if guest.returncode == SKIP:
        print(text)
        sys.exit(SKIP)
    if guest.returncode != 0:
        raise Failure(f"exit code {guest.returncode}:\n{text}")
    return text


def one_guest(rnic, probe):
    """Also without a machine that runs: it has one of its own then."""
    print(outcome(subprocess.Popen([rnic, "linux", "--", probe], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)))
    failing = subprocess.run([rnic, "linux", "--", "sh", "-c", "echo \"it's $0 $1\"; exit 9", "a b", "$c"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    if failing.returncode != 9 or failing.stdout != "it's a b $c\n":
        raise Failure(f"a program that fails: {failing.returncode}, {failing.stdout!r}")


def two_guests(rnic, probe, folder):
    machine = Machine(rnic, folder, "--guest", "0", "--guest", "1")
    for guest in [machine.guest(host, probe) for host in (0, 1)]:
        outcome(guest)
    machine.end()


def killed_guests(rnic, probe, folder, times):
    machine = Machine(rnic, folder, "--guest", "0")
    kept = None
    for i in range(times):
        guest = machine.guest(0, probe)
        # Some in the firmware, some in the kernel, some in the program.
        goal = (5, 60, 200)[i % 3]
        machine.wait_until(0, lambda figures: figures["running"] and figures["config_accesses"] + 20 * figures["reads"] >= goal, "the guest does nothing")
        os.killpg(guest.pid, signal.SIGKILL)
        guest.wait()
        machine.wait_until(0, lambda figures: not figures["running"], "the machine does not see that its guest is gone")
        kept = kept or machine.kept()
        if machine.kept() != kept or kept[1] != 0:
            raise Failure(f"after guest {i + 1} the machine keeps {machine.kept()} descriptors and mappings, not {kept}")
    outcome(machine.guest(0, probe))
    machine.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("probe")
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    rnic, probe = (str(pathlib.Path(path).resolve()) for path in (arguments.rnic, arguments.probe))
    try:
        one_guest(rnic, probe)
        print("one guest: well")
        with tempfile.TemporaryDirectory(prefix="rnic-linux-test") as folder:
            two_guests(rnic, probe, pathlib.Path(folder))
        print("two guests on two hosts: well")
        with tempfile.TemporaryDirectory(prefix="rnic-linux-test") as folder:
            killed_guests(rnic, probe, pathlib.Path(folder), arguments.kills)
        print(f"{arguments.kills} guests killed: the machine lives, and keeps nothing of them")
    except Failure as failure:
        print(f"linux.py: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
