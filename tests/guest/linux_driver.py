#!/usr/bin/env python3
"""The Linux driver and its provider (docs/kernel_driver.md) in guests: Debian's programs, unmodified, on hosts of a machine.

usage: linux_driver.py RNIC FOLDER [--long] [--unloads N] [--kills N] [--resets N] [--only PART] [--nic NIC]

FOLDER has what was built of driver/linux and driver/rdma-core. Two guests of one machine: each runs the programs over its own NIC, then they
connect to each other by the kernel's rdma_cm. --long: also what takes longer: an interface on a VLAN, a guest beside processes on another host,
perftest, iperf3, storage by NVMe over fabrics, NFS and iSER, rdma-core's own tests, the module unloaded N times (10) under traffic, N resets (1) and
a failure of the device, the same under checks of the kernel's, allocations that fail (where the kernel has such), a guest killed N times (3) while it talks to another. --only: one of these (vlan,
processes, programs, iperf, nvme, nfs, iser, rdma_core, unload, checks, faults, kill), or one of what is quick (numbers, list, raw). Exit code: 0 all is well, 1 something is not, 77 something is missing
that is needed.
"""
import argparse
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

from linux import PATIENCE, SKIP, Failure, Machine, outcome
from linux_storage import ISER_INITIATOR, ISER_TARGET, NFS_CLIENT, NFS_SERVER, NVME_HOST, NVME_TARGET

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import programs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OBJECTS = ROOT / "tests/guest/verbs_objects.py"
QUICK = ["numbers", "list", "raw"]
PARTS = QUICK + ["vlan", "processes", "programs", "iperf", "nvme", "nfs", "iser", "rdma_core", "unload", "checks", "faults", "kill"]
# Memory that is given back is overwritten, what is beside every allocation too, and the kernel looks whether it stays so; a list that is not whole, and
# a task that hangs, are the end.
CHECKS = "slub_debug=FZPU page_poison=1 oops=panic softlockup_panic=1 sysctl.kernel.hung_task_panic=1"
MOST_GROWTH = 16  # MiB of the machine's own memory, from the first killed guest to the last
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
# What the kernel says of faults. Of races of data only those with our module in them: the kernel has some of its own.
faults_told() { dmesg | grep -vE 'KCSAN: data-race in [^[]*$' | grep -E '\bBUG|WARNING:|Oops'"$1"; }
quiet_kernel() { if faults_told '|device has failed|QP1 has not'; then exit 1; fi; }
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
  /usr/bin/rping -s -a 10.0.0.1 -C 1000000 >/tmp/b 2>&1 & jobs="$jobs $!"
  sleep 1
  ibv_rc_pingpong -g 1 -n 100000000 127.0.0.1 >/tmp/c 2>&1 & jobs="$jobs $!"
  /usr/bin/rping -c -a 10.0.0.1 -C 1000000 >/tmp/d 2>&1 & jobs="$jobs $!"
  sleep 1
}
end_traffic() { kill $jobs 2>/dev/null || true; wait $jobs || true; }
# What is free of the guest's memory, MiB.
free_memory() { sync; echo 3 >/proc/sys/vm/drop_caches; echo $(($(sed -n 's/^MemFree: *\([0-9]*\).*/\1/p' /proc/meminfo) / 1024)); }
for i in $(seq {times}); do
  traffic
  rmmod rnic_ib
  if grep rnic /proc/interrupts /proc/iomem /proc/vmallocinfo; then echo "the module is gone, and has left this"; exit 1; fi
  insmod {folder}/rnic_ib.ko
  ip link set eth0 address 02:00:00:00:00:01 up
  ip addr add 10.0.0.1/24 dev eth0
  end_traffic
  [ $i != 3 ] || before=$(free_memory)
done
pair ibv_rc_pingpong -c -g 1 -n 10
echo "well: unloaded {times} times under traffic"
if [ {times} -gt 3 ]; then
  after=$(free_memory)
  [ $after -ge $((before - 8)) ] || { echo "of free memory $before MiB has become $after MiB"; exit 1; }
fi
"""
# Meanwhile a second guest looks whether the first is there, and uses its own device.
BESIDE_UNLOAD = r"""
trap - ERR
set +e
while ! [ -e /tmp/over ]; do
  timeout 3 busybox ping -c 1 10.0.0.1 >/dev/null && seen=$((seen + 1))
  pair ibv_rc_pingpong -c -g 1 -n 5 >/dev/null
  rounds=$((rounds + 1))
  timeout 5 bash -c 'exec 3<>/dev/tcp/10.0.0.1/5000' 2>/dev/null && touch /tmp/over
