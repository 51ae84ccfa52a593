#!/usr/bin/env python3
"""Runs programs of Debian's packages between Linux's Soft-RoCE (rdma_rxe, in a virtual machine) and the NIC, each way.

usage: interop.py RNIC GUEST [--keep FOLDER] [--part PART]

GUEST is the folder that build_guest.sh fills. The guest is made if it is not there. Its card is wired to the NIC by datagrams, each a frame; a second card, QEMU's own
network, carries what the programs tell each other by TCP. Every program must end well on both sides, the capture must show the
packets that it is about, each with a right ICRC, and the NIC must have found nothing wrong with any of them. Then some of them run again on
a machine whose cable loses, doubles, reorders and damages frames. Exit code: 0 all is well, 1 something is not, 77 something is missing
that is needed.
"""
import argparse
import collections
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import roce_capture

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import programs  # noqa: E402
import tcp_ports  # noqa: E402

PATIENCE = 120  # seconds, for one program
CONNECTION_PATIENCE = 60  # of a pair that librdmacm connects; the one that waits for the other does so for long
GUEST_PORT = 18515
LINUX, NIC = "10.0.0.2", "10.0.0.1"
LINUX6, NIC6 = "fe80::ff:fe00:101", "fe80::ff:fe00:1%eth0"  # with the card's name, as the side that asks wants it
GUEST_MAC, NIC_MAC = "02:00:00:00:01:01", "02:00:00:00:00:01"
FAULTS = {"wire": {"both": {"drop": 0.02, "duplicate": 0.01, "reorder": 0.01, "corrupt": 0.01}}}
# One kind after the other, and none near the end: a program that has all that it waits for goes, and its last ACK is not asked for again.
EXACT = {"wire": {"both": {"rules": [{"fault": fault, "nth": nth} for fault, nth in
                                     (("drop", 12), ("corrupt", 25), ("reorder", 41), ("duplicate", 57), ("drop", 70), ("truncate", 88), ("drop", 89))]}}}
MACHINE = f'[[host]]\ngids = ["{NIC}", "fd00::1"]\n[[socket]]\ndatagram = "./nic"\npeer = "./guest"\n'

