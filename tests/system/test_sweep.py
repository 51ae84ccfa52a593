#!/usr/bin/env python3
"""`rnic bench --sweep`: no point is above what wire and PCI Express allow (docs/limits.md), and none is far below where the NIC keeps up.

usage: test_sweep.py RNIC [TEST...]
"""
import functools
import pathlib
import tempfile
import unittest

import rnic_tool

rnic = functools.partial(rnic_tool.rnic, timeout=600)
WAYS = ("write", "read", "write_both_ways", "read_both_ways")


class SweepTest(unittest.TestCase):
    def points(self, *arguments, least):
        """Measures, holds every point between `least` of its limit and the limit, and gives the points."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "sweep.json"
            result = rnic("bench", "--sweep", *arguments, "--json", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            curve = rnic_tool.results(path)
        self.assertEqual(curve["sweep"], arguments[0])
        for point in curve["points"]:
            for way in WAYS:
                one = point[way]
                with self.subTest(sweep=arguments, at=point["at"], way=way):
                    self.assertLessEqual(one["goodput_gbps"], one["limit_gbps"])
                    self.assertLessEqual(one["rate_mmps"], one["limit_mmps"])
                    self.assertGreater(one["goodput_gbps"], least * one["limit_gbps"])
                    self.assertIn(one["limit_by"], result.stdout)
                    if "both_ways" not in way:
                        self.assertGreaterEqual(one["latency_min_ns"], one["latency_limit_ns"])
                        self.assertGreaterEqual(one["latency_median_ns"], one["latency_min_ns"])
        return curve["points"]

    def test_small_messages(self):
        self.points("message", "--at", 8, "--qps", 4, least=0.1)

    def test_long_messages(self):
        self.points("message", "--at", 1 << 20, "--qps", 1, least=0.9)

    def test_small_packets(self):
        self.points("mtu", "--at", 256, least=0.95)

    def test_loss(self):
        point, = self.points("loss", "--at", 0.01, least=0.3)
        for way in WAYS:
            self.assertGreater(point[way]["lost"], 0)

    def test_slow_reads(self):
        point, = self.points("pcie-read", "--at", 4000, least=0.5)
        self.assertEqual(point["write"]["limit_by"], "PCIe reads")

    def test_narrow_pcie(self):
        point, = self.points("qps", "--at", 2, "--message", 16384, "--pcie-gen", 3, "--pcie-lanes", 4, "--pcie-payload", 128, "--pcie-tags", 5, least=0.5)
        self.assertIn("PCIe", point["write"]["limit_by"])

    def test_wrong_use(self):
        for word, *arguments in (("--at", "mtu", "--at", 300), ("--at", "qps", "--at", 1.5), ("--at", "loss", "--at", 0.5), ("--sweep", "colour"), ("--world", "qps", "--world", 1), ("--trace", "qps", "--trace", "x.fst")):
            result = rnic("bench", "--sweep", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(word, result.stderr)


if __name__ == "__main__":
    rnic_tool.main(__doc__)