done
echo "well: $rounds rounds beside it, and $seen times it was there"
quiet_kernel
"""
RESET = r"""
device=$(ls -d /sys/bus/pci/drivers/rnic_ib/0000*)
for i in $(seq {resets}); do
  traffic
  echo 1 >$device/reset || { dmesg | tail -5; exit 1; }
  end_traffic
  pair ibv_rc_pingpong -c -g 1 -n 10
done
echo "well: {resets} times reset under traffic"
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
# The network interface with a load, and perftest with connections of the kernel's rdma_cm; who is asked too soon refuses, so both try again.
IPERF = r"""
figure() { python3 -c 'import json, sys; end = json.load(sys.stdin)["end"]; print(sys.argv[1], round(end["sum_received"]["bits_per_second"] / 1e6, 1), "Mbit/s,", end["sum_sent"].get("retransmits", 0), "sent again")' "$1"; }
serve() { for try in 1 2 3 4 5; do timeout 100 "$@" >/tmp/served 2>&1 && echo "well: serves $*" && return; done; cat /tmp/served; exit 1; }
"""
PERFTESTS = "for program in ib_send_bw ib_read_bw ib_write_bw ib_atomic_bw ib_send_lat ib_read_lat ib_write_lat ib_atomic_lat; do\n  size='-s 4096'\n  [[ $program != *atomic* ]] || size=\n"
PINGPONGS = ["ibv_uc_pingpong -c -g 1 -n 10", "ibv_srq_pingpong -c -g 1 -n 10 -q 4"]
IPERF_SERVER = IPERF + r"""
if command -v iperf3 >/dev/null; then iperf3 -s -B 10.0.0.1 -1 >/dev/null; iperf3 -s -B 10.0.0.1 -1 >/dev/null; fi
""" + "".join(f"serve {program}\n" for program in PINGPONGS) + PERFTESTS + r"""  serve $program -R -x 1 -n 100 $size
done
quiet_kernel
"""
IPERF_CLIENT = IPERF + r"""
if command -v iperf3 >/dev/null; then
  until_there iperf3 -c 10.0.0.1 -t 5 -J
  figure "iperf3, one connection:" </tmp/client
  until_there iperf3 -c 10.0.0.1 -t 5 -J -R
  figure "iperf3, the other way:" </tmp/client
fi
""" + "".join(f"until_there {program} 10.0.0.1\n" for program in PINGPONGS) + PERFTESTS + r"""  until_there $program -R -x 1 -n 100 $size 10.0.0.1
  grep -A1 '#bytes' /tmp/client
done
quiet_kernel
"""
# Over an interface of VLAN 5: sockets, and queue pairs with its GIDs.
VLAN = r"""
modprobe 8021q
ip link add link eth0 name eth0.5 type vlan id 5 egress-qos-map 0:3
ip link set eth0.5 up
ip addr add 10.5.0.{number}/24 dev eth0.5
for try in $(seq 20); do
  gid=$(grep -l 'ffff:0a05:000{number}' /sys/class/infiniband/rnic_0/ports/1/gids/* | head -n 1)
  [ -z "$gid" ] || break
  sleep 1
done
gid=${gid##*/}
[ "$(cat /sys/class/infiniband/rnic_0/ports/1/gid_attrs/ndevs/$gid)" = eth0.5 ]
"""
VLAN_SERVER = VLAN.replace("{number}", "1") + r"""
ibv_rc_pingpong -c -g $gid -n 10
ibv_uc_pingpong -c -g $gid -n 10
ib_write_bw -x $gid -n 100 -s 8192 --sl 5
quiet_kernel
"""
VLAN_CLIENT = VLAN.replace("{number}", "2") + r"""
until_there busybox ping -c 3 10.5.0.1
until_there ibv_rc_pingpong -c -g $gid -n 10 10.5.0.1
until_there ibv_uc_pingpong -c -g $gid -n 10 10.5.0.1
until_there ib_write_bw -x $gid -n 100 -s 8192 --sl 5 10.5.0.1
quiet_kernel
"""
# Keys and QPNs of two lives of the module: neither can be foretold, also not from the other.
NUMBERS = r"""
INDEX_BITS=$(sed -n 's/#define RNIC_QP_INDEX_BITS[[:space:]]*\([0-9]*\).*/\1/p' {root}/driver/linux/rnic_hw.h)
{objects} numbers $INDEX_BITS >/tmp/first || { cat /tmp/first; exit 1; }
rmmod rnic_ib
insmod {folder}/rnic_ib.ko
{objects} numbers $INDEX_BITS >/tmp/second || { cat /tmp/second; exit 1; }
python3 -c '
first, second = (open("/tmp/" + name).read().split() for name in ("first", "second"))
equal = sum(one == other for one, other in zip(first, second))
print(f"well: {len(first)} keys and queue pairs, of which {equal} have the numbers of the life before")
raise SystemExit(equal > 1 or len(first) != len(second))'
quiet_kernel
"""
# A page list that is longer than any memory in one piece: the process gets an error, and the kernel reports nothing.
LIST = r"""
{objects} scattered 64 | tee /tmp/said
grep -q registered /tmp/said
{objects} scattered 2560 | tee /tmp/said
grep -q 'Cannot allocate memory' /tmp/said
quiet_kernel
echo "well: a list that is too long"
"""
# One allocation after the other fails in each call, while the module is loaded, and then everything works.
FAULTS = r"""
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || true
[ -d /sys/kernel/debug/failslab ] || { echo "skipped: this kernel has no allocations that fail"; exit; }
for kind in failslab fail_page_alloc; do echo N >/sys/kernel/debug/$kind/ignore-gfp-wait; done
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
{objects} faults
rmmod rnic_ib
{objects} load {folder}/rnic_ib.ko
ip link set eth0 address 02:00:00:00:00:01 mtu 4078 up
ip addr add 10.0.0.1/24 dev eth0
pair ibv_rc_pingpong -c -g 1 -n 10
rmmod rnic_ib
quiet_kernel
"""
# What sockets send to the port of RoCEv2 does not leave, unless the module is told to let it. Each frame has its name in it.
RAW = r"""
modprobe -a 8021q af_packet 2>/dev/null || true
ip link add link eth0 name eth0.5 type vlan id 5
ip link set eth0.5 up
ip addr add 10.5.0.1/24 dev eth0.5
ip neigh replace 10.0.0.9 lladdr 02:00:00:00:00:09 nud permanent dev eth0
ip neigh replace 10.5.0.9 lladdr 02:00:00:00:00:09 nud permanent dev eth0.5
ip neigh replace fe80::9 lladdr 02:00:00:00:00:09 nud permanent dev eth0
dropped() { cat /sys/class/net/eth0/statistics/tx_dropped; }
while ip -6 addr show dev eth0 tentative | grep -q inet6; do sleep 0.2; done
before=$(dropped)
python3 {root}/tests/guest/raw_frames.py refused 4791
[ $(dropped) -gt $((before + 5)) ] || { echo "of what does not leave few are counted: $before, $(dropped)"; exit 1; }
python3 {root}/tests/guest/raw_frames.py sent 4790
echo Y >/sys/module/rnic_ib/parameters/raw_roce
python3 {root}/tests/guest/raw_frames.py allowed 4791 options4
sleep 1
quiet_kernel
"""
# A guest and a host of processes. The guest is reached by an address that the machine file does not say: it is asked for by ARP, as is that of the host.
BESIDE_PROCESSES = r"""
ip addr del 10.0.0.1/24 dev eth0
ip addr add 10.0.0.9/24 dev eth0
until_there busybox ping -c 3 10.0.0.2
until_there busybox ping -c 3 fe80::ff:fe00:2%eth0
ip neigh show | grep -q '10.0.0.2 .*lladdr 02:00:00:00:00:02'
rping -s -a 10.0.0.9 -V -C 10 -S 4000
until_there rping -c -a 10.0.0.2 -V -C 10 -S 4000
quiet_kernel
"""
PROCESSES = "until timeout 60 rping -c -a 10.0.0.9 -V -C 10 -S 4000; do sleep 1; done; exec timeout 100 rping -s -a 10.0.0.2 -V -C 10 -S 4000"
# A guest that writes to another for ever, and the other, which is killed in the middle: each time the writer hears of it, and works on.
WRITER = r"""
set +e
while :; do
  stdbuf -oL ib_write_bw -x 1 -n 10000000 -s 4096 10.0.0.2 >/tmp/writes 2>&1 && echo "FAILED: the writes end" && exit 1
  grep -qi 'failed status' /tmp/writes || { sleep 1; continue; }  # it was not there yet
  timeout 100 bash -c "$(declare -f pair); pair ibv_rc_pingpong -c -g 1 -n 5" >/tmp/own || { cat /tmp/own /tmp/writes; exit 1; }
  echo "well: its peer had gone: $(grep -io 'failed status.*' /tmp/writes | head -n 1)"
  quiet_kernel
done
"""
KILLED = r"""
busybox ping 10.0.0.1 >/dev/null &
while :; do ib_write_bw -x 1 -n 10000000 -s 4096 || true; done >/dev/null 2>&1
"""
# rdma-core's own tests (Debian's packages rdma-core and python3-pyverbs): those that pass on our libibverbs pass here, too, and no other fails. Those
# that want what the device has not skip themselves. Why some are left out is in docs/kernel_driver.md.
RDMA_CORE = r"""
[ -d /usr/share/doc/rdma-core/tests ] || { echo "skipped: rdma-core's tests are not installed"; exit; }
cp -r /usr/share/doc/rdma-core/tests /tmp
cd /tmp/tests
gunzip -f *.gz
timeout 900 python3 run_tests.py -v --dev rnic_0 --gid 1 >/tmp/tests.log 2>&1 || true
cat >/tmp/judge.py <<'END'
import re, sys
left_out = {"tests.test_mr.MRTest.test_mr_rereg_access", "tests.test_cq.CQTest.test_resize_cq"}
no_parent_domains = "tests.test_parent_domain."
text = open("/tmp/tests.log").read()
# A name, perhaps a line of what it is about, and the outcome.
found = dict(re.findall(r"^\w+ \((tests[\w.]+)\)(?:\n.*)? [.][.][.] (\w+)", text, re.MULTILINE))
wanted = {line.split()[0] for line in open(sys.argv[1]) if line.strip() and not line.startswith(("#", no_parent_domains))}
missing = sorted(test for test in wanted - left_out if found.get(test) != "ok")
failed = sorted(test for test in set(found) - left_out if found[test] in ("FAIL", "ERROR"))
passed = [test for test in found if found[test] == "ok"]
print(f"well: {len(passed)} of rdma-core's tests pass, {len(wanted & set(passed))} of the {len(wanted)} of our libibverbs; left out {sorted(left_out - set(passed))}")
if missing or failed:
    sys.exit(f"{text}\nfailed: {failed}\nnot passed: {missing}")
END
python3 /tmp/judge.py {root}/tests/verbs/rdma_core_tests.txt
"""


