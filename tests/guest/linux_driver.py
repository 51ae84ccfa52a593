#!/usr/bin/env python3
"""The Linux driver and its provider (docs/kernel_driver.md) in guests: Debian's programs, unmodified, on hosts of a machine.

usage: linux_driver.py RNIC FOLDER [--long] [--unloads N] [--nic NIC]

FOLDER has what was built of driver/linux and driver/rdma-core. Two guests of one machine: each runs the programs over its own NIC, then they
connect to each other by the kernel's rdma_cm. --long: also what takes longer: perftest, NVMe over fabrics from one guest to the other,
rdma-core's own tests, the module unloaded N times (10) under traffic, a reset and a failure of the device. Exit code: 0 all is well, 1
something is not, 77 something is missing that is needed.
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
set -eE
trap 'echo "FAILED: $BASH_COMMAND"' ERR
pair() {
  "$@" >/tmp/server 2>&1 & server=$!
  sleep 1
  timeout 60 "$@" 127.0.0.1 >/tmp/client 2>&1 && wait $server || { echo "FAILED: $*"; cat /tmp/server /tmp/client; exit 1; }
  echo "well: $*"
}
# Between guests: until the other one is there.
until_there() {
  for try in $(seq 60); do timeout 90 "$@" >/tmp/client 2>&1 && echo "well: $*" && return; sleep 1; done
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
pair ib_send_lat -x 1 -n 50 -c UD
pair ib_send_lat -x 1 -n 50 -c UC
pair ib_send_lat -x 1 -n 100 -e
pair ib_atomic_bw -x 1 -n 100
pair ib_atomic_lat -x 1 -n 100 -A CMP_AND_SWAP
"""
# Over the port's network interface: ARP, ping, copies by TCP of which both know the sum, and programs that exchange their data by TCP. The checksums
# of both ways are the NICs'; the first copy over either IP version is with a receiver that looks at them itself.
TCP = r"""
cat >/tmp/tcp.py <<'END'
import array, fcntl, hashlib, socket, struct, sys
data = b"".join(hashlib.sha256(i.to_bytes(4, "big")).digest() for i in range(8192))
GRXCSUM, SRXCSUM, GTXCSUM = 0x14, 0x15, 0x16  # linux/ethtool.h
def checksums(command, value=0):
    words = array.array("I", [command, value])
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8946, struct.pack("16sP16x", b"eth0", words.buffer_info()[0]))  # SIOCETHTOOL
    return words[1]
def fetch(address):
    peer = socket.create_connection((address, 5000), timeout=60)
    got = b""
    while len(got) < len(data):
        got += peer.recv(65536) or sys.exit("the connection ends")
    peer.sendall(b"y" if got == data else b"n")
    if got != data:
        sys.exit(f"other data from {address}")
if not checksums(GTXCSUM) or not checksums(GRXCSUM):
    sys.exit("the interface has no checksums of its own")
addresses = ["10.0.0.1", "fe80::ff:fe00:1%eth0"]
if sys.argv[1] == "serve":
    listener = socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True)
    for _ in range(2 * len(addresses)):
        peer, _ = listener.accept()
        peer.sendall(data)
        if peer.recv(1) != b"y":
            sys.exit("the peer has other data")
else:
    for address in addresses:
        for by_device in (0, 1):
            checksums(SRXCSUM, by_device)
            if checksums(GRXCSUM) != by_device:
                sys.exit("checksums of received frames cannot be switched")
            fetch(address)
lines = [line.split() for line in open("/proc/net/snmp")]
errors = [dict(zip(*pair)) for pair in zip(lines[::2], lines[1::2])]
if any(table.get("InCsumErrors", "0") != "0" for table in errors):
    sys.exit(f"wrong checksums: {errors}")
END
"""
TCP_SERVER = TCP + r"""
python3 /tmp/tcp.py serve
echo "well: copied by TCP"
ibv_rc_pingpong -c -g 1 -n 10
ibv_ud_pingpong -c -g 1 -n 10
"""
TCP_CLIENT = TCP + r"""
until_there busybox ping -c 3 10.0.0.1
until_there python3 /tmp/tcp.py fetch
until_there ibv_rc_pingpong -c -g 1 -n 10 10.0.0.1
until_there ibv_ud_pingpong -c -g 1 -n 10 10.0.0.1
ip neigh show | grep -q '10.0.0.1 .*lladdr 02:00:00:00:00:01'
"""
RELOAD = r"""
for i in 1 2 3; do rmmod rnic_ib; insmod {folder}/rnic_ib.ko; done
rmmod rnic_ib
"""
# Programs that go on until they are killed, one with and one without the connection manager, and the module taken away under them.
UNLOAD = r"""
traffic() {
  ibv_rc_pingpong -g 1 -n 100000000 >/tmp/a 2>&1 & jobs="$!"
  rping -s -a 10.0.0.1 -C 1000000 >/tmp/b 2>&1 & jobs="$jobs $!"
  sleep 1
  ibv_rc_pingpong -g 1 -n 100000000 127.0.0.1 >/tmp/c 2>&1 & jobs="$jobs $!"
  rping -c -a 10.0.0.1 -C 1000000 >/tmp/d 2>&1 & jobs="$jobs $!"
  sleep 1
}
end_traffic() { kill $jobs 2>/dev/null || true; wait $jobs || true; }
for i in $(seq {times}); do
  traffic
  rmmod rnic_ib
  insmod {folder}/rnic_ib.ko
  ip link set eth0 address 02:00:00:00:00:01 up
  ip addr add 10.0.0.1/24 dev eth0
  end_traffic
done
pair ibv_rc_pingpong -c -g 1 -n 10
echo "well: unloaded {times} times under traffic"
"""
RESET = r"""
device=$(ls -d /sys/bus/pci/drivers/rnic_ib/0000*)
traffic
echo 1 >$device/reset || { dmesg | tail -5; exit 1; }
end_traffic
pair ibv_rc_pingpong -c -g 1 -n 10
echo "well: reset under traffic"
# Without DMA it answers no command: the driver sees that it has failed, and brings it up again.
quiet_kernel
dmesg -C
printf '\002\000' | dd of=$device/config bs=1 seek=4 conv=notrunc status=none
timeout 200 ibv_rc_pingpong -g 1 -n 10 >/dev/null 2>&1 && exit 1
for i in $(seq 120); do dmesg | grep -q 'the device works again' && break; sleep 1; done
dmesg | grep 'the device has failed'
pair ibv_rc_pingpong -c -g 1 -n 10
echo "well: recovered"
"""
# A target of NVMe over fabrics with a file behind it.
NVME_TARGET = r"""
modprobe -a nvmet nvmet-rdma
mount -t configfs none /sys/kernel/config
mount -t tmpfs none /mnt
truncate -s 16M /mnt/disk
cd /sys/kernel/config/nvmet
mkdir subsystems/disk
echo 1 >subsystems/disk/attr_allow_any_host
mkdir subsystems/disk/namespaces/1
printf /mnt/disk >subsystems/disk/namespaces/1/device_path
echo 1 >subsystems/disk/namespaces/1/buffered_io
echo 1 >subsystems/disk/namespaces/1/enable
mkdir ports/1
echo 10.0.0.1 >ports/1/addr_traddr
echo rdma >ports/1/addr_trtype
echo 4420 >ports/1/addr_trsvcid
echo ipv4 >ports/1/addr_adrfam
ln -s /sys/kernel/config/nvmet/subsystems/disk ports/1/subsystems/disk
rping -s -a 10.0.0.1 -C 1 >/dev/null 2>&1
[ "$(head -c 2097152 /mnt/disk | sha256sum)" = "$(seq 1000000 | head -c 2097152 | sha256sum)" ] || { echo "the disk has other bytes"; exit 1; }
quiet_kernel
"""
NVME_HOST = r"""
modprobe nvme-rdma
for i in $(seq 30); do
  echo transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=disk,queue_size=32,nr_io_queues=1 2>/dev/null >/dev/nvme-fabrics && break
  sleep 1
done
sleep 1
seq 1000000 | head -c 2097152 >/tmp/in
dd if=/tmp/in of=/dev/nvme0n1 bs=256k oflag=direct status=none
dd if=/dev/nvme0n1 of=/tmp/out bs=256k count=8 iflag=direct status=none
cmp /tmp/in /tmp/out
echo 1 >/sys/class/nvme/nvme0/delete_controller
echo "well: NVMe over fabrics"
rping -c -a 10.0.0.1 -C 1 >/dev/null
quiet_kernel
"""
# rdma-core's own tests (Debian's packages rdma-core and python3-pyverbs). Those that want what the device has not skip themselves, with the reason.
# test_mr_rereg_access reckons with the key from before (docs/verbs.md); test_resize_cq with a device that is done before the program asks.
RDMA_CORE = r"""
[ -d /usr/share/doc/rdma-core/tests ] || { echo "skipped: rdma-core's tests are not installed"; exit; }
cp -r /usr/share/doc/rdma-core/tests /tmp
cd /tmp/tests
gunzip -f *.gz
timeout 900 python3 run_tests.py -v --dev rnic_0 --gid 1 >/tmp/tests.log 2>&1 || true
grep -E '^(ERROR|FAIL): ' /tmp/tests.log | grep -vE ': test_(mr_rereg_access|resize_cq) ' && { cat /tmp/tests.log; exit 1; }
passed=$(grep -c '[.][.][.] ok$' /tmp/tests.log)
[ "$passed" -ge 90 ] || { cat /tmp/tests.log; exit 1; }
echo "well: $passed of rdma-core's tests"
"""