TABLE = r"^\s*\d+\s+\d+\s+\d+\.\d+"  # of perftest
# Each program with what the client's side sends and the server's side answers with. {g}: GID index and device are put in.
RC_SEND, RC_WRITE = {"RC SendFirst", "RC SendMiddle", "RC SendLast"}, {"RC WriteFirst", "RC WriteMiddle", "RC WriteLast"}
ACK = {"RC Acknowledge"}
PROGRAMS = [
    ("ibv_rc_pingpong -n 20 -c", RC_SEND | ACK, RC_SEND | ACK),
    ("ibv_rc_pingpong -n 10 -c -e -s 20000 -m 4096", RC_SEND | ACK, RC_SEND | ACK),
    ("ibv_rc_pingpong -n 10 -c -s 1000 -m 256", RC_SEND | ACK, RC_SEND | ACK),
    ("ibv_rc_pingpong -n 10 -c -s 1", {"RC SendOnly"} | ACK, {"RC SendOnly"} | ACK),
    ("ibv_uc_pingpong -n 10 -c", {"UC SendFirst", "UC SendLast"}, {"UC SendFirst", "UC SendLast"}),
    ("ibv_ud_pingpong -n 20 -c -s 1024", {"UD SendOnly"}, {"UD SendOnly"}),
    ("ibv_srq_pingpong -n 20 -c -q 4", RC_SEND | ACK, RC_SEND | ACK),
    ("ib_send_bw -n 20 -s 4096 -m 1024", RC_SEND, ACK),
    ("ib_send_bw -n 50 -s 512 -r 2", {"RC SendOnly"}, ACK),  # with few Receives: RNR NAKs
    ("ib_send_bw -n 20 -c UD -s 1024", {"UD SendOnly"}, set()),
    ("ib_write_bw -n 20 -s 65536", RC_WRITE, ACK),
    ("ib_write_bw -n 20 -s 1000 -q 4", {"RC WriteOnly"}, ACK),
    ("ib_write_bw -n 10 -s 4096 -m 1024 -b", RC_WRITE | ACK, RC_WRITE | ACK),
    ("ib_read_bw -n 20 -s 16384 -o 16", {"RC ReadRequest"}, {"RC ReadFirst", "RC ReadMiddle", "RC ReadLast"}),
    ("ib_atomic_bw -n 20 -A FETCH_AND_ADD -o 16", {"RC FetchAdd"}, {"RC AtomicAcknowledge"}),
    ("ib_atomic_bw -n 20 -A CMP_AND_SWAP -o 16", {"RC CmpSwap"}, {"RC AtomicAcknowledge"}),
]
# By librdmacm on both sides, over Linux's rdma_cm: server, client, which finds it at {to} or {to6}, and what a good end says.
CONNECTIONS = [
    ("rping -s -C 10 -v -V -a 0.0.0.0 -p 7174", "rping -c -C 10 -v -V -a {to} -p 7174", "ping data: rdma-ping-4"),
    ("rping -s -C 5 -S 4096 -a 0.0.0.0 -p 7175", "rping -c -C 5 -S 4096 -a {to} -p 7175", ""),
    ("rping -s -C 5 -v -V -a :: -p 7181", "rping -c -C 5 -v -V -a {to6} -p 7181", "ping data: rdma-ping-4"),
    ("ucmatose -p 7176 -c 4 -C 10 -S 1000", "ucmatose -s {to} -p 7176 -c 4 -C 10 -S 1000", "return status 0"),
    ("udaddy -c 2 -C 5 -S 100", "udaddy -s {to} -c 2 -C 5 -S 100", "return status 0"),
    ("rdma_server -p 7178", "rdma_client -s {to} -p 7178", "end 0"),
    ("ib_write_bw -R -n 20 -s 65536 -p 7179", "ib_write_bw -R -n 20 -s 65536 -p 7179 {to}", TABLE),
    ("ib_send_lat -R -n 20 -p 7180", "ib_send_lat -R -n 20 -p 7180 {to}", TABLE),
]
# With messages of the connection manager lost and doubled, and nothing else: both sides send them again.
CM_FAULTS = {"wire": {"both": {"rules": [{"fault": "drop", "qpn": 1, "probability": 0.2}, {"fault": "duplicate", "qpn": 1, "probability": 0.2}]}}}
LOSSY_CONNECTIONS = [("ucmatose -p 7182 -c 8 -C 2 -S 100", "ucmatose -s {to} -p 7182 -c 8 -C 2 -S 100", "return status 0")]
# perftest connects twice, and asks for the second one when it has the first: a server that is slower refuses it, and the pair is run again.
MEASUREMENTS = 5
# A part in which Linux breaks a message that it repeats is run again (docs/interop.md).
PARTS = 3
# GID 0 is the link-local IPv6 address on both sides, GID 1 the IPv4 address.
IPV6 = ["ibv_rc_pingpong -n 10 -c", "ibv_ud_pingpong -n 10 -c -s 1024", "ib_write_bw -n 5 -s 4096"]
# With faults: what must still end well, with the right bytes.
CHECKED = "ibv_rc_pingpong -n 40 -c -m 1024"
LOSSY = ["ib_send_bw -n 30 -s 8192 -m 1024", "ib_write_bw -n 30 -s 16384 -m 1024", "ib_read_bw -n 40 -s 4096 -m 1024 -o 4 -u 16",
         "ib_atomic_bw -n 20 -A FETCH_AND_ADD -o 16"]
# What the NIC counts when a peer does what it must not, or its packets are not right.
COMPLAINTS = ["RxMalformed", "RxBadIcrc", "RxOverflow", "RxBadPeer", "RxBadQkey", "RxInvalidRequest", "RxForbidden", "RxBadResponses", "RxPlaceFaults"]


class Failure(Exception):
    pass


def lines_of(stream, to):
    for line in stream:
        to.put(line.rstrip("\r\n"))
    to.put(None)


class Machine:
    """One host and its port, as a process."""

    def __init__(self, rnic, folder, name, text):
        self.rnic, self.folder, self.capture, self.log_path = rnic, folder, folder / f"{name}.pcap", folder / f"{name}.log"
        file = folder / f"{name}.toml"
        file.write_text(text)
        ready, tell = os.pipe()
        self.log = open(self.log_path, "w")
        self.process = subprocess.Popen([rnic, "serve", file, "--dir", folder / "run", "--pcap", self.capture, "--ready-fd", str(tell)],
                                        stdout=self.log, stderr=subprocess.STDOUT, pass_fds=[tell])
        os.close(tell)
        with os.fdopen(ready) as pipe:
            if not pipe.read(1):
                raise Failure("the machine does not begin: " + self.log_path.read_text())

    def start(self, command, patience=PATIENCE):
        return subprocess.Popen(["timeout", str(patience), self.rnic, "exec", "--dir", self.folder / "run", "--", *command.split()],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)

    def wait_until_listens(self, process):
        """For connections of librdmacm."""
        end = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < end:
            asked = subprocess.run([self.rnic, "ps", "--json", "--dir", self.folder / "run"], stdout=subprocess.PIPE, text=True, check=True)
            if any(one["listening_endpoints"] for one in json.loads(asked.stdout)["results"]["hosts"][0]["processes"]):
                return
            time.sleep(0.02)

    def counters(self):
        asked = subprocess.run([self.rnic, "stat", "--json", "--dir", self.folder / "run"], stdout=subprocess.PIPE, text=True, check=True)
        answer = json.loads(asked.stdout)["results"]
        return answer["hosts"][0]["counters"], answer["sockets"][0]["counters"]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self.log.close()
        return [] if code == 0 else [f"the machine ended with {code}: " + self.log_path.read_text()]