def guest_command(folder, number, script):
    path = f"PATH={shlex.quote(str(programs.FOLDER))}:$PATH\n"
    for name, value in (("folder", folder), ("root", ROOT), ("objects", OBJECTS)):
        script = script.replace(f"{{{name}}}", shlex.quote(str(value)))
    shell = path + SHELL + script
    return [str(ROOT / "driver/linux/guest.sh"), str(folder), str(number), "bash", "-c", shell]


def guests(rnic, folder, nic, *scripts, patience=PATIENCE, look_at=None, append=""):
    """Guest i of one machine runs script i; all must do so well. `look_at` takes what the wire has carried, a file; `append` is for the kernels' command lines."""
    with tempfile.TemporaryDirectory(prefix="rnic-linux-test") as work:
        hosts = [word for number in range(len(scripts)) for word in ("--guest", str(number))]
        wire = pathlib.Path(work) / "wire.pcap"
        machine = Machine(rnic, pathlib.Path(work), *hosts, "--nic", nic, *(["--pcap", wire] if look_at else []))
        try:
            kernel = (folder / "version").read_text().strip()
            machine.all_figures()  # who answers has begun with all that it has
            before = machine.kept()
            running = [machine.guest(number, *guest_command(folder, number, script), kernel=kernel, append=append) for number, script in enumerate(scripts)]
            for number, guest in enumerate(running):
                print(f"guest {number}:\n{outcome(guest, patience)}", flush=True)
                machine.wait_until(number, lambda figures: not figures["running"], "the machine does not see that its guest is gone")
            if machine.kept() != before:
                raise Failure(f"the machine keeps {machine.kept()}, not {before} as before its guests came")
            machine.end_well()
            if look_at:
                look_at(wire.read_bytes())
        except Failure as failure:
            raise Failure(f"{failure}\nThe machine says: {machine.log.read_text()}\nIt has ended with: {machine.process.poll()}") from None
        finally:
            machine.give_up()


