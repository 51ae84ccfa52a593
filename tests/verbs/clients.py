#!/usr/bin/env python3
"""Runs programs of Debian's packages, as they are, on a machine (rnic serve, rnic exec).

usage: clients.py RNIC GROUP [--list FILE] [--nic KIND[,KIND]]

GROUP: devices, pingpong, perftest, rdmacm, replay or rdma_core; the last runs the tests of rdma-core that FILE names, each of which must pass. Every
group has a machine of its own, which must end without complaint; replay has one for each pair, and runs it once more from its event log. Exit code: 0 all is well, 1 something is not, 77 a program is missing.
"""
import argparse
import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import programs  # noqa: E402
import tcp_ports  # noqa: E402

TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")  # of the package rdma-core
PATIENCE = 300  # seconds, for one program or pair; a machine under load is slow
ATTEMPTS = 5  # of programs that fail for a reason of their own

PINGPONG = [
    "ibv_rc_pingpong -g 0 -n 20", "ibv_rc_pingpong -g 1 -n 20", "ibv_rc_pingpong -g 0 -n 20 -e", "ibv_rc_pingpong -g 0 -n 10 -s 65536 -m 4096",
    "ibv_rc_pingpong -g 0 -n 10 -s 1 -m 256", "ibv_rc_pingpong -g 1 -n 10 -s 5000 -m 1024 -e", "ibv_rc_pingpong -g 0 -n 10 -t", "ibv_rc_pingpong -g 0 -n 10 -N",
    "ibv_rc_pingpong -g 0 -n 10 -c", "ibv_uc_pingpong -g 0 -n 20", "ibv_uc_pingpong -g 1 -n 10 -e -s 9000 -m 2048", "ibv_ud_pingpong -g 0 -n 20",
    "ibv_ud_pingpong -g 1 -n 10 -e -s 512", "ibv_srq_pingpong -g 0 -n 20 -q 4", "ibv_srq_pingpong -g 0 -n 20 -q 4 -e",
]
PERFTEST = [
    "ib_send_bw -n 5 -a", "ib_send_bw -n 20 -s 4096", "ib_send_bw -n 20 -c UC -s 2048", "ib_send_bw -n 20 -c UD -s 1024", "ib_send_bw -n 20 -q 4 -s 1024", "ib_send_bw -n 20 -b -s 1024",
    "ib_send_bw -n 20 -e -s 1024", "ib_send_bw -n 20 -r 16 -s 512 --use-srq", "ib_send_lat -n 20", "ib_send_lat -n 20 -c UC", "ib_send_lat -n 20 -c UD",
    "ib_send_lat -n 20 -I 64 -s 64", "ib_send_lat -n 20 -e", "ib_send_bw -n 20 -c UD -g -s 512 -x 0", "ib_send_lat -n 20 -c UD -g -s 64 -x 0",
    "ib_write_bw -n 20 -s 65536", "ib_write_bw -n 5 -a", "ib_write_bw -n 20 -s 1024 --use_old_post_send",
    "ib_write_bw -n 20 -s 1024 -l 4", "ib_write_bw -n 20 -q 4 -s 1024", "ib_write_bw -n 20 -b -s 1024", "ib_write_bw -n 20 -c UC -s 1024",
    "ib_write_lat -n 20", *(f"ib_write_lat -n 5 -s {4 << power}" for power in range(0, 15, 2)), "ib_write_lat -n 20 -I 128 -s 128",
    "ib_read_bw -n 5 -a", "ib_read_bw -n 20 -s 16384", "ib_read_bw -n 20 -q 2 -s 1024", "ib_read_bw -n 20 -e -s 1024", "ib_read_lat -n 20",
    "ib_atomic_bw -n 20 -A FETCH_AND_ADD", "ib_atomic_bw -n 20 -A CMP_AND_SWAP", "ib_atomic_lat -n 20",
]
# With simulated time: the figures that they print are those of the capture.
SIMULATED = ["ib_write_bw -n 600 -s 4096", "ib_send_bw -n 40 -s 65536", "ib_read_bw -n 40 -s 65536", "ib_write_lat -n 20 -s 8", "ib_read_lat -n 20 -s 8"]
REPLAY = ["ib_write_bw -n 1000 -s 4096", "ib_send_lat -n 20 -e", "ib_read_bw -n 20 -q 4 -s 16384", "ib_send_bw -n 20 -c UD -s 1024", "ib_atomic_bw -n 20 -A FETCH_AND_ADD"]
# Server on host 0, client on host 1, which finds it by its address; PORT is a number of its own.
RDMACM = [
    ("rping -s -C 10 -v -V -a 0.0.0.0 -p PORT", "rping -c -C 10 -v -V -a 10.0.0.1 -p PORT"),
    ("rping -s -C 5 -S 4096 -a 10.0.0.1 -p PORT", "rping -c -C 5 -S 4096 -a 10.0.0.1 -p PORT"),
    ("rping -s -C 5 -v -V -a fe80::ff:fe00:1 -p PORT", "rping -c -C 5 -v -V -a fe80::ff:fe00:1 -p PORT"),
    ("ucmatose -p PORT -c 4 -C 10 -S 1000", "ucmatose -s 10.0.0.1 -p PORT -c 4 -C 10 -S 1000"),
    ("udaddy -c 2 -C 5 -S 100", "udaddy -s 10.0.0.1 -c 2 -C 5 -S 100"),
    ("rdma_server -p PORT", "rdma_client -s 10.0.0.1 -p PORT"),
    ("rdma_xserver -p PORT", "rdma_xclient -s 10.0.0.1 -p PORT"),
    ("ib_write_bw -R -n 20 -s 4096 -p PORT", "ib_write_bw -R -n 20 -s 4096 -p PORT 10.0.0.1"),
    ("ib_send_lat -R -n 20 -p PORT", "ib_send_lat -R -n 20 -p PORT 10.0.0.1"),
]
# Its sender destroys its queue pair without waiting for its Sends, so it wants a NIC that has sent ten datagrams by then: the RTL has, the
# reference, which reads the payload of one after the other, has not.
MULTICAST = ("mckey -m 224.0.0.9 -b 10.0.0.1", "mckey -m 224.0.0.9 -b 10.0.0.2 -s")
NEEDED = {"replay": sorted({line.split()[0] for line in REPLAY}), "devices": ["ibv_devices", "ibv_devinfo"], "pingpong": sorted({line.split()[0] for line in PINGPONG}),
          "perftest": sorted({line.split()[0] for line in PERFTEST}), "rdmacm": sorted({line.split()[0] for pair in [*RDMACM, MULTICAST] for line in pair}), "rdma_core": []}


