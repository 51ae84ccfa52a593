"""scripts/nightly.py: plans, one run, runs that fail, lines that are lost, the trend. usage: test_nightly.py BUILD"""
import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
NIGHTLY = ROOT / "scripts/nightly.py"
sys.path.insert(0, str(ROOT / "scripts"))
import nightly as parts  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop())


def nightly(*words):
    return subprocess.run([sys.executable, NIGHTLY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Night(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rnic_test_nightly_")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def write_plan(self, *runs):
        file = self.path / "plan.jsonl"
        file.write_text("".join(json.dumps(run) + "\n" for run in runs))
        return file

    def lines(self):
        return [json.loads(line) for line in (self.path / "results/runs.jsonl").read_text().splitlines()]

    def test_a_plan_is_the_same_for_the_same_seed(self):
        first = nightly("plan", "--runs", 20, "--first", 7)
        self.assertEqual(first.returncode, 0, first.stdout)
        self.assertEqual(first.stdout, nightly("plan", "--runs", 20, "--first", 7).stdout)
        runs = [json.loads(line) for line in first.stdout.splitlines()]
        self.assertEqual([run["seed"] for run in runs], list(range(7, 27)))
        kinds = len({run["run"] for run in runs})
        self.assertEqual(len({run["run"] for run in runs[:kinds]}), kinds)

    def test_a_run_leaves_its_line(self):
        runs = [json.loads(line) for line in nightly("plan", "--runs", 8, "--first", 3, "--size", 0.005).stdout.splitlines()]
        plan = self.write_plan(*[run for run in runs if run["run"] == "soak"])
        told = nightly("one", plan, 0, "--out", self.path, "--tree", BUILD)
        self.assertEqual(told.returncode, 0, told.stdout)
        line = json.loads((self.path / "0.json").read_text())
        self.assertEqual((line["run"], line["exit"]), ("soak", 0))
        self.assertGreaterEqual(line["figures"]["cycles"], 1000)
        self.assertEqual(line["figures"]["wrong"], 0)
        self.assertFalse((self.path / "failures").exists())

    def test_a_run_that_fails_keeps_what_it_said(self):
        plan = self.write_plan({"run": "wrong", "seed": 5, "command": "echo the reason; exit 3"})
        self.assertEqual(nightly("one", plan, 0, "--out", self.path).returncode, 1)
        self.assertEqual(json.loads((self.path / "0.json").read_text())["exit"], 3)
        self.assertIn("the reason", (self.path / "failures/wrong_5.txt").read_text())

    def test_worlds_have_seeds_of_their_own(self):
        told = nightly("worlds", "--results", self.path / "results", "--worlds", 2, "--first-world", 3, "--size", 0.01, "--tree", BUILD)
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertIn("2 worlds, 0 failed\n", told.stdout)
        self.assertEqual([(line["run"], line["seed"], line["figures"]["frames"]) for line in self.lines()], [("fuzz_world", seed, 100) for seed in (3, 4)])
        with mock.patch.object(parts, "FUZZED_WORLD", ("fuzz_world", "test {seed} != 6", {})), contextlib.redirect_stdout(io.StringIO()) as told:
            arguments = argparse.Namespace(results=self.path / "results", worlds=3, first_world=5, size=1, tree=BUILD)
            self.assertTrue(parts.worlds(arguments))
        self.assertIn("3 worlds, 1 failed: 6\n", told.getvalue())

    def test_there_is_no_such_run(self):
        told = nightly("one", self.write_plan({"run": "one", "seed": 1, "command": "true"}), 1, "--out", self.path)
        self.assertEqual(told.returncode, 2)
        self.assertIn("runs 0 to 0", told.stdout)

    def test_runs_that_left_nothing_are_lost(self):
        plan = self.write_plan(*[{"run": "quick", "seed": seed, "command": "true"} for seed in range(3)])
        for index in (0, 2):
            nightly("one", plan, index, "--out", self.path)
        told = nightly("merge", plan, self.path, "--results", self.path / "results")
        self.assertEqual(told.returncode, 1)
        self.assertIn("3 runs, 0 failed, 1 lost: 1 (quick, seed 1)", told.stdout)
        self.assertEqual([line["seed"] for line in self.lines()], [0, 2])

    def night(self, hours, long_ones, seconds):
        """The long runs of a night in which each takes so many of its clock's seconds, and what the night prints."""
        clock = [0.0]
        ran = []

        def perform(planned, *_):
            clock[0] += seconds[planned["run"]]
            ran.append(planned["run"])
            return {"night": "2001-01-01", "run": planned["run"], "command": planned["command"], "exit": 0, "seconds": seconds[planned["run"]]}

        arguments = argparse.Namespace(hours=hours, results=self.path / "results", first=1, size=1, tree=BUILD)
        with mock.patch.multiple(parts, SEEDED=[("seeded", "true", {})], LONG=[(name, "true") for name in long_ones], perform=perform), \
             mock.patch.object(parts.time, "monotonic", lambda: clock[0]), contextlib.redirect_stdout(io.StringIO()) as told:
            self.assertFalse(parts.run(arguments))
        return [name for name in ran if name != "seeded"], told.getvalue()

    def test_each_long_run_has_its_turn(self):
        seconds = {"seeded": 60, "quick": 60, "half": 2000, "whole": 5000}

        def night():
            return self.night(1, ("quick", "half", "whole"), seconds)

        # Of none it is known how long it takes.
        self.assertEqual(night()[0], ["quick", "half", "whole"])
        # What is known not to fit waits, until it is the first in turn.
        ran, told = night()
        self.assertEqual(ran, ["quick", "half"])
        self.assertIn("wait for another night: whole\n", told)
        ran, told = night()
        self.assertEqual(ran, ["whole"])
        self.assertIn("wait for another night: quick, half\n", told)

    def test_the_trend_shows_each_night(self):
        results = self.path / "results"
        results.mkdir()
        line = {"commit": "1234567", "run": "soak", "seed": 1, "command": "rnic soak <x>", "seconds": 1800, "figures": {"cycles": 1000}}
        nights = [{**line, "night": "2001-01-01", "exit": 0}, {**line, "night": "2001-01-02", "exit": 1}]
        (results / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in nights) + "damaged\n")
        told = nightly("trend", "--results", results)
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertIn("runs.jsonl:3: no line of a run", told.stdout)
        self.assertRegex(told.stdout, r"2001-01-02\s+1\s+1\s+1,000")
        page = (results / "trend.html").read_text()
        self.assertIn("2001-01-02 1234567: <code>rnic soak &lt;x&gt;</code>", page)
        self.assertNotIn("2001-01-01 1234567", page)

    def test_without_a_night_there_is_no_trend(self):
        told = nightly("trend", "--results", self.path)
        self.assertNotEqual(told.returncode, 0)
        self.assertIn("nothing has run", told.stdout)


if __name__ == "__main__":
    unittest.main()
