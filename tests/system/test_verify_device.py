#!/usr/bin/env python3
"""The vectors of the grade verbs on a device of libibverbs: that of a machine of ours, to which programs come by `rnic exec`.

usage: test_verify_device.py RNIC
"""
import json
import pathlib
import re
import tempfile
import unittest
from xml.etree import ElementTree

import rnic_tool
from rnic_tool import rnic

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors"


def on_device(*arguments, machine=(), timeout=900):
    return rnic("exec", *machine, "--", rnic_tool.program, "verify", *arguments, timeout=timeout)


class VerifyDevice(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="rnic_verify_device_")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def spoiled(self, name, change):
        vector = json.loads((VECTORS / f"{name}.json").read_text())
        change(vector)
        path = self.folder / f"{len(list(self.folder.iterdir()))}.json"
        path.write_text(json.dumps(vector))
        return path

    def test_all_pass_on_our_device(self):
        verbs = int(re.search(r"grades: (\d+) verbs", rnic("verify", "--list", VECTORS).stdout).group(1))
        result = on_device("--device", "rnic0", "--junit", self.folder / "junit.xml", VECTORS, machine=("--nic", "model"))
        self.assertEqual(result.returncode, 0, "\n".join(line for line in result.stdout.splitlines() if line.startswith("FAIL")) + result.stderr)
        passed, skipped = map(int, re.search(r"^(\d+) passed, 0 failed, (\d+) skipped", result.stdout, re.M).groups())
        self.assertEqual(passed + skipped, verbs)
        self.assertGreater(passed, 100)
        suite = ElementTree.parse(self.folder / "junit.xml").getroot()
        self.assertEqual(len(list(suite.iter("testcase"))), verbs)
        self.assertEqual(len(list(suite.iter("skipped"))), skipped)

    def test_the_rtl_passes_some(self):
        result = on_device("--device", "rnic0", *(VECTORS / folder for folder in ("send", "write", "read", "atomic")))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_what_comes_otherwise_fails(self):
        def step(name, do, **keys):
            return self.spoiled(name, lambda vector: next(one for one in vector["steps"] if one["do"] == do).update(keys))

        def result(name, **keys):
            return self.spoiled(name, lambda vector: next(one for one in vector["steps"] if one["do"] == "complete")["results"][0].update(keys))

        def received(name, **keys):
            return self.spoiled(name, lambda vector: next(one for one in vector["steps"] if one["do"] == "complete" and one.get("queue") == "receive")["results"][0].update(keys))

        def without(name, do):
            return self.spoiled(name, lambda vector: vector["steps"].remove(next(one for one in vector["steps"] if one["do"] == do)))

        cases = {
            result("send/gather", status="ND_CANCELED"): "(status)",
            result("send/gather", context=99): "(request)",
            result("send/gather", type="Read"): "(type, opcode)",
            received("immediate/in_order", immediate=77): "immediate",
            received("receive/order", bytes=1): "bytes",
            result("send/gather", status={"either": ["ND_CANCELED", "ND_TIMEOUT"], "clause": "none"}): "ND_CANCELED or ND_TIMEOUT",
            step("write/ipv6", "memory", equals={"region": "a", "offset": 2}): "byte 3 of region",
            step("state/transitions", "modify", returns="ND_SUCCESS"): "ibv_modify_qp fails",
            without("send/gather", "complete"): "ends with what no step takes",
            without("send/gather", "receive"): "",
        }
        verdict = on_device("--device", "rnic0", "--in-part", "--patience", 2, *cases, machine=("--nic", "model"))
        self.assertEqual(verdict.returncode, 1, verdict.stdout + verdict.stderr)
        for path, words in cases.items():
            with self.subTest(words=words):
                line = next(line for line in verdict.stdout.splitlines() if str(path) in line)
                self.assertTrue(line.startswith("FAIL") and words in line, line)

    def test_no_such_device(self):
        result = on_device("--device", "mlx5_7", VECTORS / "send/gather.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("no device 'mlx5_7' of libibverbs; there are: rnic0", result.stderr)
        result = on_device(*("--device", "rnic0") * 3, VECTORS / "write/success.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("a vector has two hosts", result.stderr)
        result = on_device("--device", "rnic0", VECTORS / "frames")
        self.assertEqual(result.returncode, 2)
        self.assertIn("none of these vectors is of the grade verbs", result.stderr)
        self.assertEqual(rnic("verify", "--device", "rnic0", VECTORS / "send/gather.json").returncode, 2)


if __name__ == "__main__":
    rnic_tool.main(__doc__)
