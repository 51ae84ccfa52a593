#!/usr/bin/env python3
"""`rnic --timeline`: every request with all its stages, in agreement with the capture packet by packet and with the waves.

usage: test_timeline.py RNIC [TEST...]
Needs fst2vcd (GTKWave). RNIC_SEED=number picks other requests for the waves.
"""
import collections
import functools
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import unittest

import rnic_tool

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import fst  # noqa: E402

rnic = functools.partial(rnic_tool.rnic, timeout=600)
# Stages of a work request that sends, in the order in which they happen.
FETCH = ["fetch asked", "fetch issued", "fetch answered"]
ENDING = ["retired", "CQE made", "CQE written", "polled"]
WRITE = ["posted", "doorbell", "turn", "judged", "sent", "checked", "placed", "ACK made", "ACK back", *ENDING]
READ = ["posted", "doorbell", "turn", "judged", "sent", "checked", "ACK made", "ACK back", "placed", *ENDING]
RECEIVE = ["posted", "doorbell", "placed", "CQE made", "CQE written", "polled"]
PACKET = ["made", "taken", "gathered", "wire", "sent", "checked", "placed"]
ACKNOWLEDGE = 0x11
PS_PER_NS = 1000


class Timeline:
    """The events of a file, by what they are."""

    def __init__(self, path):
        self.events = json.loads(path.read_text())
        self.slices = [event for event in self.events if event["ph"] == "X"]
        self.requests = [event["args"] for event in self.slices if "request" in event["args"]]
        self.frames = [event["args"] for event in self.slices if "frame" in event["args"]]
        self.packets = [event["args"] for event in self.slices if "packet" in event["args"] and "frame" not in event["args"]]
        self.stalls = [event["args"] for event in self.slices if "stall" in event["args"]]

    def of(self, kind):
        return [request for request in self.requests if request["request"] == kind]


def frames_of(capture):
    """(time in ns, opcode, destination QPN, PSN, bytes) of each RoCEv2 frame over IPv4 in a capture file with nanoseconds."""
    data = capture.read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B23C4D, "no capture file with nanoseconds"
    at, frames = 24, []
    while at < len(data):
        seconds, nanoseconds, length, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16:at + 16 + length]
        at += 16 + length
        bth = 14 + 20 + 8
        opcode, dest_qpn, psn = frame[bth], int.from_bytes(frame[bth + 5:bth + 8], "big"), int.from_bytes(frame[bth + 9:bth + 12], "big")
        frames.append((seconds * 10**9 + nanoseconds, opcode, dest_qpn, psn, length))
    return frames


class Waves:
    """Values that chosen signals of a trace have at chosen clock edges: those that the edge sees."""

    def __init__(self, trace, signals, times_ns):
        process, declared = fst.open_trace(trace)
        codes = {name: code for full, code, _ in declared for name in signals if full.endswith("." + name)}
        missing = set(signals) - set(codes)
        assert not missing, f"{trace} has no {missing}"
        wanted, values, left = set(codes.values()), {}, sorted(set(times_ns), reverse=True)
        self.at = {}
        for line in process.stdout:
            if line[0] == "#":
                # What changes at an edge is written with its time.
                while left and left[-1] * PS_PER_NS <= int(line[1:]):
                    self.at[left.pop()] = {name: values.get(code) for name, code in codes.items()}
                if not left:
                    break
            elif line[0] in "01xz" and line[1:].strip() in wanted:
                values[line[1:].strip()] = line[0]
            elif line[0] == "b":
                value, code = line[1:].split()
                if code in wanted:
                    values[code] = value
        process.kill()
        process.stdout.close()
        process.wait()

    def value(self, time_ns, signal, low=0, bits=None):
        number = int(self.at[time_ns][signal], 2) >> low
        return number if bits is None else number & ((1 << bits) - 1)


class TimelineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def copy(self, size, *arguments):
        """Runs a copy with everything that it can write; returns its timeline."""
        data = self.folder / "data"
        data.write_bytes(random.Random(size).randbytes(size))
        path = self.folder / "t.json"
        result = rnic("copy", data, "--timeline", path, "--pcap", self.folder / "wire.pcap", "--json", self.folder / "out.json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.figures = rnic_tool.results(self.folder / "out.json")
        return Timeline(path)

    def assert_rising(self, stages, order, what):
        self.assertEqual([name for name in order if name not in stages], [], what)
        times = [stages[name] for name in order]
        self.assertEqual(times, sorted(times), what)

    def test_every_request_has_all_stages(self):
        timeline = self.copy(200_000, "--message", 20_000, "--qps", 3)
        for kind, part in (("Write", "write"), ("Read", "read")):
            self.assertEqual(len(timeline.of(kind)), self.figures[part]["messages"])
            self.assertEqual(sum(request["bytes"] for request in timeline.of(kind)), 200_000)
        self.assertEqual(len(timeline.of("Send")), len(timeline.of("Receive")))
        self.assertEqual(len(timeline.of("request")), 0)
        for request in timeline.requests:
            stages, kind = request["stages"], request["request"]
            order = {"Read": READ, "Receive": RECEIVE}.get(kind, WRITE)
            self.assert_rising(stages, order, request)
            self.assertEqual(request["status"], 0)
            if any(name in stages for name in FETCH):
                self.assert_rising(stages, ["doorbell", *FETCH, "judged"], request)
            if kind == "Write":
                self.assertEqual(request["packets"], -(-request["bytes"] // 4096))
        fetched = sum("fetch asked" in request["stages"] for request in timeline.requests)
        self.assertGreater(fetched, 0)
        self.assertLess(fetched, len(timeline.requests))  # the first of a burst comes through the window

    def test_every_packet_has_all_stages_and_its_request(self):
        timeline = self.copy(100_000, "--message", 20_000)
        writes = {(request["host"], request["qp"], request["wqe"]): request for request in timeline.requests if request["request"] != "Receive"}
        counts = collections.Counter()
        for packet in timeline.packets:
            self.assert_rising(packet["stages"], PACKET, packet)
            if packet["bytes"]:
                self.assert_rising(packet["stages"], ["taken", "translated", "gathered"], packet)
            if not packet["responder"]:
                request = writes[packet["host"], packet["qp"], packet["wqe"]]
                counts[packet["host"], packet["qp"], packet["wqe"]] += 1
                self.assertLessEqual(request["stages"]["judged"], packet["stages"]["made"])
                self.assertLessEqual(packet["stages"]["placed"], request["stages"]["ACK back"])
        self.assertEqual({key: request["packets"] for key, request in writes.items()}, dict(counts))

    def test_agrees_with_the_capture_packet_by_packet(self):
        for faults in (None, {"wire": {"both": {"drop": 0.05, "duplicate": 0.02, "reorder": 0.02}}}):
            with self.subTest(faults=faults):
                arguments = []
                if faults:
                    (self.folder / "faults.json").write_text(json.dumps(faults))
                    arguments = ["--faults", self.folder / "faults.json"]
                timeline = self.copy(100_000, "--mtu", 1024, "--message", 9_000, *arguments)
                captured = frames_of(self.folder / "wire.pcap")
                shown = [(f["end_ns"], f["opcode"], f["dest_qpn"], f["psn"], f["frame"]) for f in timeline.frames]
                self.assertEqual(sorted(captured), sorted(shown))
                packets = {packet["packet"]: packet for packet in timeline.packets}
                for frame in timeline.frames:
                    packet = packets[frame["packet"]]
                    self.assertEqual((frame["opcode"], frame["psn"], frame["dest_qpn"]), (packet["opcode"], packet["psn"], packet["dest_qpn"]))
                    self.assertEqual(frame["end_ns"], packet["stages"]["sent"])

    def test_agrees_with_the_waves_at_three_requests(self):
        timeline = self.copy(30_000, "--message", 3_000, "--mtu", 1024, "--trace", self.folder / "w.fst")
        seed = int(os.environ.get("RNIC_SEED", random.randrange(2**32)))
        picked = random.Random(seed).sample(timeline.of("Write") + timeline.of("Read"), 3)
        traces = [self.folder / "w.fst", self.folder / "w.host1.fst"]
        # Of the requester: which signal says so, and whose it is.
        turns, check = "u_send_queue.u_turns", "u_rx_engine.u_check"
        retire, writer = "u_qp.u_retire.u_retire", "u_cq.u_writer"
        own = {
            "doorbell": ["rnic_top.host_req_valid_i"],
            "turn": [turns + ".run_valid", turns + ".run_ready"],
            "judged": [turns + ".desc_valid"],
            "ACK back": [check + ".decide"],
            "retired": [retire + ".step"],
            "CQE made": [writer + ".event_cqe_o"],
            "CQE written": ["rnic_top.dma_req_valid_o", "rnic_top.dma_req_ready_i", "rnic_top.dma_req_last_o"],
        }
        numbers = [turns + ".run_qp", turns + ".done_qp", check + ".desc_q", retire + ".next_idx", retire + ".acq_index_o",
                   "u_rx_engine.left"]
        signals = sorted({name for names in own.values() for name in names} | set(numbers))
        stages = [*own, "checked", "placed"]
        waves = [Waves(trace, signals, [request["stages"][stage] for request in picked for stage in stages]) for trace in traces]

        for request in picked:
            with self.subTest(seed=seed, request=request["request"], wqe=request["wqe"]):
                at, mine, peer = request["stages"], waves[request["host"]], waves[1 - request["host"]]
                for stage, names in own.items():
                    for name in names:
                        self.assertEqual(mine.value(at[stage], name), 1, f"{stage}: {name}")
                self.assertEqual(mine.value(at["turn"], turns + ".run_qp"), request["qp"])
                self.assertEqual(mine.value(at["judged"], turns + ".done_qp"), request["qp"])
                self.assertEqual(mine.value(at["retired"], retire + ".acq_index_o"), request["qp"])
                self.assertEqual(mine.value(at["retired"], retire + ".next_idx"), request["wqe"] + 1)
                # rx_desc_t: opcode in bits 7:0, PSN in 73:50.
                asks = request["request"] == "Read"
                self.assertEqual(peer.value(at["checked"], check + ".decide"), 1)
                self.assertEqual(peer.value(at["checked"], check + ".desc_q", 50, 24), request["first_psn" if asks else "last_psn"])
                self.assertEqual(mine.value(at["ACK back"], check + ".desc_q", 50, 24), request["last_psn"])
                self.assertEqual(mine.value(at["ACK back"], check + ".desc_q", 0, 8) == ACKNOWLEDGE, not asks)
                self.assertEqual((mine if asks else peer).value(at["placed"], "u_rx_engine.left"), 1)

    def test_lost_and_repeated_packets_are_marked(self):
        (self.folder / "faults.json").write_text(json.dumps({"wire": {"a_to_b": {"rules": [{"fault": "drop", "opcode": "RC_RDMA_WRITE_MIDDLE", "nth": 2}]}}}))
        timeline = self.copy(60_000, "--message", 30_000, "--mtu", 1024, "--faults", self.folder / "faults.json")
        lost = [packet for packet in timeline.packets if packet["lost"]]
        self.assertEqual(len(lost), 1)
        again = [packet for packet in timeline.packets if packet["repeated"] and packet["psn"] == lost[0]["psn"]]
        self.assertEqual(len(again), 1)
        self.assertEqual(again[0]["wqe"], lost[0]["wqe"])
        self.assertGreater(again[0]["stages"]["made"], lost[0]["stages"]["sent"])
        self.assertIn("placed", again[0]["stages"])
        self.assertIn("NAK", {stall["stall"] for stall in timeline.stalls})
        refused = [event["args"] for event in timeline.slices if event["args"].get("verdict") == "PSN error"]
        self.assertGreater(len(refused), 0)

    def test_soak_with_loss_has_every_request_in_rising_stages(self):
        path = self.folder / "t.json"
        # World 1 cuts what goes to the windows in pieces, in any order.
        for arguments in ([], ["--world", 1]):
            with self.subTest(arguments=arguments):
                result = rnic("soak", "--cycles", 60_000, "--qps", 8, "--shares", 0, *arguments, "--timeline", path)
                self.assertEqual(result.returncode, 0, result.stderr)
                timeline = Timeline(path)
                self.assertGreater(len(timeline.requests), 500)
                self.assertEqual(len(timeline.of("request")), 0)
                self.assertIn("fence", {stall["stall"] for stall in timeline.stalls})
                for request in timeline.requests:
                    if request["request"] != "Receive" and request["status"] == 0:
                        self.assert_rising(request["stages"], self.order_of(request), request)

    @staticmethod
    def order_of(request):
        """Without an ACK it is of UC or UD, or sends nothing."""
        order = ["posted", "doorbell", "turn", "judged", *ENDING]
        if "ACK back" in request["stages"]:
            order = READ if request["request"] in ("Read", "Compare and swap", "Fetch and add") else WRITE
        return order[:-3] if request["silent"] else order

    def test_bench_and_verify_write_one_too(self):
        vector = ROOT / "tests/vectors/credits/write_needs_none.json"
        path = self.folder / "t.json"
        for arguments in (["bench", "--figure", "warm_write_ns"], ["verify", vector]):
            with self.subTest(arguments=arguments):
                path.unlink(missing_ok=True)
                result = rnic(*arguments, "--timeline", path)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertGreater(len(Timeline(path).requests), 0)
        self.assertEqual(rnic("bench", "--timeline", path).returncode, 2)
        self.assertEqual(rnic("verify", ROOT / "tests/vectors", "--timeline", path).returncode, 2)

    def test_arrows_join_the_slices(self):
        timeline = self.copy(20_000, "--message", 5_000)
        spans = collections.defaultdict(list)
        for event in timeline.slices:
            spans[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        arrows = collections.defaultdict(list)
        for event in timeline.events:
            if event["ph"] not in "stf":
                continue
            arrows[event["id"]].append(event)
            self.assertTrue(any(start - 1e-6 <= event["ts"] <= end + 1e-6 for start, end in spans[event["pid"], event["tid"]]), event)
        self.assertGreater(len(arrows), len(timeline.requests))
        for steps in arrows.values():
            self.assertEqual((steps[0]["ph"], steps[-1]["ph"]), ("s", "f"))
            self.assertEqual([step["ts"] for step in steps], sorted(step["ts"] for step in steps))

    def test_slices_of_a_track_are_nested(self):
        timeline = self.copy(260_000, "--message", 16_384, "--qps", 2)
        tracks = collections.defaultdict(list)
        for event in timeline.slices:
            start = round(event["ts"] * PS_PER_NS)
            tracks[event["pid"], event["tid"]].append((start, -(start + round(event["dur"] * PS_PER_NS))))
        for track, spans in tracks.items():
            open_until = []
            for start, end in sorted(spans):
                while open_until and open_until[-1] <= start:
                    open_until.pop()
                if open_until:
                    self.assertLessEqual(-end, open_until[-1], track)
                open_until.append(-end)

    def test_window_keeps_what_touches_it(self):
        whole = self.copy(60_000, "--message", 10_000)
        middle = whole.of("Write")[2]["stages"]["sent"]
        part = self.copy(60_000, "--message", 10_000, "--timeline-window", f"{middle}:{middle + 10}")
        self.assertLess(len(part.slices), len(whole.slices) / 2)
        self.assertIn(whole.of("Write")[2], part.of("Write"))
        for event in part.slices:
            self.assertLessEqual(event["ts"] * 1000, middle + 11)
            self.assertGreaterEqual((event["ts"] + event["dur"]) * 1000, middle - 1)

    def test_the_run_is_the_same_without(self):
        self.copy(50_000)
        with_it = self.figures
        self.assertEqual(rnic("copy", self.folder / "data", "--json", self.folder / "out.json").returncode, 0)
        without = rnic_tool.results(self.folder / "out.json")
        self.assertEqual(with_it, without)

    def test_wrong_use_is_refused(self):
        (self.folder / "data").write_bytes(b"x")
        for arguments in (["--timeline", "/nonexistent/t.json"], ["--timeline-window", "5"], ["--timeline-window", "9:5"], ["--timeline-window", "a:b"], ["--timeline-window", "0:5"]):
            result = rnic("copy", self.folder / "data", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("--timeline", result.stderr)


if __name__ == "__main__":
    rnic_tool.main(__doc__)