def look_at_tags(capture):
    """Every RoCEv2 packet has the tag of VLAN 5; some have the priority that was asked for, and so have some pings."""
    at, packets, priorities, pings = 24, 0, set(), set()  # behind the header of the file
    while at < len(capture):
        length = int.from_bytes(capture[at + 8:at + 12], "little")
        frame, at = capture[at + 16:at + 16 + length], at + 16 + length
        tag = int.from_bytes(frame[14:16], "big") if frame[12:14] == b"\x81\x00" else None
        ip = frame[14:] if tag is None else frame[18:]
        if frame[12:14] != b"\x08\x00" and (tag is None or frame[16:18] != b"\x08\x00"):
            continue
        if ip[9] == 17 and ip[22:24] == (4791).to_bytes(2, "big"):
            packets += 1
            if tag is None or tag & 0xFFF != 5:
                raise Failure(f"a RoCEv2 packet has the tag {tag}: {frame[:64].hex()}")
            priorities.add(tag >> 13)
        elif ip[9] == 1:
            pings.add(tag)
    if packets < 200 or priorities != {0, 5} or pings != {3 << 13 | 5}:
        raise Failure(f"{packets} RoCEv2 packets, with priorities {priorities}; pings with tags {pings}")
    print(f"{packets} RoCEv2 packets, all with a tag of VLAN 5")


