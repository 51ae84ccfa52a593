#!/usr/bin/env python3
"""The tool `rnic` as a user calls it: what it prints, writes, and exits with.

usage: test_tool.py RNIC [TEST...]
"""
import itertools
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from xml.etree import ElementTree

import rnic_tool
from rnic_tool import checked, main, results, rnic

ICRC_CHECK = pathlib.Path(__file__).resolve().parents[1] / "tools/icrc_check.py"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import fst  # noqa: E402

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "fuzz_corpus"
VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors"


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)  # what failed runs leave goes with it

    def file(self, size, name="data"):
        path = self.folder / name
        path.write_bytes(random.Random(size).randbytes(size))
        return path

    def copy(self, *arguments):
        result = rnic("copy", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def copy_json(self, *arguments, name="out.json"):
        self.copy(*arguments, "--json", self.folder / name)
        return results(self.folder / name)

    def bench_json(self, *arguments):
        path = self.folder / "bench.json"
        result = rnic("bench", *arguments, "--json", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return results(path)

    def refused(self, *arguments):
        """The tool exits with 2 and one line that names what is wrong; returns the line."""
        result = rnic(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertRegex(result.stderr, "^rnic: ")
        return result.stderr

    def test_copy_of_any_size_is_equal(self):
        for size in (0, 1, 4095, 4097, 300_001):
            with self.subTest(size=size):
                figures = self.copy_json(self.file(size), "--message", 65536)
                self.assertTrue(figures["equal"])
                self.assertEqual(figures["write"]["bytes"], size)
                self.assertEqual(figures["read"]["bytes"], size)
                self.assertEqual(len(set(figures["sha256"].values())), 1)

    def test_copy_prints_the_table(self):
        out = self.copy(self.file(20_000)).stdout
        for words in ("messages", "bytes", "simulated time", "goodput", "share of what the wire allows", "latency minimum", "latency median", "latency p99",
                      "set-up", "transfer", "cycles per second", "equal"):
            self.assertIn(words, out)
        self.assertNotIn("\r", out)  # a progress bar is for terminals

    def test_copy_says_what_was_repaired_dropped_and_refused(self):
        file = self.file(60_000)
        trouble = r"(?m)^  [AB] (repaired|dropped|refused): "
        clean = self.copy(file, "--mtu", 256, "--json", self.folder / "clean.json").stdout
        self.assertNotRegex(clean, trouble)
        counters = results(self.folder / "clean.json")["counters"]
        self.assertEqual(set(counters), {"a", "b"})
        self.assertEqual(counters["a"]["TxFrames"], counters["b"]["RxFrames"])
        self.assertEqual(counters["b"]["RxOverflow"], 0)
        # A Write in the middle is lost: B finds the gap and says so, A goes back.
        lose = self.scenario({"wire": {"a_to_b": {"rules": [{"fault": "drop", "opcode": "RC_RDMA_WRITE_MIDDLE", "nth": 3}]}}})
        lossy = self.copy(file, "--mtu", 256, "--faults", lose).stdout
        self.assertRegex(lossy, r"(?m)^  A repaired: 1 SequenceRetries")
        self.assertRegex(lossy, r"(?m)^  B repaired: 1 TxNaks")
        self.assertNotRegex(lossy, r"(?m)^  [AB] refused")

    def test_copy_over_many_queue_pairs_and_small_packets(self):
        figures = self.copy_json(self.file(100_000), "--qps", 7, "--mtu", 256, "--message", 3001, "--link-gbps", 25, "--link-delay-ns", 900, "--pcie-read-ns", 1200)
        self.assertTrue(figures["equal"])
        self.assertEqual(figures["write"]["messages"], 34)
        self.assertGreater(figures["write"]["latency_min_ns"], 900)
        self.assertLess(figures["write"]["goodput_gbps"], 25)

    def arrivals(self, pcap):
        """Time stamps of a capture, nanoseconds."""
        data, at, times = pcap.read_bytes(), 24, []
        while at < len(data):
            seconds, nanoseconds, captured = struct.unpack_from("<III", data, at)
            times.append(seconds * 10**9 + nanoseconds)
            at += 16 + captured
        return times

    def test_pcie_of_both_hosts(self):
        file = self.file(60_000)
        ordinary = self.copy(file, "--json", self.folder / "ordinary.json")
        self.assertNotIn("PCI Express", ordinary.stdout)
        chosen = ("--pcie-gen", 1, "--pcie-lanes", 2, "--pcie-payload", 128, "--pcie-read-request", 256, "--pcie-boundary", 128, "--pcie-tags", 5, "--pcie-read-ns", 900, "--pcie-jitter-ns", 20)
        out = self.copy(file, *chosen, "--json", self.folder / "chosen.json").stdout
        self.assertIn("both hosts: PCI Express 1.0 x2, 0.5 GB/s each way, payload 128, read request 256, boundary 128, tags of 5 bits; read latency 900 ns, jitter 20 ns\n", out)
        goodput = [results(self.folder / f"{name}.json")["write"]["goodput_gbps"] for name in ("ordinary", "chosen")]
        self.assertLess(goodput[1], 4 * 128 / 152)  # 128 bytes of each 152 of the peer's TLPs
        self.assertGreater(goodput[0], 4 * goodput[1])
        # The ordinary world, said in words.
        self.copy(file, "--pcie-gen", 4, "--pcie-lanes", 16, "--pcie-payload", 256, "--pcie-tags", 8, "--json", self.folder / "said.json")
        figures = [results(self.folder / f"{name}.json") for name in ("ordinary", "said")]
        self.assertEqual(*figures)
        for option, value in (("--pcie-gen", 6), ("--pcie-lanes", 3), ("--pcie-payload", 100), ("--pcie-read-request", 8192), ("--pcie-boundary", 32), ("--pcie-tags", 10), ("--pcie-read-ns", 0),
                              ("--pcie-jitter-ns", -1)):
            self.assertIn(option, self.refused("copy", file, option, value))
        self.assertIn("--world", self.refused("bench", "--world", 1, "--pcie-payload", 128))
        self.assertIn("both hosts: PCI Express 3.0 x8, 7.877 GB/s each way\n", rnic("verify", "--world", 1, "--pcie-gen", 3, "--pcie-lanes", 8, VECTORS / "flush/empty.json").stdout)

    def test_a_vector_that_asks_for_the_ordinary_world_has_it_in_every_other(self):
        def frames(vector, *world):
            capture = self.folder / "wire.pcap"
            rnic("verify", "--nic", "model", "--pcap", capture, *world, VECTORS / vector)
            return capture.read_bytes()

        worlds = ((), ("--world", 1), ("--world", 4))
        asks = [frames("credits/one_beyond_the_limit.json", *world) for world in worlds]
        self.assertEqual(asks[0], asks[1])
        self.assertEqual(asks[0], asks[2])
        self.assertEqual(3, len({frames("send/zero_length_segment.json", *world) for world in worlds}))

    def test_one_seed_one_result(self):
        file = self.file(50_000)
        runs = []
        for seed in (7, 7, 8):
            figures = self.copy_json(file, "--qps", 2, "--seed", seed, "--pcap", self.folder / "wire.pcap")
            del figures["seed"]
            runs.append((figures, (self.folder / "wire.pcap").read_bytes(), self.arrivals(self.folder / "wire.pcap")))
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0][2], runs[2][2])
        self.assertEqual(runs[0][0]["sha256"], runs[2][0]["sha256"])

    def test_capture_satisfies_tshark_and_the_icrc_checker(self):
        pcap = self.folder / "wire.pcap"
        self.copy(self.file(30_001), "--qps", 3, "--mtu", 1024, "--message", 5000, "--pcap", pcap)
        fields = ["frame.protocols", "infiniband.bth.opcode", "_ws.malformed", "_ws.expert.message", "ip.checksum.status"]
        out = subprocess.run(["tshark", "-r", pcap, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|", *sum((["-e", field] for field in fields), [])],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(out.returncode, 0, out.stderr)
        packets = [line.split("|") for line in out.stdout.splitlines()]
        # SEND only, WRITE first to only, READ request and responses, ACK of the RC service (InfiniBand specification 9.2.1)
        known = {4, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17}
        seen = set()
        for protocols, opcode, malformed, expert, checksum in packets:
            self.assertIn("infiniband", protocols)
            self.assertEqual((malformed, expert, checksum), ("", "", "1"))
            seen.add(int(opcode))
        self.assertEqual(seen & {6, 7, 8, 12, 13, 14, 15, 17}, {6, 7, 8, 12, 13, 14, 15, 17})
        self.assertLessEqual(seen, known)
        check = subprocess.run([sys.executable, ICRC_CHECK, pcap], capture_output=True, text=True, timeout=120)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_trace_has_the_waves_of_both_hosts(self):
        self.copy(self.file(100), "--trace", self.folder / "waves.fst")
        for name in ("waves.fst", "waves.host1.fst"):
            data = (self.folder / name).read_bytes()
            # First block: header (type 0), 329 bytes, with start and end time; the end was written, so the file is closed.
            kind, length, start, end = struct.unpack_from(">BQQQ", data)
            self.assertEqual((kind, length), (0, 329))
            self.assertGreater(end, start)
        usage = subprocess.run([ROOT / "scripts/trace_usage.py", self.folder / "waves.fst"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(usage, r"u_send_queue\.u_turns\.u_engine\.u_issue\.state_q +0:[0-9.]+ [1-9]:[0-9.]+")
        self.assertRegex(usage, r"u_tx_path\.u_frame\.u_frames\.out +[0-9.]+ +[0-9.]+")

    def signals(self, trace):
        """Full names of an FST file, without ranges."""
        process, declared = fst.open_trace(trace)
        process.kill()
        process.stdout.close()
        process.wait()
        return {full for full, _, _ in declared}

    def test_views_show_signals_that_are_there(self):
        self.copy(self.file(100), "--trace", self.folder / "waves.fst")
        for name in ("waves", "waves.host1"):
            signals = self.signals(self.folder / f"{name}.fst")
            gtkwave = (self.folder / f"{name}.gtkw").read_text().splitlines()
            shown = [line.split("[")[0] for line in gtkwave if line.startswith("host")]
            self.assertGreater(len(shown), 100)
            self.assertLessEqual(set(shown), signals)
            surfer = (self.folder / f"{name}.sucl").read_text().splitlines()
            self.assertEqual([line.removeprefix("variable_add ") for line in surfer if line.startswith("variable_add")], shown)
            # What Surfer's command prompt takes. A divider has a title of one word: what follows it makes the command an error.
            for line in surfer:
                self.assertRegex(line, r"^(divider_add \w+|variable_add [\w.]+|zoom_fit|zoom_in|cursor_set \d+|goto_cursor)$")
            groups = [line.removeprefix("divider_add ") for line in surfer if line.startswith("divider_add")]
            titles = [line[1:] for flags, line in zip(gtkwave, gtkwave[1:]) if flags in ("@800200", "@1000200")]
            self.assertEqual([re.sub(r"\W+", "_", title) for title in titles], [group for group in groups for _ in range(2)])
            self.assertEqual([group[0] for group in groups], list("c12345678"))
            self.assertIn(f'[dumpfile] "{self.folder / name}.fst"', gtkwave)
            # States by the names that the FST file has.
            state = next(i for i, line in enumerate(gtkwave) if line.endswith("u_check.state_q[2:0]"))
            self.assertEqual(gtkwave[state - 1], "@100000028")
            # Fields of a descriptor. Opcodes have names, in a file that the line in front of them names.
            opcode = next(i for i, line in enumerate(gtkwave) if line.startswith("#{desc_data_o.opcode[7:0]}"))
            filter_file = pathlib.Path(re.fullmatch(r"\^[0-9]+ (.*)", gtkwave[opcode - 1])[1])
            self.assertEqual(gtkwave[opcode - 2], "@2022")
            self.assertEqual(filter_file.parent, self.folder / f"{name}.names")
            self.assertIn("0A WriteOnly", filter_file.read_text().splitlines())
            # The PSN has bits 40 to 17 of 869; bits count from the highest one down.
            psn = next(line for line in gtkwave if line.startswith("#{desc_data_o.psn[23:0]}"))
            self.assertEqual([int(bit) for bit in re.findall(r" \(([0-9]+)\)", psn)], list(range(828, 852)))
            # They open at the first work request, which is not in the first microsecond.
            zoom, mark, named = re.fullmatch(r"\*-([0-9.]+) ([0-9]+) ([0-9]+)( -1){25}", next(line for line in gtkwave if line.startswith("*"))).groups()[:3]
            start = int(next(line for line in gtkwave if line.startswith("[timestart] ")).split()[1])
            self.assertEqual(mark, named)
            self.assertGreater(int(mark), 1_000_000)
            self.assertEqual(int(mark) - start, 200_000)
            # GTKWave's zoom is of 200 pixels: 2 us on 900.
            self.assertAlmostEqual(float(zoom), math.log2(200 * 2e6 / 900), delta=0.01)
            self.assertIn(f"cursor_set {mark}", surfer)

    def test_a_failure_names_status_host_and_fault(self):
        faults = self.folder / "abort.json"
        for nth in (1, 20):  # an admin command; the payload of the Write
            faults.write_text(json.dumps({"pcie": {"a": {"rules": [{"fault": "completer_abort", "on": "dma_read", "nth": nth}]}}}))
            result = rnic("copy", self.file(40_000), "--faults", faults)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"rnic: host A: [^\n]*(: ND_[A-Z_]+ \([a-z ]+\)|: [a-z ]+)\n  faults of the scenario that hit: PCI Express of host A: 1 completer_abort\n")
            self.assertNotRegex(result.stderr, "0x[0-9a-f]")

    def test_the_size_of_waves_is_said_before(self):
        said = self.copy(self.file(40_000), "--trace", self.folder / "waves.fst").stderr
        megabytes = float(re.search(r"^rnic: --trace: the waves will have about ([0-9]+) MB; --trace-window FROM:TO and --trace-scope SCOPE make them smaller$", said, re.MULTILINE)[1])
        size = sum((self.folder / name).stat().st_size for name in ("waves.fst", "waves.host1.fst")) / 1e6
        self.assertLess(max(megabytes / size, size / megabytes), 1.6, (megabytes, size))

    def test_window_and_scope_of_a_trace(self):
        file = self.file(100)
        waves = self.folder / "waves.fst"
        self.copy(file, "--trace", waves, "--trace-window", "20000:21000", "--trace-scope", "rnic_top.u_send_side.u_tx_path:2")
        start, end = struct.unpack_from(">QQ", waves.read_bytes(), 9)
        self.assertGreaterEqual(start, 20_000_000)
        self.assertLess(start, 20_010_000)
        self.assertLessEqual(end, 21_000_000)
        self.assertGreater(end, 20_990_000)
        scopes = {name.rsplit(".", 1)[0].split("u_tx_path")[-1] for name in self.signals(waves)}
        self.assertIn("", scopes)
        self.assertIn(".u_merge", scopes)
        self.assertEqual({scope.count(".") for scope in scopes}, {0, 1})
        for option, value in (("--trace-window", "5"), ("--trace-window", "9:5"), ("--trace-window", "a:b"), ("--trace-scope", "u_send_side:0"), ("--trace-scope", "u_nothing")):
            self.assertIn(option, self.refused("copy", file, "--trace", self.folder / "none.fst", option, value))
        self.assertFalse((self.folder / "none.fst").exists())
        self.assertIn("--trace", self.refused("copy", file, "--trace-window", "0:5"))

    def test_soak(self):
        path = self.folder / "soak.json"
        result = rnic("soak", "--cycles", 200_000, "--seed", 11, "--json", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        figures = results(path)
        self.assertEqual((figures["wrong"], figures["hung"], figures["messages"]), (0, 0, []))
        self.assertGreaterEqual(figures["cycles"], 200_000)
        # 64 queue pairs of each host, made and given back side by side. A queue pair with bound windows is searched for in
        # all 32 Ki keys when it goes, one a cycle.
        self.assertLess(figures["set_up_cycles"] + figures["tear_down_cycles"], 150_000)
        self.assertEqual(figures["completed"], sum(figures["requests"].values()))
        self.assertGreater(min(figures["requests"].values()), 300)
        self.assertGreater(figures["registrations"], 0)
        self.assertGreater(figures["binds"], 0)
        self.assertGreater(figures["invalidations"], 0)
        for what, least in (("shared_receives", 300), ("send_invalidates", 20), ("fast_registrations", 20), ("binds", 20), ("unreliable_received", 100),
                            ("datagrams_received", 100), ("resizes", 2)):
            self.assertGreater(figures["mix"][what], least, what)
        for what, least in (("adds", 100), ("swapped", 30), ("word_reads", 20), ("cell_writes", 100), ("cell_reads", 100), ("cell_looks", 50), ("fenced", 15),
                            ("overwrites", 50), ("events", 300), ("solicited_events", 10), ("quiet_entries", 50)):
            self.assertGreater(figures["share"][what], least, what)
        for words in ("requests completed", "wrong", "hung"):
            self.assertIn(words, result.stdout)

    def test_soak_of_one_seed_is_one_run(self):
        runs = []
        for _ in range(2):
            path = self.folder / "soak.json"
            self.assertEqual(rnic("soak", "--cycles", "20k", "--qps", 4, "--seed", 5, "--json", path).returncode, 0)
            runs.append(results(path))
        self.assertEqual(runs[0], runs[1])

    def test_soak_sees_a_hang(self):
        # No request is done within a microsecond, so each direction counts as hung.
        result = rnic("soak", "--cycles", 20_000, "--qps", 4, "--hang-us", 1, "--json", self.folder / "soak.json")
        self.assertEqual(result.returncode, 1)
        figures = results(self.folder / "soak.json")
        self.assertGreater(figures["hung"], 0)
        self.assertIn("no completion for 1 us", result.stderr)

    def test_fuzz_with_the_corpus(self):
        folder = self.folder / "corpus"
        shutil.copytree(CORPUS, folder)
        kept = sorted(folder.iterdir())
        path = self.folder / "fuzz.json"
        result = rnic("fuzz", "--frames", 5_000, "--seed", 3, "--corpus", folder, "--json", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        figures = results(path)
        self.assertEqual((figures["frames"], figures["violations"], figures["violation"]), (5_000, 0, []))
        self.assertGreater(figures["wqes"], 300)
        self.assertGreater(figures["victim_requests"], 300)
        # The frames get past the first checks, to every one behind them.
        for counter in ("rx_malformed", "rx_bad_icrc", "rx_bad_peer", "rx_no_qp", "rx_psn_error", "rx_invalid_request", "rx_stray_responses", "doorbells_refused"):
            self.assertGreater(figures["counters"][counter], 0, counter)
        self.assertEqual(sorted(folder.iterdir()), kept)

    def test_wrong_use(self):
        file = self.file(10)
        self.assertIn("which command", self.refused())
        self.assertIn("'/nonexistent'", self.refused("copy", "/nonexistent"))
        self.assertIn(str(self.folder), self.refused("copy", self.folder))
        self.assertIn("--mtu", self.refused("copy", file, "--mtu", 1000))
        self.assertIn("--message", self.refused("copy", file, "--message", 0))
        self.assertIn("--qps", self.refused("copy", file, "--qps", 0))
        self.assertIn("--link-gbps", self.refused("copy", file, "--link-gbps", -1))
        self.assertIn("--seed", self.refused("copy", file, "--seed", "many"))
        self.assertIn("--nonsense", self.refused("copy", file, "--nonsense"))
        for option in ("--pcap", "--trace", "--json"):
            self.assertIn(option, self.refused("copy", file, option, "/nonexistent/out"))
        self.assertIn("--json", self.refused("bench", "--json", "/nonexistent/out"))
        self.assertIn("write_half_rtt_ns", self.refused("bench", "--figure", "write_half_rtt"))
        self.assertIn("--figure", self.refused("bench", "--trace", str(self.folder / "waves.fst")))
        self.assertIn("/nonexistent", self.refused("verify", "/nonexistent"))
        self.assertIn("--json", self.refused("soak", "--json", "/nonexistent/out"))
        self.assertIn("--qps", self.refused("soak", "--qps", 0))
        self.assertIn("--cycles", self.refused("soak", "--cycles", 0))
        self.assertIn("--shares", self.refused("soak", "--shares", 3))
        self.assertIn("--hang-us", self.refused("soak", "--hang-us", 0))
        self.assertIn("--frames", self.refused("fuzz", "--frames", 0))
        self.assertIn("/nonexistent", self.refused("fuzz", "--corpus", "/nonexistent"))
        (self.folder / "broken.json").write_text("{")
        self.assertIn("broken.json", self.refused("fuzz", "--corpus", self.folder))
        self.assertIn("--junit", self.refused("verify", VECTORS / "flush", "--junit", "/nonexistent/out"))

    def scenario(self, value):
        path = self.folder / "scenario.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def test_each_figure_of_the_benchmark_has_a_whole_name(self):
        names = ("recovery_round_trips_last", "warm_write_ns")
        result = rnic("bench", *(word for name in names for word in ("--figure", name)))
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [line[:84].strip() for line in result.stdout.splitlines()[1:-1]]
        self.assertEqual(rows, ["64 KiB Write, its last packet lost, ACK time-out 16 us: time until repaired",
                                "64-byte Write, posting to completion, second access to its memory regions"])

    def test_faults_from_a_scenario(self):
        file = self.file(50_000)
        plain = self.copy_json(file, "--link-delay-ns", 5000)
        # Reordered completions, held-back requests and late frames change times, and nothing else.
        slow = {"wire": {"both": {"delay": {"probability": 0.1, "ns": 3000}}, "b_to_a": {"rules": [{"fault": "ecn", "opcode": "RC_ACKNOWLEDGE", "nth": 2}]}}, "pcie": {"reorder": 0.5, "both": {"back_pressure": {"probability": 0.2}}}}
        late = self.copy_json(file, "--link-delay-ns", 5000, "--faults", self.scenario(slow))
        self.assertTrue(late["equal"])
        self.assertEqual(late["sha256"], plain["sha256"])
        self.assertGreater(late["simulated_ns"], plain["simulated_ns"])
        self.assertNotIn("faults", plain)
        self.assertEqual(late["faults"]["wire"]["b_to_a"]["ecn"], 1)
        self.assertGreater(late["faults"]["wire"]["a_to_b"]["delay"], 0)

    def test_scenario_from_a_pipe(self):
        scenario = json.dumps({"wire": {"b_to_a": {"rules": [{"fault": "ecn", "opcode": "RC_ACKNOWLEDGE", "nth": 1}]}}})
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(scenario,), daemon=True)
        writer.start()
        figures = self.copy_json(self.file(5000), "--faults", pipe)
        writer.join(timeout=10)
        self.assertEqual(figures["faults"]["wire"]["b_to_a"], {"ecn": 1})

    def test_speed_is_that_of_the_transfer(self):
        # Set-up of 64 queue pairs takes more cycles than 1,000 bytes: neither its cycles nor its seconds are in the figure.
        figures = self.copy_json(self.file(1000), "--qps", 64)
        wall = checked((self.folder / "out.json").read_text())["wall_clock"]
        self.assertAlmostEqual(wall["simulated_cycles_per_second"], figures["cycles"] / wall["seconds"], delta=1)
        self.assertGreater(figures["setup"]["cycles"], 2 * figures["cycles"])
        self.assertGreater(wall["setup_seconds"], wall["seconds"])

    def test_threads_change_nothing(self):
        # Times are apart for each number of threads, so results show no difference only if there is none.
        file = self.file(60_000)
        captures, figures = [], []
        for threads in (1, 2):
            capture = self.folder / f"{threads}.pcap"
            figures.append(self.copy_json(file, "--threads", threads, "--qps", 4, "--message", 3000, "--world", 3, "--pcap", capture))
            captures.append(capture.read_bytes())
        self.assertGreater(len(captures[0]), 60_000)
        self.assertEqual(captures[0], captures[1])
        self.assertEqual(figures[0], figures[1])
        for command in (("soak", "--cycles", 4000, "--qps", 8), ("fuzz", "--frames", 300)):
            runs = []
            for threads in (1, 2):
                path = self.folder / "result.json"
                rnic(*command, "--threads", threads, "--json", path)
                runs.append(results(path))
            self.assertEqual(runs[0], runs[1], command[0])
        self.assertIn("--threads", self.refused("copy", file, "--threads", 0))

    def test_a_clock_that_stands_still_changes_nothing(self):
        # A NIC that is quiet is not clocked; --check-rest looks whether it is.
        modes = (("--check-rest",), ("--no-clock-gating",))
        file = self.file(40_000)
        for world in ((), ("--world", 3)):
            captures, figures, soaks = [], [], []
            for mode in modes:
                capture, result = self.folder / "wire.pcap", self.folder / "result.json"
                faults = self.scenario({"wire": {"both": {"drop": 0.1}}})
                figures.append(self.copy_json(file, *mode, *world, "--qps", 3, "--message", 3000, "--faults", faults, "--pcap", capture))
                captures.append(capture.read_bytes())
                rnic("soak", "--cycles", 4000, "--qps", 8, "--mixes", 0, *world, *mode, "--json", result)
                soaks.append(results(result))
            self.assertGreater(len(captures[0]), 40_000)
            self.assertEqual(captures[0], captures[1])
            self.assertEqual(figures[0], figures[1])
            self.assertGreater(sum(way.get("drop", 0) for way in figures[0]["faults"]["wire"].values()), 0)
            self.assertEqual(soaks[0], soaks[1])
        # A NIC whose clock stands still is told of the third beat of a frame as the edge that takes the first is due.
        captures = []
        for mode in modes:
            rnic("copy", self.file(5_000), *mode, "--qps", 1, "--message", 130, "--link-delay-ns", 0, "--pcap", capture)
            captures.append(capture.read_bytes())
        self.assertEqual(captures[0], captures[1])
        some = sorted([*(VECTORS / "rnr").glob("*.json"), *(VECTORS / "event").glob("*.json")])[::3]  # slow without gating, and with checks
        passed = [rnic("verify", "--jobs", 1, *mode, *some).stdout.split("\ncycles per second")[0] for mode in modes]
        self.assertIn("pass ", passed[0])
        self.assertEqual(passed[0], passed[1])
        for figure in ("write_half_rtt_ns", "recovery_round_trips_middle"):
            self.assertEqual(*(self.bench_json(*mode, "--figure", figure)[figure] for mode in modes))

    def test_version(self):
        result = rnic("--version")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^rnic \d+\.\d+\.\d+\n$")

    def test_wrong_scenarios(self):
        file = self.file(10)
        for value, words in (("{", "no JSON"), ({"wire": {"both": {"drop": 2}}}, "wire.both.drop"), ({"wires": {}}, "wires: unknown key")):
            path = self.scenario(value)
            line = self.refused("copy", file, "--faults", path)
            self.assertIn("--faults", line)
            self.assertIn(str(path), line)
            self.assertIn(words, line)
        self.assertIn("'/nonexistent'", self.refused("copy", file, "--faults", "/nonexistent"))

    def test_malformed_vectors(self):
        good = json.loads((VECTORS / "flush/empty.json").read_text())
        broken = {"nothing": "", "no JSON": "{", "unknown key": json.dumps({**good, "clauses": "x"}), "no rule": json.dumps({k: v for k, v in good.items() if k != "rule"}),
                  "unknown step": json.dumps({**good, "steps": [{"host": "A", "do": "jump"}]}),
                  "unknown fault": json.dumps({**good, "steps": [{"host": "A", "do": "fault", "fault": "eat"}]}),
                  "fault out of range": json.dumps({**good, "steps": [{"host": "A", "do": "fault", "fault": "drop", "nth": 0}]}),
                  "unknown opcode": json.dumps({**good, "steps": [{"host": "A", "do": "frame", "opcode": "Send", "psn": 0}]}),
                  "unknown counter": json.dumps({**good, "steps": [{"host": "A", "do": "counter", "name": "Frames", "equals": 0}]}),
                  "status of neither": json.dumps({**good, "steps": [{"host": "A", "do": "complete", "results": [{"type": "Send", "context": 1, "status": "Good"}]}]}),
                  "atomic in NetworkDirect": json.dumps({**good, "steps": [{"host": "A", "do": "complete", "results": [{"type": "FetchAdd", "context": 1, "status": "ND_SUCCESS"}]}]}),
                  "timer code": json.dumps({**good, "setup": {"min_rnr_timer": 32}}),
                  "unknown type": json.dumps({**good, "setup": {"type": "RD"}}),
                  "shared queue of an unreliable connection": json.dumps({**good, "setup": {"type": "UC", "srq": {}}}),
                  "no such queue pair": json.dumps({**good, "setup": {"queue_pairs": 2}, "steps": [{"host": "A", "do": "flush", "qp": 3}]}),
                  "queue pair 0": json.dumps({**good, "steps": [{"host": "A", "do": "flush", "qp": 0}]}),
                  "datagram's address on RC": json.dumps({**good, "steps": [{"host": "A", "do": "send", "context": 1, "sge": [], "qkey": 1}]}),
                  "shared queue without one": json.dumps({**good, "steps": [{"host": "A", "do": "notify", "queue": "shared", "name": "n"}]}),
                  "transition to RESET": json.dumps({**good, "steps": [{"host": "A", "do": "modify", "to": "RESET"}]}),
                  "attribute too large": json.dumps({**good, "steps": [{"host": "A", "do": "modify", "to": "RTS", "set": {"retry_count": 8}}]}),
                  "unknown attribute": json.dumps({**good, "steps": [{"host": "A", "do": "modify", "to": "RTS", "set": {"mtu": 1}}]}),
                  "unknown event": json.dumps({**good, "steps": [{"host": "A", "do": "event", "type": "Completion"}]}),
                  "half a byte": json.dumps({**good, "steps": [{"host": "A", "do": "memory", "region": "a", "offset": 0, "bytes": "1"}]}),
                  "registration of nothing": json.dumps({**good, "steps": [{"host": "A", "do": "end_registration", "context": 1, "name": "f"}]}),
                  "null of a number": json.dumps({**good, "steps": [{"host": "A", "do": "send", "context": 1, "sge": {"null": "two"}}]}),
                  "null and more": json.dumps({**good, "steps": [{"host": "A", "do": "send", "context": 1, "sge": {"null": 2, "region": "a"}}]}),
                  "null of what is no pointer": json.dumps({**good, "steps": [{"host": "A", "do": "bind", "context": 1, "window": "w", "region": "a", "offset": 0, "length": 1, "null": "flags"}]}),
                  "null of an argument of Bind": json.dumps({**good, "steps": [{"host": "A", "do": "invalidate", "context": 1, "window": "w", "null": "region"}]}),
                  "type of nothing": json.dumps({**good, "steps": [{"host": "A", "do": "notify", "queue": "receive", "type": -1, "name": "n"}]}),
                  "more than asked": json.dumps({**good, "steps": [{"host": "A", "do": "get_results", "ask": 0, "results": [{"type": "Send", "context": 1, "status": "ND_SUCCESS"}]}]}),
                  "results of the NIC": json.dumps({**good, "steps": [{"host": "A", "do": "get_results", "ask": 1, "results": [{"type": "Send", "context": 1, "status": "Success"}]}]}),
                  "ask is missing": json.dumps({**good, "steps": [{"host": "A", "do": "get_results", "results": []}]}),
                  "unknown object": json.dumps({**good, "steps": [{"host": "A", "do": "release", "object": "host"}]}),
                  "object that is not released": json.dumps({**good, "steps": [{"host": "A", "do": "release", "object": "adapter"}]}),
                  "cancel of a window": json.dumps({**good, "steps": [{"host": "A", "do": "cancel", "object": "queue_pair"}]}),
                  "release of no region": json.dumps({**good, "steps": [{"host": "A", "do": "release", "object": "region", "name": "x"}]}),
                  "cancel without a shared queue": json.dumps({**good, "steps": [{"host": "A", "do": "cancel", "object": "shared_queue"}]}),
                  "affinity without a shared queue": json.dumps({**good, "steps": [{"host": "A", "do": "query_affinity", "queue": "shared"}]}),
                  "affinity of no argument": json.dumps({**good, "steps": [{"host": "A", "do": "query_affinity", "null": "queue"}]}),
                  "unknown interface": json.dumps({**good, "steps": [{"host": "A", "do": "query_interface", "object": "adapter", "interface": "IND2Engine"}]}),
                  "range of a field": json.dumps({**good, "steps": [{"host": "A", "do": "query_adapter", "version": 1, "fields": {"MaxReadSge": {"above": 1}}}]}),
                  "unknown field": json.dumps({**good, "steps": [{"host": "A", "do": "query_adapter", "version": 1, "fields": {"MaxEngines": 1}}]}),
                  "unknown option": json.dumps({**good, "steps": [{"host": "A", "do": "end_registration", "context": 1, "name": "a", "options": ["INLINE"]}]}),
                  "quota of nothing": json.dumps({**good, "setup": {"quota": {"regions": 1}}}),
                  "one queue of QP1": json.dumps({**good, "setup": {"type": "QP1", "one_cq": True}}),
                  "key of nothing": json.dumps({**good, "packets": ["A>B WriteOnly rkey=x"]})}
        for what, text in broken.items():
            with self.subTest(what=what):
                path = self.folder / "vector.json"
                path.write_text(text)
                self.assertIn(str(path), self.refused("verify", path))

    def test_list_of_clauses(self):
        (self.folder / "v").mkdir()
        shutil.copy(VECTORS / "flush/empty.json", self.folder / "v")
        one = json.loads((self.folder / "v/empty.json").read_text())
        one["document"], one["clause"] = "Book", "4.2 with C4-7. (and 4.3), 4.5"
        (self.folder / "v/book.json").write_text(json.dumps(one))
        lines = [{"clause": number, "about": f"about {number}"} for number in ("4", "4.2", "C4-7", "4.3", "4.5")]
        (self.folder / "v/clauses.json").write_text(json.dumps({"Book": lines, "Other": [{"clause": "4.2", "about": "elsewhere"}]}))
        result = rnic("verify", "--list", self.folder / "v")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 vectors; 6 clauses listed, 3 without a vector", result.stdout)
        missing = result.stdout.split("without a vector\n")[1]
        for words in ("Book, 4: about 4\n", "Book, 4.3: about 4.3\n", "Other, 4.2: elsewhere\n"):
            self.assertIn(words, missing)
        self.assertNotIn("pass", result.stdout)  # nothing was run
        for text, words in (("{", "clauses.json"), ('{"Book": [{"clause": "1"}]}', '"about" is missing'), ('{"Book": {}}', "must be a list"),
                            ('{"Book": [{"clause": "1", "about": "a"}, {"clause": "1", "about": "b"}]}', "twice"), ('{"Book": [{"clause": "1", "about": "a", "x": 1}]}', '"x"')):
            (self.folder / "v/clauses.json").write_text(text)
            line = self.refused("verify", "--list", self.folder / "v")
            self.assertIn("clauses.json", line)
            self.assertIn(words, line)

    def test_grades(self):
        folder = self.folder / "v"
        folder.mkdir()
        good = json.loads((VECTORS / "send/gather.json").read_text())
        wait = {"host": "A", "do": "wait", "us": 1}
        variants = {
            "a": ("verbs", "", {}), "b": ("wire", "packets", {"packets": []}), "c": ("wire", "no_packets", {"no_packets": ["A>B SendOnly"]}),
            "d": ("wire", "step 2 (frame)", {"steps": [wait, {"host": "A", "do": "frame", "opcode": "SendOnly", "psn": 0}]}),
            "e": ("nic", "step 2 (counter)", {"steps": [wait, {"host": "A", "do": "counter", "name": "TxNaks", "equals": 0}]}),
            "f": ("nic", "step 1 (flush)", {"steps": [{"host": "A", "do": "flush"}], "packets": []}),
            "g": ("nic", "setup", {"setup": {"type": "QP1"}}), "h": ("wire", "setup", {"setup": {"link_gbps": 1}}),
            "i": ("verbs", "", {"steps": [{"host": "A", "do": "modify", "to": "RTS", "returns": "ND_INVALID_PARAMETER"}]}),
            "j": ("nic", "step 1 (event)", {"steps": [{"host": "A", "do": "event", "type": "QpFatal", "cause": "LocProtErr"}]}),
        }
        for name, (_, _, change) in variants.items():
            (folder / f"{name}.json").write_text(json.dumps({**good, **change}))
        result = rnic("verify", "--grades", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        expected = [f"{grade:<5} {folder / name}.json" + (f": {reason}" if reason else "") for name, (grade, reason, _) in variants.items()]
        self.assertEqual(result.stdout.splitlines(), [*expected, "10 vectors: 2 verbs, 4 wire, 4 nic"])
        self.assertIn("grades: 2 verbs, 4 wire, 4 nic", rnic("verify", "--list", folder).stdout)
        self.assertIn("4 vectors; ", rnic("verify", "--list", "--grade", "wire", folder).stdout)
        self.assertIn("no vector of the grade wire", self.refused("verify", "--grade", "wire", folder / "a.json"))
        self.refused("verify", "--grade", "good", folder)
        self.refused("verify", "--grade", "nic", "--coverage", VECTORS)

    def test_check_says_of_each_file_what_is_wrong(self):
        (self.folder / "good.json").write_text((VECTORS / "send/gather.json").read_text())
        for name, text in (("bad", "{"), ("worse", '{"document": "d", "clause": "c", "rule": "r", "steps": []}')):
            (self.folder / f"{name}.json").write_text(text)
        result = rnic("verify", "--check", self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stdout, r"malformed: \S*/bad.json: .*\nmalformed: \S*/worse.json: \"steps\" is empty\n3 files, 2 malformed\n")
        self.assertEqual(rnic("verify", "--check", VECTORS).returncode, 0)

    def test_coverage_of_statements(self):
        folder = self.folder / "v"
        folder.mkdir()
        good = json.loads((VECTORS / "flush/empty.json").read_text())
        for name, status in (("good", "ND_SUCCESS"), ("bad", "ND_CANCELED"), ("other", "ND_SUCCESS")):
            (folder / f"{name}.json").write_text(json.dumps({**good, "steps": [{"host": "A", "do": "flush", "returns": status}]}))
        row = {"section": "Flush", "statement": "It returns", "vectors": ["good"]}
        by_test = {"section": "Flush", "statement": "It is quick", "tests": ["driver/test_x: it is quick"], "points": [1], "note": "why"}

        def run(*rows):
            (folder / "statements.json").write_text(json.dumps([{"document": "Book", "statements": rows}]))
            result = rnic("verify", "--coverage", "--failures", "", "--junit", self.folder / "junit.xml", folder)
            cases = ElementTree.parse(self.folder / "junit.xml").getroot().iter("testcase")
            return result, {case.get("name"): case.find("failure") is None for case in cases}

        result, cases = run(row, by_test)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("Book\n\n  Flush\n    It returns\n      pass good\n    It is quick\n      held by a test: driver/test_x: it is quick\n", result.stdout)
        self.assertIn("2 statements: 1 held by vectors, 1 by tests alone, 0 not yet, 0 with a vector that failed", result.stdout)
        self.assertNotIn("other", result.stdout)  # no statement names it
        self.assertEqual(cases, {"good": True, "It returns": True, "It is quick": True})
        result, cases = run(row, {**row, "statement": "It fails", "vectors": ["good", "bad"]})
        self.assertEqual(result.returncode, 1)
        self.assertIn("      pass good\n      FAIL bad\n", result.stdout)
        self.assertFalse(cases["It fails"])
        self.assertTrue(cases["It returns"])
        result, cases = run(row, {"section": "Disconnect", "statement": "It waits", "not_yet": "connectors"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("NOTHING YET: connectors", result.stdout)
        self.assertFalse(cases["It waits"])

    def test_coverage_refuses_a_list_that_is_none(self):
        row = {"section": "a", "statement": "b", "vectors": ["x"]}
        for text, words in (("{", "statements.json"), ("{}", "a list of documents"), ('[{"document": "d"}]', '"statements" is missing'),
                            (json.dumps([{"document": "d", "statements": [{"section": "a", "statement": "b"}]}]), "neither"),
                            (json.dumps([{"document": "d", "statements": [row, row]}]), "twice"),
                            (json.dumps([{"document": "d", "statements": [{**row, "vectors": "x"}]}]), "must be a list"),
                            (json.dumps([{"document": "d", "statements": [{**row, "vectors": [1]}]}]), "list of strings"),
                            (json.dumps([{"document": "d", "statements": [{**row, "vector": []}]}]), '"vector"'),
                            (json.dumps([{"document": "d", "statements": [row]}]), "x.json: cannot be read")):
            (self.folder / "statements.json").write_text(text)
            self.assertIn(words, self.refused("verify", "--coverage", self.folder))
        self.refused("verify", "--coverage", "--list", VECTORS)
        self.refused("verify", "--coverage", self.folder / "nowhere")
        self.refused("verify")

    def test_the_vectors_cover_the_clauses(self):
        result = rnic("verify", "--list", VECTORS)
        self.assertEqual(result.returncode, 0, result.stderr)
        vectors, listed = map(int, re.search(r"(\d+) vectors; (\d+) clauses listed", result.stdout).groups())
        self.assertGreaterEqual(vectors, 250)
        self.assertGreaterEqual(listed, 100)
        # Threads are no matter of vectors, and those of connections name the clause of each message.
        missing = re.findall(r"^  (.*?): ", result.stdout.split("without a vector\n")[1], re.M)
        self.assertEqual(missing, [f"Settled points, {number}" for number in (30, 36)])

    def test_cycles_of_a_vector_of_one_packet(self):
        cycles = re.search(r"^cycles +(\d+)$", rnic("verify", VECTORS / "send/success.json").stdout, re.M)
        self.assertLess(int(cycles.group(1)), 12_000)

    def test_jobs_change_nothing(self):
        paths = [VECTORS / "flush", VECTORS / "frames/send_only_ipv4.json", VECTORS / "psn/wrap_in_a_read.json"]
        runs = [rnic("verify", "--jobs", jobs, *paths) for jobs in (1, 3, 64)]
        for result in runs:
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        of_the_machine = re.compile(r"^cycles per second .*\n", re.M)
        self.assertEqual(len({of_the_machine.sub("", result.stdout) for result in runs}), 1)
        (self.folder / "short.json").write_text(json.dumps({"document": "d", "clause": "c", "rule": "r", "frame": "00", "header": {}}))
        self.assertIn("short.json", self.refused("verify", "--jobs", 2, VECTORS / "flush", self.folder / "short.json"))

    def test_what_a_vector_can_expect_of_packets(self):
        vector = json.loads((VECTORS / "recovery/only_packet_lost.json").read_text())

        def run(**change):
            path = self.folder / "vector.json"
            path.write_text(json.dumps({**vector, **change}))
            return rnic("verify", path)

        right = ["A>B SendOnly psn=0 lost", "A>B SendOnly psn=0 bytes=8 ack_req=1"]
        self.assertEqual(run(packets={"A": right}).returncode, 0)
        for wrong in (right[:1], right + right[1:], [right[1], right[0]], [right[0], "A>B SendOnly psn=1"], [right[0], "A>B WriteOnly psn=0"], [right[0], "A>B SendOnly bytes=9"]):
            with self.subTest(wrong=wrong):
                result = run(packets={"A": wrong})
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("packets: ", result.stdout)
        steps = vector["steps"]
        for step, words in (({"host": "A", "do": "counter", "name": "AckTimeouts", "equals": 2}, "AckTimeouts has counted 1, expected 2"), ({"host": "A", "do": "state", "is": "ERR"}, "expected ERR"),
                            ({"host": "B", "do": "memory", "region": "b", "offset": 0, "value": 1}, "expected 0x1")):
            result = run(steps=[*steps, step], packets=[])
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(words, result.stdout)
        for packets, words in ((["A>C SendOnly"], "A>B or B>A"), (["A>B Sendonly"], "Sendonly"), (["A>B psn=1"], "no opcode"), (["A>B SendOnly psn=x"], "no number"), ({"A": ["B>A SendOnly"]}, "not a packet of host A"),
                               ({"C": []}, '"C"')):
            path = self.folder / "vector.json"
            path.write_text(json.dumps({**vector, "packets": packets}))
            self.assertIn(words, self.refused("verify", path))

    def test_what_a_vector_can_expect(self):
        """One expectation, or one step, of each kind is changed: each of the vectors then fails."""
        number = itertools.count()

        def run(name, change):
            vector = json.loads((VECTORS / f"{name}.json").read_text())
            change(vector)
            path = self.folder / f"{next(number)}.json"
            path.write_text(json.dumps(vector))
            return path

        def find(vector, do, nth=0):
            return [step for step in vector["steps"] if step["do"] == do][nth]

        def result(name, key, value):
            return run(name, lambda vector: [one.update({key: value}) for step in vector["steps"] if step.get("queue") == "receive" for one in step.get("results", [])])

        def step(name, do, nth=0, **change):
            return run(name, lambda vector: find(vector, do, nth).update(change))

        def without(name, do, nth=0):
            return run(name, lambda vector: vector["steps"].remove(find(vector, do, nth)))

        def packet(name, old, new):
            return run(name, lambda vector: vector.update(packets=json.loads(json.dumps(vector["packets"]).replace(old, new))))

        header = find(json.loads((VECTORS / "ud/grh_ipv4.json").read_text()), "memory")["bytes"]
        files = {
            "source of a datagram": result("ud/two_senders", "source_qp", 1),
            "queue pair of a completion": result("srq/order", "qp", 1),
            "header in the buffer": step("ud/grh_ipv4", "memory", bytes=header[:-1] + "3"),
            "Q_Key of a packet": packet("ud/one_packet", "qkey=0x11223344", "qkey=0x11223345"),
            "source of a packet": packet("ud/two_senders", "source_qp=2", "source_qp=1"),
            "hop limit of a packet": packet("header/of_the_queue_pair", "hop_limit=7", "hop_limit=8"),
            "R_Key of a packet": packet("memory_region/token_on_the_wire", "rkey=b", "rkey=a"),
            "queue pair of a packet": packet("ud/two_receivers", "qp=2 psn=0", "qp=1 psn=0"),
            "Q_Key that is sent": step("ud/one_packet", "send", qkey=1),
            "datagram's receiver": step("ud/two_receivers", "send", to_qp=1),
            "type of an event": step("event/drained", "event", type="QpFatal"),
            "cause of an event": step("srq/refused_write_with_immediate", "event", cause="RemOpErr"),
            "queue pair of an event": step("srq/last_wqe_reached", "event", qp=2),
            "no event": without("event/drained", "event"),
            "status of a resize": step("cq/resize_too_small", "resize_cq", returns="ND_SUCCESS"),
            "resize": without("cq/resize_in_time", "resize_cq"),
            "moderation": without("cq/moderation_by_count", "moderate_cq"),
            "change of a shared queue": without("srq/grows", "modify_srq", 1),
            "doorbell of a shared queue": without("srq/lost_receive", "doorbell"),
            "pieces of a WQE": without("push/words", "push_wqe"),
            "function that is off": without("enable/half_a_wqe", "enable"),
            "setting of the function": without("function/no_bus_master", "configure"),
            "answer of a TLP": step("bar/register_bytes", "tlp", 1, answer="0011223344556678"),
            "credits of the link": without("function/writes_pass_reads", "credits"),
            "poison of a TLP": run("bar/poisoned", lambda vector: find(vector, "tlp", 1).pop("poisoned")),
            "syndrome": run("wqe/bind_to_a_window", lambda vector: vector["steps"][3]["results"][0].update(syndrome=2)),
            "spoiled Receive": without("srq/malformed_receive", "spoil_wqe"),
            "Receive that is there to spoil": without("receive/no_segments_left", "receive"),
            "transition": step("state/transitions", "modify", returns="ND_SUCCESS"),
            "attribute": step("state/sqd_attributes", "modify", 2, set={"hop_limit": 9}),
            "ring": without("order/deferred_receives", "ring"),
            "defer": step("order/deferred", "write", flags=[]),
            "link": without("event/port", "link"),
            "call": step("memory_region/calls_pend", "register", call="ND_SUCCESS"),
            "fast registration": step("fast/rights", "fast_register", flags=["LOCAL_WRITE"]),
            "its end": without("fast/invalidate", "end_registration"),
            "closing": without("state/closed_at_work", "close"),
            "version": step("adapter/versions", "query_adapter", 2, returns="ND_SUCCESS"),
            "either of two packets": packet("recovery/middle_read_response_lost", "psn=2 length=", "psn=3 length="),
            "packets that must not appear": run("memory_region/not_invalidated_by_a_send", lambda vector: vector.update(no_packets=["B>A Acknowledge qp=1"])),
            "reset": without("state/reset_and_again", "reset"),
            "making again": without("state/made_again", "make"),
            "MTU of one side": run("length/other_mtu_smaller", lambda vector: vector["setup"].pop("A")),
            "limits of one side": run("acknowledge/limits_of_the_two_sides", lambda vector: vector["setup"].pop("B")),
            "link rate": run("write/slow_link", lambda vector: vector["setup"].update(link_gbps=100)),
            "window's key in an SGE": run("window/no_local_key", lambda vector: find(vector, "write")["sge"][0].pop("token")),
            "SEND that ends a fast registration": run("fast/send_with_invalidate", lambda vector: find(vector, "send").pop("invalidate")),
            "hand-made frames spared": step("response/peer_is_mute", "fault", hand_made=True),
            "one memory of two regions": run("memory_region/same_buffer_twice", lambda vector: vector["setup"]["regions"][2].pop("memory_of")),
            "payload of a frame": step("header/ipv4_options", "memory", 1, payload_of={"psn": 1}),
            "payload or a fill": step("header/broadcast_mac", "memory", either=[{"payload_of": {"psn": 1}}, {"fill": "pattern"}]),
            "one of several statuses": run("sequence/sendlast_in_a_write", lambda vector: find(vector, "complete")["results"][0].update(status={"either": ["Success", "LocLenErr"], "clause": "c"})),
            "at most": run("recovery/first_read_response_lost", lambda vector: (find(vector, "counter").pop("at_least"), find(vector, "counter").update(at_most=0))),
            "UDP checksum of a packet": packet("header/of_the_queue_pair", "udp_checksum=0", "udp_checksum=1"),
            "BTH version of a packet": packet("header/of_the_queue_pair", "tver=0", "tver=1"),
            "bytes put in": run("header/ipv4_options", lambda vector: (find(vector, "frame").pop("insert"), find(vector, "frame").pop("set"))),
            "access that the IOMMU refuses": run("errors/memory_gone_under_a_read", lambda vector: vector["setup"].pop("iommu_faults")),
            "revoked memory": without("errors/memory_gone_under_a_read", "revoke"),
            "domain": run("memory_region/other_domain", lambda vector: [region.pop("domain", None) for region in vector["setup"]["regions"]]),
        }
        verdict = rnic("verify", "--jobs", 2, *files.values())
        self.assertEqual(verdict.returncode, 1, verdict.stdout + verdict.stderr)
        for what, path in files.items():
            with self.subTest(what=what):
                self.assertIn(f"FAIL {path}: ", verdict.stdout)
        self.assertIn("no Receive has been posted", verdict.stdout)

    def test_what_failed_runs_leave(self):
        vector = json.loads((VECTORS / "write/success.json").read_text())
        for step in vector["steps"]:
            for result in step.get("results", []):
                result["status"] = "ND_CANCELED"
        (self.folder / "v").mkdir()
        for name in ("one", "two", "three", "four"):
            (self.folder / f"v/{name}.json").write_text(json.dumps(vector))
        result = rnic("verify", "--seed", 3, "--jobs", 2, "--failures", "left", "--pcie-read-ns", 600, "v", VECTORS / "flush/empty.json")
        self.assertEqual(result.returncode, 1, result.stderr)
        places = re.findall(r"failed at (\d+) ns; wire.pcap, waves.fst of (\d+) ns to (\d+) ns, log and command are in (\S+)", result.stdout)
        self.assertEqual([place for *_, place in places], [f"left/v-{name}-3" for name in ("four", "one", "three")])
        for failed, first, last, place in places:
            place = self.folder / place
            self.assertLess(int(first), int(failed))
            self.assertLess(int(failed), int(last))
            self.assertIn("ND_CANCELED", (place / "log").read_text())
            self.assertIn("1 failed", (place / "log").read_text())
            start, end = struct.unpack_from(">QQ", (place / "waves.fst").read_bytes(), 9)
            self.assertLessEqual(abs(end // 1000 - start // 1000 - (int(failed) - int(first))), 2000)
            self.assertGreater(len(self.arrivals(place / "wire.pcap")), 0)
            self.assertTrue((place / "waves.gtkw").exists())
            self.assertIn("--pcie-read-ns 600", (place / "command").read_text())
        self.assertNotIn("left", rnic("verify", "--failures", "", "v/one.json").stdout)
        # A soak whose requests take too long, every one.
        result = rnic("soak", "--cycles", 20_000, "--qps", 4, "--hang-us", 1, "--seed", 5)
        self.assertEqual(result.returncode, 1)
        self.assertIn("command are in rnic-failures/soak-5", result.stdout)
        self.assertIn("no completion for 1 us", (self.folder / "rnic-failures/soak-5/log").read_text())
        self.assertGreater((self.folder / "rnic-failures/soak-5/waves.fst").stat().st_size, 10_000)

    def test_a_fuzz_run_that_fails(self):
        (self.folder / "corpus").mkdir()
        shutil.copy(sorted(CORPUS.iterdir())[0], self.folder / "corpus")
        result = rnic("fuzz", "--frames", 4_000, "--episode", 800, "--seed", 1, "--corpus", "corpus", "--planted", "shared-domain")
        self.assertEqual(result.returncode, 1, result.stderr)
        violations = re.findall(r"violation with seed (\d+): (.*)", result.stderr)
        self.assertEqual(re.findall(r"command are in rnic-failures/fuzz-(\d+)", result.stdout), [seed for seed, _ in violations[:3]])
        self.assertGreater(len(violations), 1)
        for seed, note in violations[:3]:  # the same one, alone
            self.assertIn(f"violation with seed {seed}: {note}", (self.folder / f"rnic-failures/fuzz-{seed}/log").read_text())
        self.assertEqual(len(list((self.folder / "corpus").iterdir())), 1 + len(violations))

    def test_a_vector_that_fails(self):
        vector = json.loads((VECTORS / "write/success.json").read_text())
        for step in vector["steps"]:
            for result in step.get("results", []):
                result["status"] = "ND_CANCELED"
        path = self.folder / "vector.json"
        path.write_text(json.dumps({**vector, "clause": "9.7.5.1.2 a clause"}))
        (self.folder / "broken.json").write_text("{")
        result = rnic("verify", "--quiet", path, VECTORS / "flush/empty.json", self.folder / "broken.json", "--junit", self.folder / "junit.xml", "--json", self.folder / "out.json")
        self.assertEqual(result.returncode, 2, result.stderr)  # one file is malformed
        self.assertRegex(result.stderr, r"^rnic: \S*/broken.json: .*\n$")
        self.assertRegex(result.stdout, r"^FAIL \S*/vector.json: .*ND_CANCELED.*\n\n1 passed, 1 failed, 1 malformed\n")  # and no line of the one that passed
        self.assertNotIn("pass ", result.stdout)
        suite = ElementTree.parse(self.folder / "junit.xml").getroot()
        self.assertEqual([suite.get(key) for key in ("tests", "failures", "errors", "skipped")], ["3", "1", "1", "0"])
        cases = {case.get("name"): case for case in suite.iter("testcase")}
        self.assertEqual(set(cases), {"vector", "flush/empty", "broken"})  # wherever the checkout is
        self.assertNotIn(".", "".join(case.get("classname") for case in cases.values()))
        for name in ("vector", "flush/empty"):  # a processor's time, not that of the simulation, which is some microseconds
            self.assertGreater(float(cases[name].get("time")), 0.0005)
            told = {one.get("name"): one.get("value") for one in cases[name].iter("property")}
            self.assertGreater(int(told["simulated_ns"]), 0)
        self.assertEqual([one.get("value") for one in cases["vector"].iter("property") if one.get("name") == "clause"], ["9.7.5.1.2 a clause"])
        failure = cases["vector"].find("failure").text
        self.assertIn("ND_CANCELED", failure)
        evidence = pathlib.Path(re.search(r"are in (\S+)$", failure)[1])
        self.assertTrue((evidence / "waves.fst").exists())
        self.assertIn("broken.json", cases["broken"].find("error").get("message"))
        told = results(self.folder / "out.json")
        self.assertEqual([told[key] for key in ("passed", "failed", "malformed")], [1, 1, 1])
        self.assertEqual({one["name"]: one["result"] for one in told["vectors"]}, {"vector": "failed", "flush/empty": "passed", "broken": "malformed"})

    # ---- The command line

    def test_numbers_with_units(self):
        file = self.file(70_000)
        self.assertEqual(self.copy_json(file, "--message", "64k", "--mtu", "1k")["message"], 65_536)
        self.assertEqual(self.copy_json(file, "--message", "1MiB")["message"], 1 << 20)
        self.assertIn("--message", self.refused("copy", file, "--message", "64q"))
        self.assertIn("--at", self.refused("bench", "--sweep", "rtt", "--at", "1k"))

    def test_what_was_meant(self):
        file = self.file(10)
        self.assertIn("'copy'", self.refused("copi", file))
        self.assertIn("'--message'", self.refused("copy", file, "--mesage", 10))
        self.assertNotIn("mean", self.refused("copy", file, "--nonsense"))
        self.assertIn("rnic copy FILE", self.refused("copy"))
        self.assertIn("rnic verify tests/vectors", self.refused("verify"))
        self.assertIn("--timeline", self.refused("copy", file, "--timeline-window", "0:5"))
        self.assertEqual(rnic("verify", "--check", VECTORS / "flush/empty.json").stdout, "1 file, 0 malformed\n")
        for command in ("copy", "compare"):
            self.assertNotIn("{false}", rnic(command, "--help").stdout)

    def test_files_that_copy_wrote_are_named(self):
        out = self.copy(self.file(10), "--pcap", "w.pcap", "--trace", "w.fst", "--json", "w.json", "--report", "w.html", "--timeline", "t.json").stdout
        self.assertEqual(set(re.findall(r"written: (\S+)", out)), {"w.pcap", "w.fst", "w.host1.fst", "w.json", "w.html", "t.json"})

    def interrupted(self, *arguments, report=True):
        """The command gets a SIGINT when it is at work; the results of its JSON."""
        path = self.folder / "interrupted.json"
        # On a terminal it shows how far it is, which says that it is at work.
        parent, child = os.openpty()
        process = subprocess.Popen([rnic_tool.program, *map(str, arguments), "--json", path, *(["--report", self.folder / "interrupted.html"] if report else [])], stdout=subprocess.PIPE, stderr=child, text=True)
        os.close(child)
        shown = ""
        while not re.search(r"%  [\d:]+ left", shown):
            shown += os.read(parent, 4096).decode()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        os.close(parent)
        self.assertEqual(process.returncode, 130, out)
        self.assertIn("interrupted", out)
        if report:
            self.assertIn("interrupted by the user", (self.folder / "interrupted.html").read_text())
        told = checked(path.read_text())
        self.assertEqual(told["outcome"], "interrupted")
        return told["results"]

    def test_interrupts_end_with_a_report(self):
        size = 30_000_000
        copied = self.interrupted("copy", self.file(size))
        self.assertGreater(copied["write"]["bytes"], 0)
        self.assertLess(copied["read"]["bytes"], size)
        self.assertGreater(copied["write"]["goodput_gbps"], 1)
        self.assertGreater(copied["counters"]["a"]["TxFrames"], copied["write"]["bytes"] / 4096 - 1)
        soaked = self.interrupted("soak", "--cycles", "1G", "--qps", 4, "--mixes", 0, "--shares", 0)
        self.assertGreater(soaked["completed"], 0)
        self.assertEqual((soaked["wrong"], soaked["hung"]), (0, 0))
        measured = self.interrupted("bench", "--figure", "warm_write_ns", "--figure", "doorbell_to_wire_cycles", "--figure", "write_goodput_fraction_loss_1e3", "--figure", "small_write_mmps")
        self.assertGreaterEqual(len(measured), 1)
        self.assertLess(len(measured), 4)
        verified = self.interrupted("verify", "--quiet", "--jobs", 2, VECTORS / "read", VECTORS / "write", VECTORS / "recovery", report=False)
        self.assertGreater(verified["passed"], 0)
        self.assertEqual((verified["failed"], verified["malformed"]), (0, 0))
        self.assertEqual(len(verified["vectors"]), verified["passed"])
        fuzzed = self.interrupted("fuzz", "--frames", "1G", report=False)
        self.assertGreater(fuzzed["frames"], 0)
        self.assertEqual(fuzzed["violations"], 0)
        compared = self.interrupted("compare", "--operations", "1G", report=False)
        self.assertGreater(compared["operations"], 0)
        self.assertEqual(compared["differences"], 0)

    def test_colours(self):
        def on_a_terminal(**environment):
            parent, child = os.openpty()
            told = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
            subprocess.run([rnic_tool.program, "verify", VECTORS / "flush/empty.json"], stdout=child, stderr=child, env={**told, "TERM": "xterm", **environment}, check=True)
            os.close(child)
            shown = os.read(parent, 65536).decode()
            os.close(parent)
            return shown

        self.assertRegex(on_a_terminal(), "\x1b\\[[0-9;]*m.*pass")
        self.assertNotIn("\x1b", on_a_terminal(NO_COLOR="1"))
        self.assertNotIn("\x1b", on_a_terminal(TERM="dumb"))
        self.assertNotIn("\x1b", rnic("verify", VECTORS / "flush/empty.json").stdout)

    def bash(self, line, folder=None):
        """What bash offers for a command line with the cursor at its end."""
        words = line.split(" ")
        script = """source <("$0" completion bash)
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_WORDS[0]=$0
            _rnic_complete; printf '%s\\n' "${COMPREPLY[@]}"
        """
        told = subprocess.run(["bash", "-c", script, rnic_tool.program, *words], capture_output=True, text=True, check=True)
        return told.stdout.split()

    def test_completion(self):
        self.assertEqual(self.bash("rnic co"), ["copy", "compare", "coverage", "completion"])
        self.assertEqual(self.bash("rnic copy --pcie-l"), ["--pcie-lanes"])
        self.assertEqual(self.bash("rnic copy --mtu "), ["256", "512", "1024", "2048", "4096"])
        self.assertEqual(self.bash("rnic copy --mtu = 2"), ["256", "2048"])  # as bash cuts --mtu=2
        self.assertEqual(self.bash("rnic bench --sweep p"), ["pcie-read"])
        self.assertEqual(self.bash("rnic compare --pl"), [])  # hidden
        self.assertEqual(self.bash("rnic completion f"), ["fish"])
        self.assertEqual(self.bash("rnic man so"), ["soak"])
        (self.folder / "notes.txt").touch()
        self.assertEqual(self.bash("rnic copy no"), ["notes.txt"])
        self.assertEqual(self.bash("rnic copy notes.txt --json no"), ["notes.txt"])
        (self.folder / "left").mkdir()
        self.assertEqual(self.bash("rnic soak --failures le"), ["left"])
        self.assertEqual(self.bash("rnic exec --pcie-la"), ["--pcie-lanes"])  # of the machine that it starts
        self.assertIn("bash", self.bash("rnic exec -- bas"))
        for shell, check in (("bash", ("bash", "-n")), ("zsh", ("zsh", "-n")), ("fish", ("fish", "--no-execute"))):
            script = self.folder / f"completion.{shell}"
            script.write_text(rnic("completion", shell).stdout)
            self.assertIn("complete --", script.read_text())
            if shutil.which(check[0]):
                told = subprocess.run([*check, script], capture_output=True, text=True)
                self.assertEqual((told.returncode, told.stderr), (0, ""), shell)

    def test_manual_pages(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not here")
        for command in ("", "copy", "exec", "verify"):
            page = rnic("man", *([command] if command else [])).stdout
            told = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-cbou"], input=page, capture_output=True, text=True, check=True)
            self.assertEqual(told.stderr, "", command)
            for words in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"):
                self.assertRegex(told.stdout, f"(?m)^{words}$")
            if command == "copy":
                self.assertIn("rnic copy [OPTIONS] FILE", told.stdout)
                self.assertRegex(told.stdout, r"(?m)^ +--mtu 256\|512\|1024\|2048\|4096$")
        self.assertIn("copy", self.refused("man", "copi"))

    # ---- A machine

    def test_json_of_a_machine(self):
        run = self.folder / "run"
        process = subprocess.Popen([rnic_tool.program, "serve", "--dir", run, "--json", self.folder / "served.json", "--log", self.folder / "run.log"], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        for command in ("ps", "stat"):
            told = rnic(command, "--json", "--dir", run)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertEqual(checked(told.stdout)["command"], command)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(checked((self.folder / "served.json").read_text())["command"], "serve")
        self.assertEqual(rnic("replay", self.folder / "run.log", "--json", self.folder / "again.json").returncode, 0)
        self.assertEqual(results(self.folder / "again.json"), results(self.folder / "served.json"))


if __name__ == "__main__":
    main(__doc__)
