"""scripts/nightly.py: plans, one run, runs that fail, lines that are lost, the trend. usage: test_nightly.py BUILD"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NIGHTLY = ROOT / "scripts/nightly.py"
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
        self.assertEqual(len({run["run"] for run in runs}), len({run["run"] for run in runs[:11]}))

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
