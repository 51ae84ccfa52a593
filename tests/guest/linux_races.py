#!/usr/bin/env python3
"""Failure, recovery, reset, removal and the interface's own opening of the Linux driver, two at a time (docs/kernel_driver.md): in a driver whose moments
are made long (widened_driver.toml), so that one falls into the other. The kernel's checks of memory look on.

usage: linux_races.py RNIC FOLDER [--nic NIC] [--source TREE]

FOLDER has what was built of driver/linux and driver/rdma-core. --source: another tree than this one, whose driver is taken. Exit code: 0 all is well, 1
something is not, 77 something is missing that is needed.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from linux import SKIP, Failure
from linux_driver import CHECKS, ROOT, guests
from linux_planted import build, read_table

# `meet FIRST SECONDS SECOND`: the second begins some time behind the first; then both are through, and the device works.
RACES = r"""
trap - ERR
set +e
device=$(ls -d /sys/bus/pci/drivers/rnic_ib/0000*)
fail() { echo 1 >/sys/module/rnic_ib/parameters/fail; }
reset() { echo 1 >$device/reset; }
reload() { rmmod rnic_ib; insmod {folder}/rnic_ib.ko; }
toggle() { for i in 1 2 3 4 5 6; do ip link set eth0 down; ip link set eth0 up; sleep 0.1; done; } 2>/dev/null
address() {
  ip link set eth0 address 02:00:00:00:00:01 up
  ip addr show dev eth0 | grep -q 10.0.0.1 || ip addr add 10.0.0.1/24 dev eth0
} 2>/dev/null
works() {
  for try in $(seq 60); do
    address
    timeout 60 bash -c "$(declare -f pair); pair ibv_rc_pingpong -c -g 1 -n 5" >/tmp/pair 2>&1 && return
    quiet
    sleep 0.5
  done
  cat /tmp/pair; dmesg | tail -20
  echo "FAILED: it does not work again"
  exit 1
}
meet() { $1 & first=$!; sleep $2; $3 2>/dev/null; wait $first; works; quiet; echo "well: $1, $2 s later $3"; }
quiet() { if faults_told; then exit 1; fi; }
works
while :; do {objects} churn; sleep 0.2; done >/dev/null 2>&1 & churn=$!
for delay in 0.1 0.4; do meet fail $delay true; done
kill $churn; wait $churn 2>/dev/null
for delay in 0.1 0.5 0.9 1.3; do meet reset $delay fail; done
for delay in 0.4 0.8 1.2; do meet fail $delay reset; done
for delay in 0.4 0.8 1.2; do meet fail $delay reload; done
for delay in 0.1 0.5 0.9; do meet reload $delay fail; done
for delay in 0.1 0.8; do meet reset $delay toggle; done
fail
sleep 0.5
rmmod rnic_ib
quiet
if grep rnic /proc/interrupts /proc/iomem /proc/vmallocinfo; then echo "the module is gone, and has left this"; exit 1; fi
exit 0
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("folder")
    parser.add_argument("--nic", default="model")
    parser.add_argument("--source", type=pathlib.Path, default=ROOT)
    arguments = parser.parse_args()
    rnic, built = str(pathlib.Path(arguments.rnic).resolve()), pathlib.Path(arguments.folder).resolve()
    for name in ("rnic_ib.ko", "librnic-rdmav34.so"):
        if not (built / name).exists():
            print(f"there is no {built / name}: build the targets rnic_ib and rnic_provider (docs/kernel_driver.md)")
            sys.exit(SKIP)
    try:
        with tempfile.TemporaryDirectory(prefix="rnic-races") as name:
            place = pathlib.Path(name)
            build(place / "tree", place / "built", built, read_table("widened_driver.toml")["widen"], arguments.source)
            guests(rnic, place / "built", arguments.nic, RACES, append=CHECKS)
    except (Failure, subprocess.CalledProcessError) as failure:
        print(f"linux_races.py: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
