"""`rnic compare`: both NICs agree; what differs is found, shrunk and written as a vector. usage: test_compare.py RNIC"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import rnic_tool

ROOT = pathlib.Path(__file__).resolve().parents[2]
RNIC = sys.argv.pop(1)
SEED = 20_000


def rnic(*words):
    return subprocess.run([RNIC, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Compare(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rnic_test_compare_")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def compare(self, *words):
        told = rnic("compare", "--json", self.path / "figures.json", "--vectors", self.path / "vectors", *words)
        file = self.path / "figures.json"
        return told, rnic_tool.results(file) if file.exists() else {}

    def test_the_rtl_and_the_reference_agree(self):
        told, figures = self.compare("--operations", 3000, "--seed", SEED)
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertGreaterEqual(figures["operations"], 3000)
        self.assertEqual(figures["differences"], 0)
        self.assertFalse((self.path / "vectors").exists())
        # And it was what the programs mean: no call was refused, each request ended.
        self.assertEqual(figures["failures"], {})
        # It came far: each kind of request was there, requests succeeded, and others failed in several ways.
        for kind in ("send", "write", "read", "compare_swap", "fetch_add", "receive", "bind", "invalidate"):
            self.assertGreater(figures["drawn"].get(kind, 0), 0, kind)
        self.assertGreater(figures["outcomes"]["Success"], 500)
        self.assertGreater(len(figures["outcomes"]), 5)

    def test_a_seed_is_a_program(self):
        first, second = (self.compare("--operations", 200, "--seed", SEED + 500, "--nic", "model,model")[1] for _ in range(2))
        self.assertEqual(first, second)

    def test_ethernet_frames_are_drawn(self):
        told, figures = self.compare("--operations", 10_000, "--seed", SEED, "--nic", "model,model")
        self.assertEqual(told.returncode, 0, told.stdout)
        for kind in ("store", "receive_ethernet"):
            self.assertGreater(figures["drawn"].get(kind, 0), 0, kind)

    def test_what_differs_is_found_and_shrunk(self):
        for planted in ("extra-right", "long-region"):
            with self.subTest(planted):
                told, figures = self.compare("--operations", 20_000, "--seed", SEED, "--nic", "model,model", "--planted", planted, "--differences", 1)
                self.assertEqual(told.returncode, 1, told.stdout)
                found = figures["difference"][0]
                self.assertLessEqual(found["operations"], 8, found)
                vector = self.path / "vectors" / f"compare-{found['seed']}.json"
                self.assertIn(str(vector), told.stdout)
                # It expects what the second world did.
                self.assertEqual(rnic("verify", "--nic", "model", vector).returncode, 0, vector.read_text())

    def test_a_shorter_program_differs_in_the_same_way(self):
        # Any request beyond two is refused in the first world, and others by what comes of that: many sorts of one kind.
        _, figures = self.compare("--operations", 3000, "--seed", SEED, "--nic", "model,model", "--planted", "short-queue", "--differences", 5)
        found = figures["difference"]
        self.assertEqual(len(found), 5)
        self.assertGreater(len({one["sort"] for one in found}), 2)
        for one in found:
            self.assertEqual(one["sort"], one["drawn"]["sort"], one)
            self.assertLessEqual(one["operations"], 8, one)

    def test_half_a_program_that_never_ends_is_not_run_on_the_rtl(self):
        # A SEND that is sent again for ever, without its Receive: minutes of work for the RTL, hundreds of times.
        _, figures = self.compare("--operations", 1000, "--seed", SEED + 7, "--planted", "short-queue", "--differences", 3)
        self.assertEqual(len(figures["difference"]), 3)
        for one in figures["difference"]:
            self.assertLessEqual(one["operations"], 8, one)

    def test_what_is_not_shrunk_is_the_program_as_drawn(self):
        words = ("--operations", 20_000, "--nic", "model,model", "--planted", "extra-right", "--differences", 1)
        told, figures = self.compare("--seed", SEED, "--no-shrink", *words)
        self.assertEqual(told.returncode, 1, told.stdout)
        found = figures["difference"][0]
        self.assertGreater(found["operations"], 60, found)
        self.assertEqual(found["sort"], found["drawn"]["sort"])
        self.assertEqual(rnic("verify", "--nic", "model", self.path / "vectors" / f"compare-{found['seed']}.json").returncode, 0)

    def test_what_is_not_compared_is_in_the_page(self):
        page = (ROOT / "docs/compare.md").read_text()
        for row in rnic("compare", "--freedoms").stdout.splitlines():
            self.assertIn(row, page)

    def test_words_that_are_none(self):
        told = rnic("compare", "--operations", 0)
        self.assertEqual(told.returncode, 2)
        self.assertIn("--operations", told.stdout)


if __name__ == "__main__":
    unittest.main()
