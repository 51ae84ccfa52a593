#!/usr/bin/env python3
"""A guest with the NIC and its Linux driver (docs/kernel_driver.md), and a guest with Linux's Soft-RoCE (docs/interop.md), on the two ends of a cable.

usage: linux_peers.py RNIC FOLDER SOFT_ROCE [--nic NIC]

FOLDER has what was built of driver/linux and driver/rdma-core, SOFT_ROCE is the folder that tests/interop/build_guest.sh fills. Each program runs both
ways, so that each side is server and client, over the kernel's network interfaces and rdma_cm on both sides. Exit code: 0 all is well, 1 something is
not, 77 something is missing that is needed.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from linux import SKIP, Failure, Machine, outcome
from linux_driver import guest_command

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
import interop  # noqa: E402

OURS, THEIRS = "10.0.0.1", "10.0.0.2"
MACHINE = '[[host]]\nguest = true\n[[socket]]\ndatagram = "./nic"\npeer = "./guest"\n'
PATIENCE = 900  # seconds, for all of it
# Server, client, and where the server is seen to listen.
PROGRAMS = [
    ("ibv_rc_pingpong -c -g 1 -n 20", "ibv_rc_pingpong -c -g 1 -n 20 {to}", 18515),
    ("ibv_rc_pingpong -c -g 1 -n 10 -e -s 20000", "ibv_rc_pingpong -c -g 1 -n 10 -e -s 20000 {to}", 18515),
    ("ibv_ud_pingpong -c -g 1 -n 10 -s 1024", "ibv_ud_pingpong -c -g 1 -n 10 -s 1024 {to}", 18515),
    ("ibv_uc_pingpong -c -g 1 -n 10", "ibv_uc_pingpong -c -g 1 -n 10 {to}", 18515),
    ("ibv_srq_pingpong -c -g 1 -n 10 -q 4", "ibv_srq_pingpong -c -g 1 -n 10 -q 4 {to}", 18515),
    ("ib_write_bw -x 1 -n 20 -s 16384", "ib_write_bw -x 1 -n 20 -s 16384 {to}", 18515),
    ("ib_send_bw -x 1 -n 20 -s 4096", "ib_send_bw -x 1 -n 20 -s 4096 {to}", 18515),
    # Each asks for as many Reads at once as the other says, and Soft-RoCE says 128 by itself.
    *((f"{program} -x 1 -n 20", f"{program} -x 1 -n 20 {{to}}", 18515)
      for program in ("ib_read_bw -o 16 -s 4096", "ib_atomic_bw -o 16", "ib_write_lat", "ib_read_lat -o 16", "ib_send_lat", "ib_atomic_lat -o 16")),
    ("rping -s -C 10 -v -V -a 0.0.0.0", "rping -c -C 10 -v -V -a {to}", "cm"),
    ("ucmatose -C 10 -S 1000", "ucmatose -s {to} -C 10 -S 1000", "cm"),
]
# What the guest with the NIC does: a client of each, then a server of each. The peer asks until the server is there.
SERVE = 'serve() { timeout 200 "$@" >/tmp/served 2>&1 || { cat /tmp/served; echo "FAILED: $*"; exit 1; }; echo "well: serves $*"; }\n'


def script():
    ping = f"until_there busybox ping -c 3 {THEIRS}\nip neigh show | grep '{THEIRS} '\n"
    clients = "".join(f"until_there {client.format(to=THEIRS)}\n" for _, client, _ in PROGRAMS)
    servers = "".join(f"serve {server}\n" for server, _, _ in PROGRAMS)
    return SERVE + ping + clients + servers + "quiet_kernel\n"


def do_order(peer, ours, command, port=0):
    """With a port it serves; without one it asks until somebody is there."""
    if ours.poll() is not None:
        raise Failure(f"the guest with the NIC ends before Soft-RoCE has done {command}")
    again = f"sh -c 'for try in $(seq 20); do {command} && exit; sleep 2; done; exit 1'"
    peer.start(command if port else again, port, 200)
    code, output = peer.finish()
    if code != 0:
        raise Failure(f"Soft-RoCE: {command}: exit code {code}\n{output}")
    print(f"Soft-RoCE: {command}: well", flush=True)


def run(rnic, folder, soft_roce, nic):
    with tempfile.TemporaryDirectory(prefix="rnic-linux-peers") as name:
        work = pathlib.Path(name)
        file = work / "machine.toml"
        file.write_text(MACHINE)
        machine = Machine(rnic, work, str(file), "--nic", nic)
        peer = None
        try:
            peer = interop.boot(soft_roce, work)
            ours = machine.guest(0, *guest_command(folder, 0, script()), kernel=(folder / "version").read_text().strip())
            for server, _, port in PROGRAMS:
                do_order(peer, ours, server, port)
            do_order(peer, ours, f"ping -c 3 {OURS}")
            for _, client, _ in PROGRAMS:
                do_order(peer, ours, client.format(to=OURS))
            print(outcome(ours, PATIENCE), flush=True)
            machine.end_well()
        except interop.Failure as failure:
            raise Failure(str(failure)) from None
        finally:
            if peer is not None:
                peer.end()
            machine.give_up()
            for guest in machine.guests:
                if guest.returncode != 0 and guest.stdout and not guest.stdout.closed:
                    print(guest.stdout.read(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("folder")
    parser.add_argument("soft_roce")
    parser.add_argument("--nic", default="rtl")
    arguments = parser.parse_args()
    rnic, folder, soft_roce = (pathlib.Path(path).resolve() for path in (arguments.rnic, arguments.folder, arguments.soft_roce))
    for name in ("rnic_ib.ko", "librnic-rdmav34.so"):
        if not (folder / name).exists():
            print(f"there is no {folder / name}: build the targets rnic_ib and rnic_provider (docs/kernel_driver.md)")
            sys.exit(SKIP)
    made = subprocess.run([interop.__file__.replace("interop.py", "build_guest.sh"), soft_roce], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        print(f"there is no guest with Soft-RoCE:\n{made.stdout}")
        sys.exit(SKIP)
    try:
        run(str(rnic), folder, soft_roce, arguments.nic)
    except Failure as failure:
        print(f"linux_peers.py: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
