#!/usr/bin/env python3
"""`rnic coverage`: what runs have reached, merged; holes, excluded and closed points.

usage: test_coverage.py RNIC [TEST...]     Coverage: what the command does; Sample: that runs still reach the closed points (minutes)
"""
import html.parser
import os
import pathlib
import subprocess
import tempfile
import unittest

import rnic_tool
from rnic_tool import main, rnic

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests/vectors"
LISTS = ROOT / "tests/coverage"


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)  # no list of excluded points is there

    def run_vectors(self, name, *arguments):
        """Runs vectors; returns the folder of what they reach."""
        into = self.folder / name
        into.mkdir()
        told = subprocess.run([rnic_tool.program, "verify", "--jobs", "1", *map(str, arguments)], env={**os.environ, "RNIC_COVERAGE": str(into)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800)
        self.assertEqual(told.returncode, 0, told.stdout[-2000:] + told.stderr)
        return into


class Coverage(Runs):
    def figures(self, *arguments):
        file = self.folder / "figures.json"
        told = rnic("coverage", *arguments, "--json", file)
        self.assertEqual(told.returncode, 0, told.stderr)
        return rnic_tool.results(file)

    def refused(self, what, *arguments):
        told = rnic("coverage", *arguments)
        self.assertEqual(told.returncode, 2, told.stdout + told.stderr)
        self.assertIn(what, told.stderr)
        self.assertEqual(len(told.stderr.splitlines()), 1)

    def file(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def test_wrong_input(self):
        self.refused("there is no folder", self.folder / "nowhere")
        self.refused("holds no coverage", self.folder)
        other = self.folder / "other"
        other.mkdir()
        (other / "functional.000000000000.hits").write_bytes(b"\1")
        self.refused("of another version", other)
        (other / "functional.000000000000.hits").unlink()
        (other / "Vrnic_top.1.hits").write_bytes(b"\1")
        self.refused("Vrnic_top.1.points' is missing", other)
        (other / "Vrnic_top.1.points").write_text("v_user\trtl/a.sv\t1\t1\t.rnic_top.u_a.Full\tFull\t1\n" * 2)
        self.refused("does not belong to", other)

    def rtl(self, hits):
        """A folder with points of the RTL: of a queue and of an arbiter."""
        into = self.folder / f"rtl{hits.hex()}"
        into.mkdir()
        paths = (".rnic_top.u_side.gen_port__BRA__2__KET__.u_queue.Full",
                 ".rnic_top.u_side.u_arbiter.gen_b_Conflict__BRA__1__KET__.gen_Conflict__BRA__0__KET__.gen_point.Conflict")
        (into / "Vrnic_top.7.points").write_text("".join(f"v_user\trtl/a.sv\t1\t1\t{path}\t{path.split('.')[-1]}\t1\n" for path in paths)
                                                 + "v_line\trtl/a.sv\t1\t1\t.rnic_top\tblock\t1\n")
        (into / "Vrnic_top.7.hits").write_bytes(hits)
        return into

    def test_points_of_the_rtl_are_named_by_instance_and_merged(self):
        none = self.figures(self.rtl(b"\0\0\1"))
        self.assertTrue(none["rtl"])
        self.assertIn("rtl/u_side.gen_port[2].u_queue/Full", none["hole"])
        self.assertIn("rtl/u_side.u_arbiter/Conflict 0 1", none["hole"])
        self.assertEqual(none["by_block"]["u_side.u_arbiter"], {"points": 1, "excluded": 0, "reached": 0, "in_unit_tests": 0, "holes": 1})
        both = self.figures(self.rtl(b"\1\0\0"), self.rtl(b"\0\1\0"))
        self.assertEqual([name for name in both["hole"] if name.startswith("rtl/")], [])

    def table(self, name, rows, hits):
        """Adds the points of a model to the folder: kind, source, instance and point of each."""
        self.file(f"{name}.points", "".join(f"{kind}\t{source}\t1\t1\t{place}\t{place.split('.')[-1]}\t1\n" for kind, source, place in rows))
        self.file(f"{name}.hits", hits)

    def test_unit_tests_reach_points_inside_blocks_that_are_there_once(self):
        fifo, block, twin = "rtl/common/fifo.sv", "rtl/rx/block.sv", "rtl/rx/twin.sv"
        self.table("Vrnic_top.7", [("v_line", block, ".rnic_top.u_side.u_block"), ("v_user", fifo, ".rnic_top.u_side.u_block.u_queue.Full"),
                                   ("v_user", fifo, ".rnic_top.u_side.u_block.u_queue.Waits"), ("v_user", block, ".rnic_top.u_side.u_block.Woken"),
                                   ("v_line", twin, ".rnic_top.u_a"), ("v_user", fifo, ".rnic_top.u_a.u_queue.Full"),
                                   ("v_line", twin, ".rnic_top.u_b"), ("v_user", fifo, ".rnic_top.u_b.u_queue.Full")], b"\0\0\1\0\0\0\0\0")
        # By itself, and in a harness beside one that stands in the NIC twice; what is not in the NIC is no point.
        self.table("Vblock.1", [("v_toggle", "rtl/include/../../rtl/rx/block.sv", ".block"), ("v_user", fifo, ".block.u_queue.Full"),
                                ("v_user", fifo, ".block.u_queue.Waits"), ("v_user", fifo, ".block.u_other.Full")], b"\0\1\1\1")
        self.table("Vharness.1", [("v_line", "tests/rtl/harness.sv", ".harness"), ("v_line", block, ".harness.u_dut"), ("v_user", block, ".harness.u_dut.Woken"),
                                  ("v_line", twin, ".harness.u_twin"), ("v_user", fifo, ".harness.u_twin.u_queue.Full"),
                                  ("v_user", fifo, ".harness.u_queue.Full")], b"\0\0\1\0\1\1")
        figures = self.figures(self.folder)
        shared = self.folder / "shared"
        shared.mkdir()
        (shared / "Vblock.1.points").write_text(f"v_user\t{fifo}\t1\t1\t\tFull\t1\n")
        (shared / "Vblock.1.hits").write_bytes(b"\1")
        self.refused("points of no instance", shared)
        self.assertEqual(sorted(name for name in figures["hole"] if name.startswith("rtl/")), ["rtl/u_a.u_queue/Full", "rtl/u_b.u_queue/Full"])
        self.assertEqual(figures["by_block"]["u_side.u_block.u_queue"], {"points": 2, "excluded": 0, "reached": 2, "in_unit_tests": 1, "holes": 0})
        self.assertEqual(figures["by_block"]["u_side.u_block"], {"points": 1, "excluded": 0, "reached": 1, "in_unit_tests": 1, "holes": 0})

    def test_closed_points_that_open_are_named(self):
        folder = self.rtl(b"\1\0\0")
        closed = self.file("closed.txt", "rtl/u_side.gen_port[2].u_queue/Full\n")
        self.assertEqual(rnic("coverage", folder, "--closed", closed).returncode, 0)
        closed = self.file("closed.txt", "rtl/u_side.u_arbiter/Conflict 0 1\nevent/nothing of the kind\n")
        told = rnic("coverage", folder, "--closed", closed)
        self.assertEqual(told.returncode, 1)
        self.assertIn("a closed point is open: rtl/u_side.u_arbiter/Conflict 0 1", told.stderr)
        self.assertIn("event/nothing of the kind (there is no such point)", told.stderr)
        self.refused("cannot read", folder, "--closed", self.folder / "nothing")

    def test_excluded_points(self):
        folder = self.rtl(b"\1\0\0")
        excluded = self.file("excluded.toml", '[[excluded]]\npoints = ["rtl/u_side.u_arbiter/*"]\nreason = "they take turns"\n')
        figures = self.figures(folder, "--excluded", excluded)
        self.assertEqual(figures["by_block"]["u_side.u_arbiter"], {"points": 1, "excluded": 1, "reached": 0, "in_unit_tests": 0, "holes": 0})
        reached = self.file("excluded.toml", '[[excluded]]\npoints = ["rtl/*/Full"]\nreason = "it never is"\n')
        told = rnic("coverage", folder, "--excluded", reached)
        self.assertEqual(told.returncode, 1)
        self.assertIn("u_queue/Full is reached, and excluded as impossible", told.stderr)
        for text, what in (("[[excluded]\n", "line 1"), ('[[excluded]]\npoints = ["event/*"]\n', "points and reason"), ("a = 1\n", "[[excluded]]"),
                           ('[[excluded]]\npoints = ["no such/*"]\nreason = "x"\n', "no point is like 'no such/*'")):
            self.refused(what, folder, "--excluded", self.file("excluded.toml", text))

    def test_a_run_of_either_nic_reaches_what_it_shows(self):
        for nic in ("rtl", "model"):
            folder = self.run_vectors(nic, "--nic", nic, VECTORS / "rnr")
            holes = set(self.figures(folder)["hole"])
            for name in ("NAK/sent/receiver not ready/SEND", "NAK/received/receiver not ready/SEND", "packet/RC/SEND only/expected/RTS",
                         "transition/RC/RTR to RTS", "outcome/RC/SEND/RTS/success"):
                self.assertNotIn(name, holes, nic)
            self.assertIn("packet/UD/SEND only/any/RTS", holes)

    def test_page(self):
        page = self.folder / "page.html"
        self.assertEqual(rnic("coverage", self.rtl(b"\1\0\0"), "--html", page).returncode, 0)
        text = page.read_text()
        opened = []

        class Reader(html.parser.HTMLParser):
            def handle_starttag(self, tag, attributes):
                if tag not in ("meta", "link"):
                    opened.append(tag)

            def handle_endtag(self, tag):
                assert opened.pop() == tag, tag

        Reader().feed(text)
        self.assertEqual(opened, [])
        self.assertIn("rtl/u_side.u_arbiter/Conflict 0 1", text)
        self.assertIn("NAK (9.7.5.2.2: PSN sequence error)", text)
        self.assertNotIn("http", text)

    def test_a_share_of_nothing_is_none(self):
        excluded = self.file("excluded.toml", '[[excluded]]\npoints = ["rtl/u_side.u_arbiter/*"]\nreason = "it has one requester"\n')
        page = self.folder / "page.html"
        self.assertEqual(rnic("coverage", self.rtl(b"\1\0\0"), "--excluded", excluded, "--html", page).returncode, 0)
        row = next(row for row in page.read_text().split("<tr>") if ">u_side.u_arbiter<" in row)
        self.assertIn("<td>none</td>", row)
        self.assertNotIn("%", row)


class Sample(Runs):
    def test_runs_reach_what_is_closed(self):
        """Guards the closed points (docs/coverage.md). RNIC_CLOSED=FILE: writes them there instead."""
        folder = self.run_vectors("sample", VECTORS)
        bin_folder = pathlib.Path(rnic_tool.program).parent
        tool = rnic_tool.program
        for command in ([bin_folder / "test_system_packets_by_state"], [bin_folder / "test_system_requests_by_state"],
                        [tool, "fuzz", "--nic", "model", "--frames", "50000", "--seed", "7"],
                        [tool, "compare", "--nic", "model,model", "--operations", "30000", "--seed", "5", "--jobs", "1"]):
            told = subprocess.run(command, env={**os.environ, "RNIC_COVERAGE": str(folder), "RNIC_NIC": "model"}, cwd=self.folder,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800)
            self.assertEqual(told.returncode, 0, f"{command}: {told.stdout[-2000:]}{told.stderr}")
        closed = LISTS / "closed_sample.txt"
        option = ["--write-closed", os.environ["RNIC_CLOSED"]] if "RNIC_CLOSED" in os.environ else ["--closed", closed]
        told = rnic("coverage", folder, *option, "--excluded", LISTS / "excluded.toml")
        self.assertEqual(told.returncode, 0, told.stderr)


if __name__ == "__main__":
    main(__doc__)