def look_at_names(capture):
    """Of the frames of raw_frames.py those that left. The one that is allowed has options, with which it is no RoCEv2 packet for who looks at the wire."""
    names = {name.decode() for name in re.findall(rb"<(\w+ \w+)>", capture)}
    wanted = {f"sent {name}" for name in ("udp4", "udp6", "vlan", "fragment4", "fragment4_later", "options4", "two_tags", "options6", "fragment6")}
    wanted |= {"allowed options4", "refused fragment4_later"}
    if names != wanted:
        raise Failure(f"beside what is to leave there left {sorted(names - wanted)}; {sorted(wanted - names)} did not")
    print(f"well: {sorted(names)} left")


def beside_processes(rnic, folder, nic):
    with tempfile.TemporaryDirectory(prefix="rnic-linux-test") as work:
        machine = Machine(rnic, pathlib.Path(work), "--guest", "0", "--nic", nic)
        try:
            guest = machine.guest(0, *guest_command(folder, 0, BESIDE_PROCESSES), kernel=(folder / "version").read_text().strip())
            program = subprocess.Popen([rnic, "exec", "--dir", machine.folder / "run", "--host", "1", "--", "bash", "-c", PROCESSES], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
            machine.guests.append(program)
            print(f"beside processes:\n{outcome(guest)}", flush=True)
            outcome(program)
            machine.end_well()
        finally:
            machine.give_up()


def killed(rnic, folder, nic, times):
    """A guest that is killed with its driver at work: the other one lives, and the machine keeps nothing."""
    with tempfile.TemporaryDirectory(prefix="rnic-linux-test") as work:
        machine = Machine(rnic, pathlib.Path(work), "--guest", "0", "--guest", "1", "--nic", nic)
        try:
            kill_in_turn(machine, folder, times)
        finally:
            machine.give_up()


def end_group(guest):
    if guest.poll() is None:
        os.killpg(guest.pid, signal.SIGKILL)
    guest.wait()


def kill_in_turn(machine, folder, times):
    kernel = (folder / "version").read_text().strip()
    writer = machine.guest(0, *guest_command(folder, 0, WRITER), kernel=kernel)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(writer.stdout.readline, "")), daemon=True)
    reader.start()
    kept = resident = None
    for i in range(times):
        victim = machine.guest(1, *guest_command(folder, 1, KILLED), kernel=kernel)
        # Soon after the first write, later, and much later; the counters begin with the guest, and nobody but the writer sends RoCEv2.
        goal = (10, 100, 300)[i % 3]
        end = time.monotonic() + PATIENCE
        while machine.counters(1).get("RxRoce", 0) < goal and time.monotonic() < end and victim.poll() is None and writer.poll() is None:
            time.sleep(0.1)
        if victim.poll() is not None or writer.poll() is not None or time.monotonic() >= end:
            end_group(victim)
            raise Failure(f"before kill {i + 1} nobody writes: {''.join(lines)}\n{victim.stdout.read()}\n{machine.log.read_text()}")
        end_group(victim)
        machine.wait_until(1, lambda figures: not figures["running"], "the machine does not see that its guest is gone")
        end = time.monotonic() + PATIENCE
        while len(lines) <= i and time.monotonic() < end:
            time.sleep(0.1)
        if len(lines) != i + 1 or not lines[i].startswith("well: "):
            raise Failure(f"after kill {i + 1}: {''.join(lines)}\n{machine.log.read_text()}")
        now = machine.kept()
        kept = kept or now
        resident = resident or machine.resident()
        if now != kept or now[1] != kept[1]:
            raise Failure(f"after kill {i + 1} the machine keeps {now}, not {kept}")
    grown = machine.resident() - resident
    if grown > MOST_GROWTH:
        raise Failure(f"the machine's own memory has grown by {grown:.1f} MiB")
    end_group(writer)
    reader.join()
    machine.end_well()
    print("".join(lines) + f"killed {times} times: the machine keeps {kept}, its memory has grown by {grown:.1f} MiB", flush=True)