def missing(group):
    """What is not installed."""
    names = [name for name in NEEDED[group] if shutil.which(name) is None]
    if group == "rdma_core":
        if not TESTS.is_dir():
            names.append(str(TESTS))
        if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs.device"], capture_output=True).returncode != 0:
            names.append("python3-pyverbs")
    return names


# What perftest says when it gives up for a reason that is its own, and the reason.
OWN_FAULTS = {
    "Correlation coefficient": "it measures the processor's clock first, and other work of the real machine disturbs that",
    # Its ends agree on when to connect before the server calls rdma_listen; refused, its client goes on with an id that it has destroyed.
    "RDMA_CM_EVENT_REJECTED; error: 8.": "its client connects before its server listens",
}


def run_measured(command):
    """Runs programs that may be of perftest; again, a few times, when they have failed for one of OWN_FAULTS, in which nothing of ours has part."""
    for left in reversed(range(ATTEMPTS)):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        reasons = [why for said, why in OWN_FAULTS.items() if said in run.stdout]
        if left == 0 or run.returncode == 0 or not reasons:
            return run
        program = command[len(command) - command[::-1].index("--"):]
        print(f"again {' '.join(program)}: {reasons[0]}", flush=True)


class Machine:
    """Two hosts and a cable, as a process."""

    def __init__(self, rnic, folder, nic):
        self.rnic, self.folder = rnic, folder
        ready, tell = os.pipe()
        self.process = subprocess.Popen([rnic, "serve", "--nic", nic, "--dir", folder, "--ready-fd", str(tell)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, pass_fds=[tell])
        os.close(tell)
        with os.fdopen(ready) as pipe:
            pipe.read(1)

    def run(self, host, command, **options):
        return subprocess.run([self.rnic, "exec", "--dir", self.folder, "--host", str(host), "--", *command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, **options)

    def run_pair(self, command):
        """The same program as server on host 0 and as client on host 1."""
        return self.run_both(command, [*command, "127.0.0.1"])

    def run_both(self, server, client):
        return run_measured([self.rnic, "exec", "--dir", self.folder, "--pair", "--", *server, "--", *client])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=PATIENCE)
        return [] if self.process.returncode == 0 else [f"the machine ended with {self.process.returncode}: {said.strip()}"]


@contextlib.contextmanager
def machine_of(rnic, nic, wrong):
    with tempfile.TemporaryDirectory(prefix="rnic_clients_") as folder:
        machine = Machine(rnic, folder, nic)
        try:
            yield machine
        finally:
            wrong += machine.end()


def check_devices(machine):
    wrong = []
    listed = machine.run(0, ["ibv_devices"])
    if listed.returncode != 0 or not re.search(r"^\s*rnic0\s+000000fffe000001$", listed.stdout, re.MULTILINE):
        wrong.append("ibv_devices:\n" + listed.stdout)
    told = machine.run(1, ["ibv_devinfo", "-v"])
    for text in (r"hca_id:\s+rnic0", r"node_guid:\s+0000:00ff:fe00:0002", r"link_layer:\s+Ethernet", r"state:\s+PORT_ACTIVE",
                 r"GID\[\s*0\]:\s+fe80::ff:fe00:2, RoCE v2", r"GID\[\s*1\]:\s+::ffff:10.0.0.2, RoCE v2"):
        if told.returncode != 0 or not re.search(text, told.stdout):
            wrong.append(f"ibv_devinfo -v does not say {text}:\n{told.stdout}")
            break
    return wrong


def rows_of(output):
    """Rows of a table of perftest: those that begin with a size."""
    return re.findall(r"^.*?\|?\s*\d+\s+\d+\s+\d+\.\d+.*$", output, re.MULTILINE)


ALL_SIZES = {1 << power for power in range(1, 24)}  # of perftest's -a


def complete(line, output):
    """The program has said what it found: of all sizes, if it was asked for all."""
    if "pingpong" in line:
        return re.search(r"\d+ iters in", output) is not None
    rows = rows_of(output)
    if "-a" not in line.split():
        return bool(rows)
    return {int(re.search(r"\d+", row.split("|")[-1]).group()) for row in rows} == ALL_SIZES


def check_pairs(machine, lines):
    wrong = []
    for line in lines:
        # That of perftest and that of ibv_*_pingpong is -p.
        command = [*line.split(), "-p", str(tcp_ports.free_port())]
        try:
            done = machine.run_pair(command)
            output, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            output, code = str(late.stdout), "no end"
        good = code == 0 and complete(line, output)
        print(f"{'ok  ' if good else 'FAIL'} {line}", flush=True)
        if not good:
            wrong.append(f"{line}: {code}\n{output}")
    return wrong


def check_connections(machine, pairs):
    wrong = []
    for number, pair in enumerate(pairs):
        server, client = (line.replace("PORT", str(7200 + number)).split() for line in pair)
        try:
            done = machine.run_both(server, client)
            output, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            output, code = str(late.stdout), "no end"
        good = code == 0 and (not pair[0].startswith("ib_") or rows_of(output)) and ("-v -V" not in pair[0] or "ping data: rdma-ping-4" in output)
        print(f"{'ok  ' if good else 'FAIL'} {pair[1]}", flush=True)
        if not good:
            wrong.append(f"{pair}: {code}\n{output}")
    return wrong


def check_replays(rnic, lines):
    """A pair of programs with a log, and the log once more: the same packets at the same time, the same figures."""
    wrong = []
    for line in lines:
        with tempfile.TemporaryDirectory(prefix="rnic_replay_") as folder:
            left = pathlib.Path(folder)
            command = [*line.split(), "-p", str(tcp_ports.free_port())]
            run = run_measured([rnic, "exec", "--pair", "--out", folder, "--log", left / "run.rnic", "--", *command, "--", *command, "127.0.0.1"])
            again = subprocess.run([rnic, "replay", left / "run.rnic", "--pcap", left / "again.pcap", "--json", left / "again.json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
            good = run.returncode == 0 and complete(line, run.stdout) and again.returncode == 0
            good = good and (left / "wire.pcap").read_bytes() == (left / "again.pcap").read_bytes()
            good = good and len({json.dumps(json.loads((left / name).read_text())["results"]) for name in ("figures.json", "again.json")}) == 1
        print(f"{'ok  ' if good else 'FAIL'} {line}", flush=True)
        if not good:
            wrong.append(f"{line}: {run.returncode}, {again.returncode}\n{run.stdout}{again.stdout}")
    return wrong


FIRST_BYTES = 43  # of a frame: Ethernet, IPv4, UDP, the opcode
OPCODES = {"ib_send_lat": 0x04, "ib_write_lat": 0x0A, "ib_read_lat": 0x0C}  # of a request of one packet, RC


def frames_of(path):
    """(time in ns of the first bit, length, opcode) of the frames of a capture."""
    data = path.read_bytes()
    unit = 1 if struct.unpack_from("<I", data)[0] == 0xA1B23C4D else 1000
    frames, at = [], 24
    while at < len(data):
        seconds, fraction, kept, length = struct.unpack_from("<IIII", data, at)
        at += 16
        opcode = data[at + FIRST_BYTES - 1] if kept >= FIRST_BYTES else None
        frames.append((seconds * 10**9 + fraction * unit, length, opcode))
        at += kept
    return frames


def agrees(words, row, wire):
    """What perftest says in `row` is what the wire has seen."""
    count, size = (int(words[words.index(option) + 1]) for option in ("-n", "-s"))
    if words[0].endswith("_bw"):
        times = [time for time, length, _ in wire if length > 1000]
        # The time of the programs begins before the first frame and ends behind the last, by a round trip.
        gbps = count * size * 8 / (times[-1] - times[0] + 2000)
        return abs(float(row[3]) * 2**20 * 8 / 1e9 / gbps - 1) < 0.02
    times = [time for time, _, opcode in wire if opcode == OPCODES[words[0]]]
    # perftest gives half a round trip, but for Reads: each time from one request on the wire to the next.
    typical_ns = statistics.median(later - sooner for sooner, later in zip(times, times[1:]))
    return len(times) == count * (1 if "read" in words[0] else 2) and abs(float(row[4]) * 1000 - typical_ns) <= 100


def check_simulated(rnic, lines):
    """Programs with simulated time print what the capture of the same run says (docs/simulated_clock.md)."""
    wrong = []
    for line in lines:
        with tempfile.TemporaryDirectory(prefix="rnic_simulated_") as folder:
            command = [*line.split(), "-p", str(tcp_ports.free_port())]
            run = subprocess.run([rnic, "exec", "--clock", "simulated", "--pair", "--out", folder, "--", *command, "--", *command, "127.0.0.1"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
            rows = [row.split("|")[1].split() for row in rows_of(run.stdout) if row.startswith("client")]
            good = run.returncode == 0 and len(rows) == 1 and agrees(line.split(), rows[0], frames_of(pathlib.Path(folder) / "wire.pcap"))
        print(f"{'ok  ' if good else 'FAIL'} {line}, simulated time", flush=True)
        if not good:
            wrong.append(f"{line}, simulated time: {run.returncode}\n{run.stdout}")
    return wrong


def unpack_tests(to):
    for path in TESTS.iterdir():
        if path.suffix == ".gz":
            (to / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            shutil.copy(path, to)


def check_rdma_core(machine, listed):
    names = [line.strip() for line in pathlib.Path(listed).read_text().splitlines() if line.strip() and not line.startswith("#")]
    wrong = []
    with tempfile.TemporaryDirectory(prefix="rnic_rdma_core_") as folder:
        tests = pathlib.Path(folder) / "tests"
        tests.mkdir()
        unpack_tests(tests)
        for module in sorted({name.rsplit(".", 1)[0] for name in names}):
            own = [name for name in names if name.rsplit(".", 1)[0] == module]
            try:
                # A hint on standard error would stand between the name of a test and its result.
                done = machine.run(0, ["/usr/bin/python3", "tests/run_tests.py", "-v", *own], cwd=folder, env={**os.environ, "RNIC_HINTS": "0"})
                output = done.stdout
            except subprocess.TimeoutExpired as late:
                output = str(late.stdout)
            # A line of a test ends with its result; a docstring may stand between.
            passed = set(re.findall(r"\((tests\.[\w.]+)\)(?:\n(?!\w+ \(tests\.).*?)? \.\.\. ok$", output, re.MULTILINE))
            for name in own:
                print(f"{'ok  ' if name in passed else 'FAIL'} {name}", flush=True)
            if not set(own) <= passed:
                wrong.append(output)
    return wrong


def check_group(machine, arguments):
    if arguments.group == "devices":
        return check_devices(machine)
    if arguments.group == "rdma_core":
        return check_rdma_core(machine, arguments.list)
    if arguments.group == "rdmacm":
        return check_connections(machine, RDMACM + [MULTICAST] * (arguments.nic == "rtl"))
    return check_pairs(machine, PINGPONG if arguments.group == "pingpong" else PERFTEST)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic")
    parser.add_argument("group", choices=sorted(NEEDED))
    parser.add_argument("--list")
    parser.add_argument("--nic", default="rtl", help="NICs of the machine, as rnic serve takes them")
    arguments = parser.parse_args()
    lacking = missing(arguments.group)
    if lacking:
        print(f"skipped: {', '.join(lacking)} is not installed; scripts/setup.sh --clients does that")
        sys.exit(77)
    programs.prefer()
    wrong = []
    rnic = str(pathlib.Path(arguments.rnic).resolve())
    if arguments.group == "replay":
        wrong += check_replays(rnic, REPLAY)
    else:
        with machine_of(rnic, arguments.nic, wrong) as machine:
            wrong += check_group(machine, arguments)
    if arguments.group == "perftest":
        wrong += check_simulated(rnic, SIMULATED)
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
