#!/usr/bin/env python3
"""The Linux driver and its provider (docs/kernel_driver.md) in guests: Debian's programs, unmodified, on hosts of a machine.

usage: linux_driver.py RNIC FOLDER [--long] [--nic NIC]

FOLDER has what was built of driver/linux and driver/rdma-core. Two guests of one machine: each runs the programs over its own NIC, then they
connect to each other by the kernel's rdma_cm. --long: also what takes longer. Exit code: 0 all is well, 1 something is not, 77 something is
missing that is needed.
"""
import argparse
import pathlib
import shlex
import sys
import tempfile

from linux import SKIP, Failure, Machine, outcome

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# A server and a client of one guest: `pair PROGRAM ARGS` fails as they do.
SHELL = r"""
set -e
pair() {
  "$@" >/tmp/server 2>&1 & server=$!
  sleep 1
  timeout 60 "$@" 127.0.0.1 >/tmp/client 2>&1 && wait $server || { echo "FAILED: $*"; cat /tmp/server /tmp/client; exit 1; }
  echo "well: $*"
}
# Between guests: until the other one is there.
until_there() {
  for try in 1 2 3 4 5 6 7 8 9 10; do timeout 90 "$@" >/tmp/client 2>&1 && echo "well: $*" && return; sleep 1; done
  echo "FAILED: $*"; cat /tmp/client; exit 1
}
quiet_kernel() { if dmesg | grep -E 'BUG:|WARNING:|Oops|device has failed|QP1 has not'; then exit 1; fi; }
"""
PROGRAMS = r"""
ibv_devinfo -v >/tmp/devinfo
for line in 'state:.*PORT_ACTIVE' 'GID\[  0\]:.*fe80::ff:fe00:' 'GID\[  1\]:.*::ffff:10.0.0.' 'max_qp:.*25' 'link_layer:.*Ethernet'; do
  grep -q "$line" /tmp/devinfo || { echo "ibv_devinfo does not say $line"; cat /tmp/devinfo; exit 1; }
done
rdma link show | grep -q 'state ACTIVE physical_state LINK_UP netdev'
pair ibv_rc_pingpong -c -g 0 -n 10
pair ibv_rc_pingpong -c -g 1 -n 10 -e
pair ibv_uc_pingpong -c -g 1 -n 10
pair ibv_ud_pingpong -c -g 1 -n 10
pair ibv_srq_pingpong -c -g 1 -n 10 -q 4
"""
LONG_PROGRAMS = r"""
pair ibv_rc_pingpong -c -g 1 -n 50 -s 100000 -m 4096
pair ib_write_bw -x 1 -n 200 -q 4
pair ib_write_lat -x 1 -n 100 -I 64
pair ib_read_bw -x 1 -n 100
pair ib_send_bw -x 1 -n 100 -c UD
pair ib_send_bw -x 1 -n 100 -c UC
pair ib_send_lat -x 1 -n 100 -e
pair ib_atomic_bw -x 1 -n 100
pair ib_atomic_lat -x 1 -n 100 -A CMP_AND_SWAP
"""
RELOAD = r"""
for i in 1 2 3; do rmmod rnic_ib; insmod {folder}/rnic_ib.ko; done
rmmod rnic_ib
"""


def guest_command(folder, number, script):
    shell = SHELL + script.replace("{folder}", shlex.quote(str(folder)))
    return [str(ROOT / "driver/linux/guest.sh"), str(folder), str(number), "bash", "-c", shell]


def two_guests(rnic, folder, nic, long):
    with tempfile.TemporaryDirectory(prefix="rnic-linux-test") as work:
        machine = Machine(rnic, pathlib.Path(work), "--guest", "0", "--guest", "1", "--nic", nic)
        more = LONG_PROGRAMS if long else ""
        server = PROGRAMS + more + "rping -s -a 10.0.0.1 -V -C 10 -S 4000\nucmatose -b 10.0.0.1\nib_write_bw -R -x 1 -n 100\nquiet_kernel\n" + RELOAD + "quiet_kernel\n"
        client = PROGRAMS + "until_there rping -c -a 10.0.0.1 -V -C 10 -S 4000\nuntil_there ucmatose -s 10.0.0.1\nuntil_there ib_write_bw -R -x 1 -n 100 10.0.0.1\nquiet_kernel\n"
        guests = [machine.guest(number, *guest_command(folder, number, script)) for number, script in enumerate((server, client))]
        for number, guest in enumerate(guests):
            print(f"guest {number}:\n{outcome(guest)}")
        machine.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("folder")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--nic", default="rtl")
    arguments = parser.parse_args()
    rnic, folder = (pathlib.Path(path).resolve() for path in (arguments.rnic, arguments.folder))
    for name in ("rnic_ib.ko", "librnic-rdmav34.so"):
        if not (folder / name).exists():
            print(f"there is no {folder / name}: build the targets rnic_ib and rnic_provider (docs/kernel_driver.md)")
            sys.exit(SKIP)
    try:
        two_guests(str(rnic), folder, arguments.nic, arguments.long)
    except Failure as failure:
        print(f"linux_driver.py: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