def guest_command(folder, number, script):
    shell = SHELL + script.replace("{folder}", shlex.quote(str(folder)))
    return [str(ROOT / "driver/linux/guest.sh"), str(folder), str(number), "bash", "-c", shell]


def guests(rnic, folder, nic, *scripts):
    """Guest i of one machine runs script i; all must do so well."""
    with tempfile.TemporaryDirectory(prefix="rnic-linux-test") as work:
        hosts = [word for number in range(len(scripts)) for word in ("--guest", str(number))]
        machine = Machine(rnic, pathlib.Path(work), *hosts, "--nic", nic)
        kernel = (folder / "version").read_text().strip()
        running = [machine.guest(number, *guest_command(folder, number, script), kernel=kernel) for number, script in enumerate(scripts)]
        for number, guest in enumerate(running):
            print(f"guest {number}:\n{outcome(guest)}", flush=True)
        machine.end()


def run(rnic, folder, nic, long, unloads):
    server = PROGRAMS + TCP_SERVER + "rping -s -a 10.0.0.1 -V -C 10 -S 4000\nucmatose -b 10.0.0.1\nib_write_bw -R -x 1 -n 100\n"
    client = PROGRAMS + TCP_CLIENT + "until_there rping -c -a 10.0.0.1 -V -C 10 -S 4000\nuntil_there ucmatose -s 10.0.0.1\nuntil_there ib_write_bw -R -x 1 -n 100 10.0.0.1\n"
    guests(rnic, folder, nic, server + "quiet_kernel" + RELOAD + "quiet_kernel\n", client + "quiet_kernel\n")
    if not long:
        return
    guests(rnic, folder, nic, LONG_PROGRAMS + "quiet_kernel\n")
    guests(rnic, folder, nic, NVME_TARGET, NVME_HOST)
    guests(rnic, folder, nic, RDMA_CORE + "quiet_kernel\n")
    guests(rnic, folder, nic, UNLOAD.replace("{times}", str(unloads)) + RESET)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("folder")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--unloads", type=int, default=10)
    parser.add_argument("--nic", default="rtl")
    arguments = parser.parse_args()
    rnic, folder = (pathlib.Path(path).resolve() for path in (arguments.rnic, arguments.folder))
    for name in ("rnic_ib.ko", "librnic-rdmav34.so"):
        if not (folder / name).exists():
            print(f"there is no {folder / name}: build the targets rnic_ib and rnic_provider (docs/kernel_driver.md)")
            sys.exit(SKIP)
    try:
        run(str(rnic), folder, arguments.nic, arguments.long, arguments.unloads)
    except Failure as failure:
        print(f"linux_driver.py: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
