#!/usr/bin/env python3
"""Every counter of docs/host_interface.md has a vector that makes it count; one of trouble (testbench/nic_counters.cpp) has
one that also looks that no other did (`no_other`). What no vector can bring about is counted by the test that is named here.

usage: check_counters.py
"""
import json
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What wants more than two hosts and a wire can do in a vector.
ELSEWHERE = {
    "RxOverflow": ("tests/rtl/test_rx_front.cpp", "kRxOverflow"),
    "LoopLost": ("tests/rtl/test_port_loop.cpp", "lost_o"),
    "RxNoRoom": ("tests/rtl/test_rx_engine.cpp", "kRxNoRoom"),
    "TlbPrefetches": ("tests/system/test_memory_operations.cpp", "kTlbPrefetches"),
}


def main():
    names = [name for name, _ in tomllib.loads((ROOT / "rtl/host_interface/counters.toml").read_text())["counters"][0]["names"]]
    trouble = re.findall(r"C::k(\w+)", (ROOT / "testbench/nic_counters.cpp").read_text())
    counted, only = set(), set()
    for file in (ROOT / "tests/vectors").glob("*/*.json"):
        vector = json.loads(file.read_text())
        for step in vector.get("steps", []):
            if step.get("do") == "counter" and "qp" not in step and max(step.get("equals", 0), step.get("at_least", 0)) > 0:
                counted.add(step["name"])
                if step.get("no_other"):
                    only |= {other["name"] for other in vector["steps"] if other.get("do") == "counter" and other["host"] == step["host"]
                             and max(other.get("equals", 0), other.get("at_least", 0)) > 0}
    problems = [f"{name}: no vector makes it count" for name in names if name not in counted and name not in ELSEWHERE]
    problems += [f"{name}: no vector looks that nothing else counts (no_other)" for name in trouble if name not in only and name not in ELSEWHERE]
    problems += [f"{name}: not in {file}" for name, (file, text) in ELSEWHERE.items() if text not in (ROOT / file).read_text()]
    problems += [f"{name}: a vector makes it count" for name in ELSEWHERE if name in counted]
    print("\n".join(problems) or f"{len(names)} counters count, {len(trouble)} of them alone")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