def run(rnic, folder, nic, arguments):
    server = PROGRAMS + TCP_SERVER + "rping -s -a 10.0.0.1 -V -C 10 -S 4000\nucmatose -b 10.0.0.1\nib_write_bw -R -x 1 -n 100\n"
    client = PROGRAMS + TCP_CLIENT + "until_there rping -c -a 10.0.0.1 -V -C 10 -S 4000\nuntil_there ucmatose -s 10.0.0.1\nuntil_there ib_write_bw -R -x 1 -n 100 10.0.0.1\n"
    reset = RESET.replace("{resets}", str(arguments.resets))
    parts = {
        "numbers": lambda: guests(rnic, folder, nic, NUMBERS),
        "list": lambda: guests(rnic, folder, nic, LIST),
        "raw": lambda: guests(rnic, folder, nic, RAW, look_at=look_at_names),
        "vlan": lambda: guests(rnic, folder, nic, VLAN_SERVER, VLAN_CLIENT, look_at=look_at_tags),
        "processes": lambda: beside_processes(rnic, folder, nic),
        "programs": lambda: guests(rnic, folder, nic, LONG_PROGRAMS + "quiet_kernel\n"),
        "iperf": lambda: guests(rnic, folder, nic, IPERF_SERVER, IPERF_CLIENT),
        "nvme": lambda: guests(rnic, folder, nic, NVME_TARGET, NVME_HOST),
        "nfs": lambda: guests(rnic, folder, nic, NFS_SERVER, NFS_CLIENT),
        "iser": lambda: guests(rnic, folder, nic, ISER_TARGET, ISER_INITIATOR),
        "rdma_core": lambda: guests(rnic, folder, nic, RDMA_CORE + "quiet_kernel\n", patience=1000),
        "unload": lambda: guests(rnic, folder, nic, UNLOAD.replace("{times}", str(arguments.unloads)) + reset + "busybox nc -l -p 5000 </dev/null\n", BESIDE_UNLOAD,
                                patience=300 + 30 * arguments.unloads),
        "checks": lambda: guests(rnic, folder, nic, PROGRAMS + UNLOAD.replace("{times}", str(max(1, arguments.unloads // 5))) + reset, patience=600 + 10 * (arguments.resets + arguments.unloads), append=CHECKS),
        "faults": lambda: guests(rnic, folder, nic, FAULTS, patience=3600),
        "kill": lambda: killed(rnic, folder, nic, arguments.kills),
    }
    if arguments.only:
        return parts[arguments.only]()
    guests(rnic, folder, nic, server + "quiet_kernel" + RELOAD + "quiet_kernel\n", client + "quiet_kernel\n")
    for name, part in parts.items():
        if arguments.long or name in QUICK:
            part()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("folder")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--unloads", type=int, default=10)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--resets", type=int, default=1)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--nic", default="rtl")
    arguments = parser.parse_args()
    rnic, folder = (pathlib.Path(path).resolve() for path in (arguments.rnic, arguments.folder))
    for name in ("rnic_ib.ko", "librnic-rdmav34.so"):
        if not (folder / name).exists():
            print(f"there is no {folder / name}: build the targets rnic_ib and rnic_provider (docs/kernel_driver.md)")
            sys.exit(SKIP)
    programs.prefer()
    try:
        run(str(rnic), folder, arguments.nic, arguments)
    except Failure as failure:
        print(f"linux_driver.py: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
