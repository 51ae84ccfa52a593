#!/usr/bin/env python3
"""`rnic --report`: the page in Chromium, and its numbers against those of the other files of the same run.

usage: test_report.py RNIC SCREENSHOTS [TEST...]
Keeps screenshots in the folder SCREENSHOTS. Exit code 77: there is no Chromium, and nothing was tested.
"""
import collections
import functools
import json
import os
import pathlib
import random
import re
import struct
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
import browser  # noqa: E402
import rnic_tool  # noqa: E402

rnic = functools.partial(rnic_tool.rnic, timeout=600)
SKIPPED = 77
RIGHT, LEFT, END, HOME, ESCAPE, SPACE, ENTER, TAB = "\ue014", "\ue012", "\ue010", "\ue011", "\ue00c", " ", "\ue007", "\ue004"
LOSS = {"wire": {"both": {"drop": 0.02, "duplicate": 0.01, "reorder": 0.01, "corrupt": 0.01}}}
WRITING = os.environ.get("RNIC_WRITING")  # tests/server/writing.cpp
VECTOR = ROOT / "tests/vectors/credits/write_needs_none.json"
REFUSED = ROOT / "tests/vectors/send/longer_than_receive_in_a_later_packet.json"
DATA = re.compile(r'<script type="application/json" id="report">(.*?)</script>', re.DOTALL)


def data_of(path):
    """What a page was drawn from."""
    return json.loads(DATA.search(path.read_text())[1])


def frames_in(capture):
    """The frames of a capture file, in their order: (nanoseconds, bytes)."""
    data, frames, at = capture.read_bytes(), [], 24
    while at < len(data):
        seconds, nanoseconds, length = struct.unpack_from("<III", data, at)
        frames.append((seconds * 10**9 + nanoseconds, data[at + 16:at + 16 + length]))
        at += 16 + length
    return frames