class Guest:
    """Linux in a virtual machine. Its orders go to a port of virtio, which unlike a UART loses nothing when the machine is slow, and their results
    come from there (guest_init)."""

    def __init__(self, guest, folder, accelerator):
        self.port = tcp_ports.free_port()
        self.number = 0
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-machine", f"q35,accel={accelerator}", "-cpu", "max", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot",
             "-serial", f"file:{folder / 'guest.log'}", "-chardev", "stdio,id=orders,signal=off",
             "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=orders,name=orders",
             "-kernel", guest / "vmlinuz", "-initrd", guest / "initramfs.gz",
             "-append", f"console=ttyS0 panic=-1 mitigations=off no_timer_check guest.address={LINUX}/24",
             "-netdev", f"dgram,id=wire,local.type=unix,local.path={folder / 'guest'},remote.type=unix,remote.path={folder / 'nic'}",
             "-device", f"virtio-net-pci,netdev=wire,mac={GUEST_MAC},romfile=",
             "-netdev", f"user,id=tcp,hostfwd=tcp:127.0.0.1:{self.port}-:{GUEST_PORT}",
             "-device", "virtio-net-pci,netdev=tcp,romfile="],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(folder / "qemu.log", "w"), text=True, errors="replace")
        self.lines = queue.Queue()
        threading.Thread(target=lines_of, args=(self.process.stdout, self.lines), daemon=True).start()

    def wait_for(self, begin, seconds=PATIENCE):
        """Everything up to the line that begins so, and the rest of that."""
        end, before = time.monotonic() + seconds, []
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Failure(f"the guest does not say '{begin}':\n" + "\n".join(before)) from None
            if line is None:
                raise Failure("the guest has gone:\n" + "\n".join(before))
            if line.startswith(begin):
                return "\n".join(before), line[len(begin):].strip()
            before.append(line)

    def start(self, command, port=0, patience=PATIENCE):
        self.number += 1
        self.process.stdin.write(f"{self.number} {port} timeout {patience} {command}\n")
        self.process.stdin.flush()
        if port:
            self.wait_for(f"=== {self.number} listens")

    def finish(self):
        output, code = self.wait_for(f"=== {self.number} exit", 2 * PATIENCE)
        return int(code), output

    def end(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.write("end\n")
                self.process.stdin.flush()
                self.process.wait(20)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()


def boot(guest, folder):
    """With the processor's help where it works, otherwise emulated."""
    accelerators = ["kvm", "tcg"] if os.access("/dev/kvm", os.R_OK | os.W_OK) else ["tcg"]
    for accelerator in accelerators:
        begin = time.monotonic()
        linux = Guest(guest, folder, accelerator)
        try:
            _, version = linux.wait_for("=== ready", 30 if accelerator == "kvm" else PATIENCE)
            print(f"Linux {version} is up after {time.monotonic() - begin:.1f} s ({accelerator})", flush=True)
            return linux
        except Failure as failure:
            linux.end()
            if accelerator == accelerators[-1]:
                raise Failure(f"{failure}\n{(folder / 'qemu.log').read_text()}\n{(folder / 'guest.log').read_text()}") from None
    raise AssertionError


def wait_until_listens(port, process):
    wanted = re.compile(f":{port:04X} [0:]* 0A".encode())
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        if any(wanted.search(pathlib.Path(table).read_bytes()) for table in ("/proc/net/tcp", "/proc/net/tcp6")):
            return
        time.sleep(0.02)


def with_options(command, device, gid, port):
    """Device, GID and TCP port, as the program wants to be told."""
    place = f"-g {gid}" if "pingpong" in command else f"-x {gid} -F"
    return f"{command} -d {device} {place} -p {port}"


def is_result(command, output):
    if "pingpong" in command:
        return re.search(r"\d+ iters in", output) and "invalid data" not in output
    return re.search(TABLE, output, re.MULTILINE)


def run_pair(machine, linux, command, gid, linux_serves):
    """What was wrong; nothing: it was well."""
    if linux_serves:
        linux.start(with_options(command, "rxe0", gid, GUEST_PORT), GUEST_PORT)
        ours = machine.start(with_options(command, "rnic0", gid, linux.port) + " 127.0.0.1")
    else:
        port = tcp_ports.free_port()
        ours = machine.start(with_options(command, "rnic0", gid, port))
        wait_until_listens(port, ours)
        linux.start(with_options(command, "rxe0", gid, port) + " 10.0.2.2")
    our_output, _ = ours.communicate()
    linux_code, linux_output = linux.finish()
    if ours.returncode == 0 and linux_code == 0 and is_result(command, our_output) and is_result(command, linux_output):
        return []
    return [f"{command}, GID {gid}, Linux is the {'server' if linux_serves else 'client'}\nNIC: {ours.returncode}\n{our_output}\nLinux: {linux_code}\n{linux_output}"]


def run_connection(machine, linux, server, client, result, linux_serves):
    """The same of programs that librdmacm connects."""
    if linux_serves:
        linux.start(server, "cm", CONNECTION_PATIENCE)
        ours = machine.start(client.format(to=LINUX, to6=LINUX6), CONNECTION_PATIENCE)
    else:
        ours = machine.start(server, CONNECTION_PATIENCE)
        machine.wait_until_listens(ours)
        linux.start(client.format(to=NIC, to6=NIC6), 0, CONNECTION_PATIENCE)
    our_output, _ = ours.communicate()
    linux_code, linux_output = linux.finish()
    client_output = our_output if linux_serves else linux_output
    if ours.returncode == 0 and linux_code == 0 and re.search(result, client_output, re.MULTILINE):
        return []
    return [f"{client}, Linux is the {'server' if linux_serves else 'client'}\nNIC: {ours.returncode}\n{our_output}\nLinux: {linux_code}\n{linux_output}"]


def run_connections_of(pairs):
    def work(machine, linux):
        wrong = []
        for server, client, result in pairs:
            for linux_serves in (True, False):
                begin = time.monotonic()
                for left in reversed(range(MEASUREMENTS)):
                    bad = run_connection(machine, linux, server, client, result, linux_serves)
                    if not bad or not client.startswith("ib_") or "EVENT_REJECTED; error: 8" not in bad[0] or left == 0:
                        break
                way = "NIC to Linux" if linux_serves else "Linux to NIC"
                print(f"{'FAIL' if bad else 'ok  '} {way}, rdma_cm: {client} ({time.monotonic() - begin:.1f} s)", flush=True)
                wrong += bad
        return wrong + check_counters(machine)
    return work


def check_counters(machine):
    """Nothing that either side, or the way between them, must not do has been counted."""
    nic, port = machine.counters()
    wrong = [f"the NIC counts {name} {nic[name]}" for name in COMPLAINTS if nic.get(name, 0) != 0]
    wrong += [f"the socket counts {name} {port[name]}" for name in ("too_short", "too_long", "bad", "lost") if port[name] != 0]
    return wrong


def print_counters(machine):
    nic, _ = machine.counters()
    print("counters of the NIC: " + ", ".join(f"{name} {count}" for name, count in nic.items() if name.startswith(("Tx", "Rx"))))


def check_capture(path, operations):
    """Every one of the operations must be there, from each side, and every ICRC right."""
    packets = roce_capture.packets_of(path)
    wrong = [f"a packet {packet.operation} of {packet.source} has a wrong ICRC" for packet in packets if not packet.icrc_right]
    for name, mac in (("Linux", GUEST_MAC), ("NIC", NIC_MAC)):
        own = [packet for packet in packets if packet.source == mac]
        seen = collections.Counter(packet.operation for packet in own)
        naks = collections.Counter(f"{packet.syndrome:#04x}" for packet in own if packet.syndrome is not None and packet.syndrome >> 5 != 0)
        repeated = len(own) - len({packet[:5] for packet in own if not packet.answer}) - sum(packet.answer for packet in own)
        print(f"{name} sent: " + ", ".join(f"{operation} {count}" for operation, count in sorted(seen.items())) +
              f"; requests that it repeated: {repeated}" + (f"; NAKs by syndrome: {dict(naks)}" if naks else ""))
        wrong += [f"{name} has sent no packet {operation}" for operation in sorted(operations - set(seen))]
    return wrong


def run_pairs(machine, linux, commands, ways=(True, False)):
    """Each command, with its GID, each way (whether Linux is the server)."""
    wrong = []
    for command, gid in commands:
        for linux_serves in ways:
            begin = time.monotonic()
            bad = run_pair(machine, linux, command, gid, linux_serves)
            way = "NIC to Linux" if linux_serves else "Linux to NIC"
            print(f"{'FAIL' if bad else 'ok  '} {way}, GID {gid}: {command} ({time.monotonic() - begin:.1f} s)", flush=True)
            wrong += bad
    return wrong


def run_clean(machine, linux):
    wrong = []
    for address in ("10.0.0.1", "fe80::ff:fe00:1%eth0"):
        linux.start(f"ping -c 2 {address}")
        code, output = linux.finish()
        wrong += [] if code == 0 else [f"ping {address}: {output}"]
    wrong += run_pairs(machine, linux, [*((command, 1) for command, _, _ in PROGRAMS), *((command, 0) for command in IPV6)])
    return wrong + check_counters(machine)


def run_lossy(machine, linux):
    return run_pairs(machine, linux, [(command, 1) for command in LOSSY])


def run_one_way(linux_serves):
    return lambda machine, linux: run_pairs(machine, linux, [(CHECKED, 1)], [linux_serves])


def run(rnic, guest, folder, part):
    wrong = []
    (folder / "faults.json").write_text(json.dumps(FAULTS))
    (folder / "cm_faults.json").write_text(json.dumps(CM_FAULTS))
    (folder / "exact.json").write_text(json.dumps(EXACT))
    linux = None
    # Each side is client once and server once.
    everything = set().union(*(client | server for _, client, server in PROGRAMS))
    try:
        for name, faults, work, operations in (("clean", None, run_clean, everything), ("connections", None, run_connections_of(CONNECTIONS), {"UD SendOnly"} | RC_WRITE | ACK),
                                               ("lossy_connections", "cm_faults.json", run_connections_of(LOSSY_CONNECTIONS), {"UD SendOnly"}),
                                               ("exact_to_linux", "exact.json", run_one_way(True), RC_SEND | ACK),
                                               ("exact_to_nic", "exact.json", run_one_way(False), RC_SEND | ACK), ("lossy", "faults.json", run_lossy, set())):
            if part not in (None, name):
                continue
            text = (f'faults = "{faults}"\n' if faults else "") + MACHINE
            for left in reversed(range(PARTS)):
                machine = Machine(rnic, folder, name, text)
                try:
                    linux = linux or boot(guest, folder)
                    print(f"-- {name}", flush=True)
                    bad = work(machine, linux)
                    print_counters(machine)
                finally:
                    bad = [*bad, *machine.end()]
                bad += check_capture(machine.capture, operations)
                broken = roce_capture.broken_messages(roce_capture.packets_of(machine.capture), GUEST_MAC)
                if not bad or not broken or left == 0:
                    break
                print("again, because Linux has sent what no responder may take:\n" + "\n".join([*broken, *bad]), flush=True)
            wrong += bad
    finally:
        if linux is not None:
            linux.end()
    return wrong


def missing(guest):
    """What is not there and cannot be made."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"])
    names = [f"no {name}" for name in ("qemu-system-x86_64", "ibv_rc_pingpong", "ib_write_bw", "rping", "busybox", "cpio", "modprobe", "rdma") if shutil.which(name, path=path) is None]
    if names:
        return names
    made = subprocess.run([pathlib.Path(__file__).parent / "build_guest.sh", guest], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(made.stdout, end="", flush=True)
    return [] if made.returncode == 0 else ["no guest, because it cannot be made"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("guest", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--keep", type=pathlib.Path, help="folder for capture and logs, which otherwise go")
    parser.add_argument("--part", choices=["clean", "connections", "lossy_connections", "exact_to_linux", "exact_to_nic", "lossy"], help="this one alone")
    arguments = parser.parse_args()
    lacking = missing(arguments.guest)
    if lacking:
        print(f"skipped: there is {', '.join(lacking)}; scripts/interop.sh brings what is missing")
        sys.exit(77)
    programs.prefer()
    with tempfile.TemporaryDirectory(prefix="rnic_interop_") as temporary:
        folder = pathlib.Path(temporary)
        try:
            wrong = run(arguments.rnic, arguments.guest, folder, arguments.part)
        except Failure as failure:
            wrong = [str(failure)]
        if arguments.keep:
            shutil.copytree(folder, arguments.keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run", "nic", "guest"))
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
