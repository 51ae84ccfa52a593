#!/usr/bin/env python3
"""Faults of the Linux driver and its provider, planted one at a time: the machine must name the rule of the host interface that each breaks
(docs/guest.md, What the machine looks at).

usage: linux_planted.py RNIC FOLDER [NAME...] [--as-it-is] [--nic NIC]

FOLDER has what was built of driver/linux and driver/rdma-core. NAME: of planted_driver.toml; none: all. Without names, or with --as-it-is, the driver as it
is does the same work first, and nothing may be said. Faults of the provider are left out where it was not built. Exit code: 0 all is well, 1 something is not, 77
something is missing that is needed.
"""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

from linux import SKIP, Failure, Machine, outcome
from linux_driver import ROOT, SHELL
from linux_storage import NVME_DISK, NVME_USE
from linux_storage import SHELL as STORAGE

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 200  # seconds, until the machine says something
# To a station: its own, so that they come back in, or that of the other host.
FRAMES = """
ip neigh replace 10.0.0.9 lladdr 02:00:00:00:00:%02d nud permanent dev $(ls /sys/bus/pci/drivers/rnic_ib/*/net | head -n 1)
python3 -c '
import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
SO_SNDBUFFORCE = 32
sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 22)
for i in range(%d):
    sender.sendto(bytes(1000), ("10.0.0.9", 9))
    time.sleep(%g)
'
sleep 1
"""
NVME = (STORAGE + NVME_DISK + NVME_USE).replace("bs=256k count=8", "bs=64k count=4").replace("2097152", "262144")
WORK = {
    "load": "sleep 1\n",
    "frames": FRAMES % (1, 200, 0),
    "flood": FRAMES % (2, 3000, 0),
    "reset": "echo 1 >$(ls -d /sys/bus/pci/drivers/rnic_ib/0000*)/reset\nsleep 1\n",
    "nvme": NVME,
    "verbs": "pair ibv_rc_pingpong -c -g 1 -n 20\npair ibv_srq_pingpong -c -g 1 -n 10 -q 4\npair ibv_rc_pingpong -c -g 1 -n 40 -r 8\n",
}


def read_table(name="planted_driver.toml"):
    with open(HERE / name, "rb") as file:
        return tomllib.load(file)


def change(tree, one):
    file = tree / one["file"]
    text = file.read_text()
    old = one["old"]
    if text.count(old) != 1:
        raise Failure(f"{one['file']} does not have once: {old}")
    file.write_text(text.replace(old, one["new"]))


def build(tree, folder, built, changes, source=ROOT):
    """Driver, and provider where there is one, with the changes; what they do not touch is as it was built."""
    for name in ("linux", "rdma-core"):
        shutil.copytree(source / "driver" / name, tree / "driver" / name)
        shutil.copy(HERE / "visible_barriers.h", tree / "driver" / name)
    for one in changes:
        change(tree, one)
    files = [one["file"] for one in changes]
    folder.mkdir()
    provider = next(iter(built.glob("librnic-rdmav*.so")), None)
    parts = [("linux", built / "rnic_ib.ko"), ("rdma-core", provider)]
    for name, there in parts:
        if there is None:
            continue
        if any(file.startswith(f"driver/{name}/") for file in files):
            version = [(built / "version").read_text().strip()] if name == "linux" else []
            subprocess.run([tree / "driver" / name / "build.sh", folder, *version], check=True)
        else:
            shutil.copy(there, folder)
    shutil.copy(built / "version", folder)


def run(rnic, nic, built, changes, late, work, plant):
    """What the machine says, first; and whether the guest has done its work."""
    with tempfile.TemporaryDirectory(prefix="rnic-planted") as name:
        place = pathlib.Path(name)
        build(place / "tree", place / "built", built, changes)
        machine = Machine(rnic, place, "--guest", "0", "--nic", nic, *(["--late-entries"] if late else []), *(plant or {}).get("machine", []))
        try:
            return watch(machine, built, place, work, plant)
        finally:
            machine.give_up()


def watch(machine, built, place, work, plant):
    kernel = (built / "version").read_text().strip()
    guest = machine.guest(0, str(ROOT / "driver/linux/guest.sh"), str(place / "built"), "0", "bash", "-c", SHELL + work, kernel=kernel)
    if plant is None:
        text = outcome(guest)
        figures = machine.figures(0)["ownership"]
        machine.end()
        return machine.told(), text, figures
    end = time.monotonic() + PATIENCE
    while not machine.told() and guest.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.2)
    if guest.poll() is None:
        os.killpg(guest.pid, signal.SIGKILL)
    text, _ = guest.communicate()
    if guest.returncode == SKIP:
        print(text)
        sys.exit(SKIP)
    # It lives. A frame that the NIC was sending when its guest was killed may be marked as bad, so its exit code tells nothing.
    machine.wait_until(0, lambda figures: not figures["running"], "the machine does not see that its guest is gone")
    return machine.told(), text, None


def check_clean(rnic, nic, built, barriers, works):
    for late in (False, True):
        lines, text, figures = run(rnic, nic, built, barriers if late else [], late, "\n".join(WORK[work] for work in works), None)
        if lines or not figures["entries"] or not figures["slots"]:
            raise Failure(f"of the driver as it is the machine says {lines}, having seen {figures}:\n{text}")
        print(f"the driver as it is{', with late entries' if late else ''}: nothing is said of {figures['slots']} slots and {figures['entries']} entries", flush=True)


def check_plant(rnic, nic, built, barriers, plant):
    late = plant.get("late", False)
    lines, text, _ = run(rnic, nic, built, (barriers if late else []) + [plant], late, WORK[plant["work"]], plant)
    if not lines:
        raise Failure(f"{plant['name']}: nothing is said\n{text}")
    if not any(f"the driver breaks {rule}:" in lines[0] for rule in plant["rules"]):
        raise Failure(f"{plant['name']}: not {plant['rules']}, but {lines}\n{text}")
    print(f"{plant['name']}: {lines[0]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--as-it-is", action="store_true")
    parser.add_argument("--nic", default="rtl")
    arguments = parser.parse_args()
    rnic, built = str(pathlib.Path(arguments.rnic).resolve()), pathlib.Path(arguments.folder).resolve()
    if not (built / "rnic_ib.ko").exists():
        print(f"there is no {built / 'rnic_ib.ko'}: build the target rnic_ib (docs/kernel_driver.md)")
        sys.exit(SKIP)
    table = read_table()
    provider = bool(list(built.glob("librnic-rdmav*.so")))
    barriers = [one for one in table["barriers"] if provider or "/linux/" in one["file"]]
    plants = [one for one in table["plant"] if provider or "/linux/" in one["file"]]
    if not provider:
        print("the provider was not built: its faults are left out")
    failures = []
    try:
        if not arguments.names or arguments.as_it_is:
            check_clean(rnic, arguments.nic, built, barriers, [work for work in WORK if work != "verbs" or provider])
        for plant in plants:
            if arguments.names and plant["name"] not in arguments.names:
                continue
            try:
                check_plant(rnic, arguments.nic, built, barriers, plant)
            except Failure as failure:
                print(failure, flush=True)
                failures.append(plant["name"])
    except Failure as failure:
        print(f"linux_planted.py: {failure}")
        sys.exit(1)
    if failures:
        print(f"linux_planted.py: not named: {', '.join(failures)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