class Runs:
    """Each kind of run once, with all files that it can write."""

    def __init__(self, folder):
        self.folder, self.done = folder, {}
        (folder / "data").write_bytes(random.Random(1).randbytes(300_000))
        (folder / "lossy_wire.json").write_text(json.dumps(LOSS))
        (folder / "cut_wire.json").write_text(json.dumps({"wire": {"a_to_b": {"rules": [{"fault": "drop", "opcode": "RC_RDMA_WRITE_LAST", "nth": 1, "count": 1000}]}}}))
        copy = ["copy", folder / "data", "--message", 16384]
        full = ["--json", "--timeline", "--pcap"]
        self.arguments = {
            "copy": ([*copy, "--qps", 4], full),
            "loss": ([*copy, "--qps", 2, "--mtu", 1024, "--faults", folder / "lossy_wire.json"], full),
            "failed": ([*copy, "--faults", folder / "cut_wire.json"], []),
            "soak": (["soak", "--cycles", 40_000, "--qps", 12], full),
            "figure": (["bench", "--figure", "write_latency_p50_ns"], full),
            "sweep": (["bench", "--sweep", "message", "--at", "8,4096,65536", "--qps", 4], ["--json"]),
            "verify": (["verify", VECTOR], ["--timeline", "--pcap"]),
            "refused": (["verify", REFUSED], ["--timeline"]),
        }
        self.programs = {}
        if WRITING:
            for name, mode in (("exec", "good"), ("exec_refused", "rights")):
                self.arguments[name] = (["exec", "--pair", "--out", folder / f"{name}_pair"], ["--pcap"])
                self.programs[name] = ["--", WRITING, "server", mode, folder / f"{name}_port", "--", WRITING, "client", mode, folder / f"{name}_port"]

    def path(self, name, suffix):
        return self.folder / f"{name}.{suffix}"

    def run(self, name):
        """The page of a run."""
        page = self.path(name, "html")
        if name not in self.done:
            arguments, files = self.arguments[name]
            suffixes = {"--json": "json", "--timeline": "timeline.json", "--pcap": "pcap"}
            written = [text for option in files for text in (option, self.path(name, suffixes[option]))]
            self.done[name] = rnic(*arguments, "--report", page, *written, *self.programs.get(name, []))
            expected = 1 if name in ("failed", "exec_refused") else 0
            assert self.done[name].returncode == expected, self.done[name].stdout + self.done[name].stderr
        return page

    def data(self, name):
        return data_of(self.run(name))

    def json(self, name, suffix="json"):
        self.run(name)
        path = self.path(name, suffix)
        return rnic_tool.results(path) if suffix == "json" else json.loads(path.read_text())


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runs = Runs(pathlib.Path(cls.folder.name))
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def open(self, page, width=1280, scheme="light"):
        self.browser.size(width, 900)
        self.browser.scheme(scheme)
        self.browser.open(page)

    def assert_silent(self, what):
        self.assertEqual(self.browser.messages(), [], what)

    # ---- The page

    def test_no_error_at_any_width_in_any_scheme(self):
        for name in self.runs.arguments:
            page, backs = self.runs.run(name), {}
            for width in (1280, 400):
                for scheme in ("light", "dark"):
                    with self.subTest(run=name, width=width, scheme=scheme):
                        self.open(page, width, scheme)
                        backs[scheme] = self.browser.script("return getComputedStyle(document.body).backgroundColor")
                        self.assert_silent(name)
                        self.assertEqual(self.browser.script("return [innerWidth, document.documentElement.scrollWidth]"), [width, width])
                        self.assertEqual(self.browser.script("return performance.getEntriesByType('resource').length"), 0, "asks for something")
                        self.browser.screenshot(screenshots / f"{name}-{width}-{scheme}.png", whole=True)
            self.assertNotEqual(backs["light"], backs["dark"])

    def test_wide_drawings_and_tables_stay_in_their_part(self):
        for width in (1280, 400):
            self.open(self.runs.run("loss"), width)
            self.browser.script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            self.browser.settle()
            out = self.browser.script("""
                const right = (e) => e.getBoundingClientRect().right;
                return [...document.querySelectorAll('section')].flatMap((part) => [...part.querySelectorAll('svg text, svg rect, .scroll, button, p, h3')]
                  .filter((e) => !e.closest('.scroll') || e.matches('.scroll')).filter((e) => right(e) > right(part) + 1).map((e) => `${part.id}: ${e.textContent.slice(0, 60)}`));""")
            self.assertEqual(out, [], width)

    def test_every_tab_and_legend_is_clicked(self):
        for name in self.runs.arguments:
            with self.subTest(run=name):
                self.open(self.runs.run(name))
                for tab in self.browser.all("[role=tab]"):
                    tab.click()
                    self.browser.settle()
                    self.assertEqual(tab.attribute("aria-selected"), "true")
                    shown = self.browser.script("const p = document.getElementById(arguments[0].getAttribute('aria-controls')); return [p.hidden, p.childElementCount, p.querySelectorAll('svg *').length]", tab)
                    self.assertFalse(shown[0])
                    self.assertGreater(shown[1], 0)
                    self.assertGreater(shown[2], 0)
                for button in self.browser.all(".legend button"):
                    marks = "return arguments[0].parentElement.parentElement.querySelectorAll('svg path, svg rect').length"
                    before = self.browser.script(marks, button)
                    button.click()
                    self.assertEqual(button.attribute("aria-pressed"), "false")
                    self.assertLess(self.browser.script(marks, button), before, button.text())
                    button.click()
                    self.assertEqual(button.attribute("aria-pressed"), "true")
                    self.assertEqual(self.browser.script(marks, button), before)
                for summary in self.browser.all("summary"):
                    if self.browser.script("return arguments[0].checkVisibility()", summary):
                        summary.click()
                        self.assertTrue(self.browser.script("return arguments[0].parentElement.open", summary))
                self.assert_silent(name)

    def test_the_keyboard_reaches_all_of_it(self):
        self.open(self.runs.run("copy"))
        first, *_, last = self.browser.all("#median [role=tab]")
        first.focus()
        self.browser.press(RIGHT)
        self.assertEqual(self.browser.all("#median [role=tab]")[1].attribute("aria-selected"), "true")
        self.browser.press(END)
        self.assertEqual(last.attribute("aria-selected"), "true")
        self.browser.press(RIGHT)
        self.assertEqual(first.attribute("aria-selected"), "true")
        legend = self.browser.all("#goodput .legend button")[0]
        legend.focus()
        self.browser.press(SPACE)
        self.assertEqual(legend.attribute("aria-pressed"), "false")
        self.browser.press(ENTER)
        self.assertEqual(legend.attribute("aria-pressed"), "true")
        # From the top with the tabulator alone: no stop is skipped, and one comes round.
        self.open(self.runs.run("copy"))
        wanted = self.browser.script("return [...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')].filter((e) => e.tabIndex === 0 && e.checkVisibility()).length")
        seen = set()
        for _ in range(wanted):
            self.browser.press(TAB)
            seen.add(self.browser.script("const e = document.activeElement; const all = [...document.querySelectorAll('*')]; return all.indexOf(e)"))
            outline, what = self.browser.script("const e = document.activeElement; return [getComputedStyle(e).outlineStyle, e.outerHTML.slice(0, 100)]")
            self.assertNotEqual(outline, "none", what)
        self.assertEqual(len(seen), wanted)

    def test_the_cursor_reads_a_chart(self):
        for name, count in (("copy", 3), ("sweep", 3)):
            self.open(self.runs.run(name))
            charts = self.browser.all(".chart .plot")
            self.assertGreaterEqual(len(charts), count)
            for chart in charts:
                says = "return arguments[0].parentElement.querySelector('.readout').textContent"
                chart.focus()
                self.browser.press(HOME)
                start = self.browser.script(says, chart)
                self.browser.press(RIGHT)
                self.assertRegex(self.browser.script(says, chart), r"\d")
                self.assertNotEqual(self.browser.script(says, chart), start)
                self.assertEqual(self.browser.script("return arguments[0].querySelectorAll('.cursor').length", chart), 1)
                self.browser.press(LEFT)
                self.assertEqual(self.browser.script(says, chart), start)
                self.browser.press(ESCAPE)
                self.assertEqual(self.browser.script("return arguments[0].querySelectorAll('.cursor').length", chart), 0)

    def test_drawings_have_words_and_tables_heads(self):
        for name in self.runs.arguments:
            self.open(self.runs.run(name))
            self.assertEqual(self.browser.script("""
                const bad = [];
                for (const e of document.querySelectorAll('.plot')) if (e.getAttribute('role') !== 'img' || e.getAttribute('aria-label').length < 20) bad.push('drawing ' + e.ariaLabel);
                for (const e of document.querySelectorAll('table')) if (!e.caption || !e.querySelector('thead th[scope=col]') || e.querySelector('tbody tr > :first-child:not(th[scope=row])')) bad.push('table ' + e.textContent.slice(0, 40));
                for (const e of document.querySelectorAll('section')) if (!e.querySelector('h2')) bad.push('part ' + e.id);
                for (const e of document.querySelectorAll('[id]')) if (document.querySelectorAll('#' + CSS.escape(e.id)).length !== 1) bad.push('id ' + e.id);
                for (const e of document.querySelectorAll('nav a')) if (!document.querySelector(e.getAttribute('href'))) bad.push('link ' + e.textContent);
                return bad;"""), [], name)

    def test_names_are_text(self):
        name = "a <!-- <script>alert(1)<" + "\u2215script> '\"&amp; \u00e9.bin"
        file = self.runs.folder / name
        file.write_bytes(b"x" * 5000)
        page = self.runs.folder / "name.html"
        self.assertEqual(rnic("copy", file, "--report", page).returncode, 0)
        self.open(page)
        self.assert_silent(name)
        self.assertIn(name.replace("'", "'\\''"), self.browser.all("#command")[0].text())
        self.assertNotIn("<!--", DATA.search(page.read_text())[1])

    # ---- The programs of rnic exec

    @unittest.skipUnless(WRITING, "RNIC_WRITING names no server_writing")
    def test_the_page_of_exec_is_about_its_programs(self):
        for name, mark in (("exec", "good"), ("exec_refused", "failed")):
            data = self.runs.data(name)
            self.open(self.runs.run(name))
            self.assertEqual(self.browser.all("#title")[0].text(), "rnic exec: server_writing and server_writing")
            self.assertEqual(self.browser.all("#outcome .mark")[0].text(), mark)
            self.assertIn(f"the client ended with exit code {int(name == 'exec_refused')}", self.browser.all("#outcome")[0].text())
            again = self.browser.all("#command")[0].text()
            self.assertTrue(again.startswith("rnic exec --pair -- "), again)
            self.assertTrue(again.endswith(f"_port -- {WRITING} client {'good' if mark == 'good' else 'rights'} {self.runs.folder / name}_port"), again)
            self.assertEqual([(one["kind"], one["count"]) for one in data["run"]["requests"]], [("Write", 1)])
            rows = self.browser.script("return [...document.querySelectorAll('#programs table')].map((one) => one.caption.textContent)")
            self.assertIn("Programs, and how they ended", rows)
            self.assertEqual("Queue pairs: goodput and latency of their requests" in rows, mark == "good")
            self.assertEqual(len(self.browser.all(".diagnosis")), int(mark == "failed"))
        # The good one: 8,192 bytes of one Write, from its doorbell to its completion.
        self.open(self.runs.run("exec"))
        shown = {e.attribute("data-figure"): e.attribute("data-value") for e in self.browser.all("[data-figure]")}
        pair = self.runs.data("exec")["processes"][1]["queue_pairs"][0]
        self.assertEqual(float(shown["server_writing on host1: goodput"]), pair["goodput_gbps"])
        self.assertAlmostEqual(pair["goodput_gbps"], 8 * 8192 / (pair["to_ns"] - pair["from_ns"]), places=6)

    @unittest.skipUnless(WRITING, "RNIC_WRITING names no server_writing")
    def test_a_diagnosis_names_frames_of_the_capture(self):
        self.open(self.runs.run("exec_refused"))
        text = self.browser.all(".diagnosis")[0].text()
        self.assertIn("without remote write access", text)
        frames = re.findall(r"frame (\d+) of the capture at (\d+\.\d{9}) s \(the (\w+), (\w+), PSN (\d+)\)", text)
        self.assertEqual([one[2] for one in frames], ["request", "answer"])
        records = frames_in(self.runs.path("exec_refused", "pcap"))
        for number, time, what, opcode, psn in frames:
            seen, frame = records[int(number) - 1]
            bth = frame[14 + 40 + 8:]  # behind Ethernet, IPv6 and UDP
            self.assertEqual((seen, int.from_bytes(bth[9:12], "big")), (round(float(time) * 10**9), int(psn)))
            self.assertEqual((opcode, bth[0]), ("RC_RDMA_WRITE_FIRST", 0x06) if what == "request" else ("RC_ACKNOWLEDGE", 0x11))

    def test_every_heading_has_something_below_it(self):
        for name in self.runs.arguments:
            with self.subTest(run=name):
                self.open(self.runs.run(name))
                for tab in self.browser.all("[role=tab]"):
                    tab.click()
                    self.browser.settle()
                self.assertEqual(self.browser.script("""
                    const empty = (e) => !e || /^H[1-6]$/.test(e.tagName) || (e.textContent.trim() === '' && !e.querySelector('svg *'));
                    const bad = [...document.querySelectorAll('main h2, main h3')].filter((e) => empty(e.nextElementSibling)).map((e) => e.textContent);
                    for (const table of document.querySelectorAll('main table')) if (table.tBodies[0].rows.length === 0) bad.push('table ' + table.caption.textContent);
                    return bad;"""), [], name)

    def test_times_have_the_unit_that_suits_them(self):
        for name in self.runs.arguments:
            self.open(self.runs.run(name))
            text = self.browser.script("""
                document.querySelectorAll('details').forEach((one) => { one.open = true; });
                document.getElementById('results')?.remove();
                return document.getElementById('content').innerText;""")
            self.assertEqual(re.findall(r"(?<![0-9.,])[0-9][0-9,]*[0-9]{3}(?:\.[0-9]+)? (?:ns|us|ms)\b", text), [], name)
        self.assertEqual([self.browser.script(f"return format.time({ns})") for ns in (0, 999, 2_210, 7_304, 47_055, 240_000, 123_456_789, 2_500_000_000)],
                         ["0 ns", "999 ns", "2.21 us", "7.304 us", "47.055 us", "240 us", "123.46 ms", "2.5 s"])

    def test_the_bottleneck_is_said_in_one_sentence(self):
        expected = {"copy": r"The wire was the bottleneck: full \(90 % or more\) in [5-9][0-9] % of the time\.",
                    "failed": r"Timers limited the run: host A waited for [0-9]+ ACK time-outs \(packets or their ACKs were lost\), and the wire was idle in 9[0-9] % of the time\.",
                    "verify": r"No link, queue pair or block was busy for most of the time, so latency limited the run: the longest step of the median Write was \".*\" \(.*\), .* of .*\."}
        for name, sentence in expected.items():
            self.open(self.runs.run(name))
            said = self.browser.all("#bottleneck #conclusion")[0].text()
            self.assertRegex(said, f"^{sentence}$", name)
            self.assertEqual(said.count(". "), 0, said)

    # ---- Its numbers

    def test_payload_of_a_refused_request_is_no_goodput(self):
        # The responder places the first packet of the Send, and refuses it when the next one is longer than the Receive.
        run = self.runs.data("refused")["run"]
        self.assertEqual([(one["kind"], one["count"], one["failed"]) for one in run["requests"] if one["kind"] == "Send"], [("Send", 1, 1)])
        sent = {row["opcode"]: row for host in run["hosts"] for row in host["packets"]["sent"]}
        self.assertGreater(sent["RC_SEND_FIRST"]["payload"], 0)
        self.assertEqual(sum(sum(series["bytes"]) for series in run["series"]["payload"]), 0)

    def test_a_run_has_one_median(self):
        for name in ("copy", "loss", "soak", "figure"):
            for one in self.runs.data(name)["run"]["requests"]:
                if "median" in one:
                    self.assertEqual(one["latency"]["median_ns"], one["median"]["latency_ns"], (name, one["kind"]))
        for name in ("copy", "loss"):
            requests = {one["kind"]: one["latency"] for one in self.runs.data(name)["run"]["requests"] if "latency" in one}
            for kind in ("Write", "Read"):
                for percentile in ("min_ns", "median_ns", "p99_ns"):
                    self.assertEqual(requests[kind][percentile], self.runs.json(name)[kind.lower()][f"latency_{percentile}"], (name, kind, percentile))

    def test_nobody_waits_longer_than_there_was_work(self):
        for name in self.runs.arguments:
            run = self.runs.data(name)["run"]
            if run is None:
                continue
            for host in run["hosts"]:
                for stall in host["stalls"]:
                    self.assertLessEqual(stall["ns"], run["work"]["ns"], (name, stall))
                for wait in host["waits"].values():
                    self.assertLessEqual(wait["ns"], run["work"]["ns"], (name, wait))

    def test_figures_are_those_of_the_json(self):
        figures = self.runs.json("copy")
        self.open(self.runs.run("copy"))
        shown = {e.attribute("data-figure"): e.attribute("data-value") for e in self.browser.all("[data-figure]")}
        for title, key in (("RDMA Write", "write"), ("RDMA Read", "read")):
            for name, field in (("goodput", "goodput_gbps"), ("of what the wire allows", "goodput_fraction"), ("latency, median", "latency_median_ns"),
                                ("latency, 99 %", "latency_p99_ns"), ("messages", "messages"), ("bytes", "bytes"), ("simulated time", "simulated_ns")):
                self.assertEqual(float(shown[f"{title}: {name}"]), figures[key][field], name)
        results = json.loads(self.browser.all("#results")[0].text())
        figures.pop("counters")
        self.assertEqual(results, figures)
        soak = self.runs.json("soak")
        self.open(self.runs.run("soak"))
        shown = {e.attribute("data-figure"): e.attribute("data-value") for e in self.browser.all("[data-figure]")}
        self.assertEqual(int(shown["Requests completed: all"]), soak["completed"])
        self.assertEqual(int(shown["Checked: bytes"]), soak["bytes"])
        bench = self.runs.json("figure")
        self.assertEqual([one["value"] for one in self.runs.data("figure")["figures"] if one["unit"] == "ns"], list(bench.values()))

    def test_curves_are_those_of_the_json(self):
        sweep = self.runs.json("sweep")
        self.assertEqual(self.runs.data("sweep")["sweep"], sweep)
        self.open(self.runs.run("sweep"))
        self.assertEqual(len(self.browser.all("#sweep .chart")), 3)
        self.assertEqual(len(self.browser.all("#sweep .chart svg circle")), 3 * (4 + 4 + 2))
        dashed = self.browser.script("return [...document.querySelectorAll('#sweep .chart svg path')].filter((e) => e.style.strokeDasharray).length")
        self.assertEqual(dashed, 4 + 4 + 2)
        rows = self.browser.script("return [...document.querySelectorAll('#sweep tbody tr')].map((row) => [...row.cells].map((cell) => cell.dataset.value))")
        shown = [(float(row[0]), float(row[2]), float(row[3]), row[4], float(row[5]), float(row[6])) for row in rows]
        expected = [(point["at"], *(point[way][key] for key in ("goodput_gbps", "limit_gbps", "limit_by", "rate_mmps", "limit_mmps")))
                    for point in sweep["points"] for way in ("write", "read", "write_both_ways", "read_both_ways")]
        self.assertEqual(shown, expected)

    def test_packets_are_those_of_the_capture(self):
        for name in ("copy", "loss", "soak", "figure", "verify"):
            with self.subTest(run=name):
                page = self.runs.run(name)
                count = len(frames_in(self.runs.path(name, "pcap")))
                run = data_of(page)["run"]
                self.assertEqual(run["frames"], count)
                self.assertEqual(sum(row["frames"] for host in run["hosts"] for row in host["packets"]["sent"]), count)
                self.open(page)
                self.assertEqual(int(self.browser.all("#frames")[0].attribute("data-value")), count)

    def test_requests_are_those_of_the_timeline(self):
        for name in ("copy", "loss", "soak", "figure", "verify"):
            with self.subTest(run=name):
                run = self.runs.data(name)["run"]
                slices = [event["args"] for event in self.runs.json(name, "timeline.json") if event["ph"] == "X"]
                kinds = collections.defaultdict(list)
                for request in (args for args in slices if "request" in args):
                    kinds[request["request"] + (", silent" if request["silent"] else "")].append(request)
                self.assertEqual({one["kind"]: one["count"] for one in run["requests"]}, {kind: len(all_) for kind, all_ in kinds.items()})
                for one in run["requests"]:
                    good = [request["stages"] for request in kinds[one["kind"]] if request["status"] == 0]
                    end = "retired" if one["kind"].endswith("silent") else "polled"
                    latencies = sorted(stages[end] - stages["posted"] for stages in good if end in stages and "posted" in stages)
                    if "latency" not in one:
                        continue
                    self.assertEqual(one["latency"]["count"], len(latencies))
                    self.assertEqual(sum(bucket[2] for bucket in one["latency"]["buckets"]), len(latencies))
                    self.assertEqual((one["latency"]["min_ns"], one["latency"]["max_ns"]), (latencies[0], latencies[-1]))
                    middle = latencies[(len(latencies) + 1) // 2 - 1]
                    self.assertAlmostEqual(one["latency"]["median_ns"], middle, delta=0.016 * middle + 1)
                    if len(latencies) <= 4096:
                        self.assertEqual(one["median"]["latency_ns"], middle)
                stalls = collections.Counter(args["stall"] for args in slices if "stall" in args)
                self.assertEqual(sum(stalls.values()), sum(stall["count"] for host in run["hosts"] for stall in host["stalls"]))

    def test_steps_of_the_median_request_add_up(self):
        for name in ("copy", "loss", "soak", "figure"):
            for one in self.runs.data(name)["run"]["requests"]:
                if "median" not in one:
                    continue
                with self.subTest(run=name, kind=one["kind"]):
                    median = one["median"]
                    self.assertEqual(sum(step["ns"] for step in median["steps"]), median["latency_ns"])
                    at = median["posted_ns"]
                    for step in median["steps"]:
                        self.assertEqual(step["from_ns"], at)
                        at += step["ns"]
        self.open(self.runs.run("copy"))
        for tab in self.browser.all("#median [role=tab]"):
            tab.click()
            kind = tab.text()
            shown = self.browser.script("return [...document.querySelectorAll('#median [role=tabpanel]:not([hidden]) tbody tr')].map((row) => Number(row.cells[3].dataset.value))")
            total = self.browser.script("return Number(document.querySelector('#median [role=tabpanel]:not([hidden]) [data-median]').dataset.value)")
            self.assertEqual(sum(shown), total, kind)
        places = {step["place"] for one in self.runs.data("copy")["run"]["requests"] if "median" in one for step in one["median"]["steps"]}
        self.assertEqual(places, {"driver", "PCI Express", "NIC", "wire", "peer's NIC", "peer's PCI Express"})

    def test_goodput_has_every_byte(self):
        for name, queue_pairs in (("copy", 4), ("loss", 2)):
            with self.subTest(run=name):
                figures, run = self.runs.json(name), self.runs.data(name)["run"]
                sent = next(one for one in run["requests"] if one["kind"] == "Send")["bytes"]
                shown = sum(sum(series["bytes"]) for series in run["series"]["payload"])
                self.assertEqual(shown, figures["write"]["bytes"] + figures["read"]["bytes"] + sent)
                to_b = [series for series in run["series"]["payload"] if series["to"] == "B"]
                self.assertEqual(len(to_b), 2 * queue_pairs)  # of Writes, and of Reads
        run = self.runs.data("copy")["run"]
        # Nor is a link ever fuller than it can be.
        links = {link["host"]: link for link in run["links"]}
        for series in run["series"]["links"]:
            if series["link"] == "wire":
                self.assertLessEqual(8 * max(series["bytes"]) / run["series"]["bin_ns"], 1.01 * links[series["host"]]["wire_gbps"])
        self.assertLessEqual(len(run["series"]["payload"][0]["bytes"]), 256)

    def test_counters_are_those_of_the_driver(self):
        # The driver reads them before it takes everything down, which takes commands.
        counters = self.runs.json("loss")["counters"]
        for host, read in zip(self.runs.data("loss")["run"]["hosts"], (counters["a"], counters["b"])):
            differ = {name for name, count in read.items() if host["counters"][name] != count}
            self.assertLessEqual(differ, {"AdminCommands", "DmaReads", "DmaWrites"})
            self.assertGreater(host["counters"]["AdminCommands"], read["AdminCommands"])
            # And the frames are those that the wire has had.
            self.assertEqual(host["counters"]["TxFrames"], host["packets"]["frames"])

    def test_losses_are_those_of_the_scenario(self):
        faults, hosts = self.runs.json("loss")["faults"]["wire"], self.runs.data("loss")["run"]["hosts"]
        self.assertEqual({way: host["packets"]["faults"] for way, host in zip(("a_to_b", "b_to_a"), hosts) if host["packets"]["faults"]}, faults)
        for host in hosts:
            sent = host["packets"]["sent"]
            self.assertEqual(sum(row["lost"] for row in sent), host["packets"]["faults"].get("drop", 0))
            self.assertLessEqual(sum(row["unjudged"] for row in sent), host["packets"]["faults"].get("corrupt", 0))
        self.assertGreater(sum(row["repeated"] for host in hosts for row in host["packets"]["sent"]), 0)
        self.open(self.runs.run("loss"))
        self.assertIn("repaired: SequenceRetries", self.browser.all("#packets")[0].text())

    def test_blocks_are_busy_no_longer_than_there_was_work(self):
        for name in ("copy", "soak"):
            run = self.runs.data(name)["run"]
            for host, link in zip(run["hosts"], run["links"]):
                cycles = 1000 * run["work"]["ns"] / link["clock_period_ps"] + 1
                self.assertGreater(len(host["engines"]), 10)
                self.assertGreater(len(host["streams"]), 30)
                for engine in host["engines"]:
                    self.assertLessEqual(engine["busy"], cycles)
                for stream in host["streams"]:
                    self.assertLessEqual(stream["moves"] + stream["waits"], cycles)
        # Each frame passes the send path once; commands are given before and after the work alone.
        for host in self.runs.data("copy")["run"]["hosts"]:
            desc = next(stream for stream in host["streams"] if stream["stream"].endswith("u_tx_path.desc"))
            self.assertEqual(desc["moves"], host["packets"]["frames"])
            self.assertEqual([engine["engine"] for engine in host["engines"] if "u_admin" in engine["engine"]], [])

    # ---- The run

    def test_the_same_seed_gives_the_same_report(self):
        pages = []
        for i in range(2):
            page = self.runs.folder / f"same{i}.html"
            self.assertEqual(rnic("copy", self.runs.folder / "data", "--faults", self.runs.folder / "lossy_wire.json", "--report", page, "--threads", 1 + i).returncode, 0)
            pages.append(data_of(page))
            wall_clock = pages[-1].pop("wall_clock")
            self.assertIn("seconds", wall_clock)
            pages[-1]["command_line"] = re.sub(" --threads [0-9]", "", pages[-1]["command_line"])
        self.assertEqual(pages[0], pages[1])

    def test_the_run_is_the_same_without(self):
        arguments, _ = self.runs.arguments["loss"]
        self.runs.run("loss")
        self.assertEqual(rnic(*arguments, "--pcap", self.runs.folder / "bare.pcap", "--timeline", self.runs.folder / "bare.json").returncode, 0)
        self.assertEqual((self.runs.folder / "bare.pcap").read_bytes(), self.runs.path("loss", "pcap").read_bytes())
        self.assertEqual((self.runs.folder / "bare.json").read_text(), self.runs.path("loss", "timeline.json").read_text())
        self.assertEqual(rnic(*arguments, "--pcap", self.runs.folder / "bare.pcap").returncode, 0)
        self.assertEqual((self.runs.folder / "bare.pcap").read_bytes(), self.runs.path("loss", "pcap").read_bytes())

    def test_the_command_runs_it_again(self):
        words = self.runs.data("loss")["command_line"].split()
        self.assertEqual(words[0], "rnic")
        self.assertEqual(rnic(*words[1:], "--pcap", self.runs.folder / "again.pcap").returncode, 0)
        self.assertEqual((self.runs.folder / "again.pcap").read_bytes(), self.runs.path("loss", "pcap").read_bytes())

    def test_a_run_that_fails_leaves_what_there_was(self):
        report = self.runs.data("failed")
        self.assertFalse(report["outcome"]["good"])
        self.assertIn(report["outcome"]["text"], self.runs.done["failed"].stderr)
        self.assertGreater(report["run"]["frames"], 20)
        self.assertGreater(sum(row["lost"] for host in report["run"]["hosts"] for row in host["packets"]["sent"]), 2)
        self.open(self.runs.run("failed"))
        self.assertEqual(self.browser.all("#outcome .mark")[0].text(), "failed")

    def test_a_figure_alone_has_no_run(self):
        page = self.runs.folder / "figures.html"
        result = rnic("bench", "--figure", "warm_write_ns", "--figure", "first_touch_write_ns", "--report", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIsNone(data_of(page)["run"])
        self.assertNotIn("the same", result.stdout)
        self.open(page)
        self.assert_silent("figures")

    def test_wrong_use_is_refused(self):
        for arguments in (["copy", self.runs.folder / "data"], ["bench", "--figure", "warm_write_ns"], ["bench", "--sweep", "message"], ["soak"], ["verify", VECTOR]):
            result = rnic(*arguments, "--report", "/nonexistent/r.html")
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("--report: cannot write '/nonexistent/r.html'", result.stderr)
        result = rnic("verify", ROOT / "tests/vectors/credits", "--report", self.runs.folder / "r.html")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--report", result.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if browser.programs() is None:
        print("skipped: there is no Chromium with chromedriver; scripts/test.sh -L report installs them")
        sys.exit(SKIPPED)
    screenshots = pathlib.Path(sys.argv.pop(2))
    screenshots.mkdir(parents=True, exist_ok=True)
    rnic_tool.main(__doc__)
