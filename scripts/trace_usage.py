#!/usr/bin/env python3
"""Says from an FST trace which blocks are busy and who waits for whom.

Prints for each register `state_q` the share of its states, and for each stream (x_valid_o or x_valid_i with its x_ready) the share of cycles in
which an item passes, waits (valid without ready), or nothing is there. Signals of scopes that never change are left out.

Usage: trace_usage.py [--scope TEXT] [--from NS] [--to NS] FILE.fst
Needs fst2vcd (GTKWave).
"""
import argparse
import collections
import sys

import fst


def read(path, scope, first, last):
    """Signals of interest by their full name, and their values at every rising edge of the clock, through a callback per edge."""
    process, signals = fst.open_trace(path)
    names, values, clock = {}, {}, None
    for full, code, bits in signals:
        name = full.rpartition(".")[2]
        if name == "clk_i" and clock is None:
            clock = code
        wanted = name == "state_q" or "valid" in name or "ready" in name
        if wanted and scope in full and bits <= 8:
            names.setdefault(code, []).append(full)
    time, edges, counts = 0, 0, {code: collections.Counter() for code in names}
    pairs = handshakes(names)
    streams = {pair: collections.Counter() for pair in pairs}
    rising = False

    def sample():
        for code, counter in counts.items():
            counter[values.get(code, "x")] += 1
        for (valid, ready, _), counter in streams.items():
            if values.get(valid) != "1":
                counter["idle"] += 1
            else:
                counter["moves" if values.get(ready) == "1" else "waits"] += 1

    for line in process.stdout:
        if line[0] == "#":
            # What was set at an edge shows after it: the values before the edge are those that the edge sees.
            time = int(line[1:])
        elif line[0] in "01xz":
            code = line[1:].strip()
            if code == clock and line[0] == "1":
                rising = True
                if first <= time / 1000 <= last:
                    sample()
                    edges += 1
            values[code] = line[0]
        elif line[0] == "b":
            value, code = line[1:].split()
            values[code] = value
        if time / 1000 > last:
            process.kill()
            break
    if not rising:
        sys.exit(f"{path}: no clock clk_i in it")
    return names, counts, streams, edges


def handshakes(names):
    """(code of valid, code of ready, name) of each stream."""
    by_name = {full: code for code, fulls in names.items() for full in fulls}
    pairs, seen = [], set()
    for full, code in by_name.items():
        for ending, other in (("_valid_o", "_ready_i"), ("_valid_i", "_ready_o")):
            ready = by_name.get(full[: -len(ending)] + other) if full.endswith(ending) else None
            if ready is not None and (code, ready) not in seen:
                seen.add((code, ready))
                pairs.append((code, ready, full[: -len(ending)]))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scope", default="", help="only signals whose full name has this text in it")
    parser.add_argument("--from", dest="first", type=float, default=0, help="begin, nanoseconds of simulated time")
    parser.add_argument("--to", dest="last", type=float, default=float("inf"), help="end")
    parser.add_argument("file")
    options = parser.parse_args()
    names, counts, streams, edges = read(options.file, options.scope, options.first, options.last)
    print(f"{edges} cycles\n\nstates, per cent of the cycles")
    rows = []
    for code, counter in counts.items():
        full = next((name for name in names[code] if name.endswith("state_q")), None)
        if full and len(counter) > 1:
            idle = counter.most_common(1)[0]
            shares = " ".join(f"{int(state, 2) if state.strip('01') == '' else state}:{100 * n / edges:.1f}" for state, n in sorted(counter.items()))
            rows.append((edges - counter.get("0", counter.get("000", idle[1])), full, shares))
    for _, full, shares in sorted(rows, reverse=True):
        print(f"  {full:<70} {shares}")
    print("\nstreams, per cent of the cycles: an item moves, waits")
    for (_, _, full), counter in sorted(streams.items(), key=lambda item: -item[1]["waits"]):
        if counter["moves"]:
            print(f"  {full:<80} {100 * counter['moves'] / edges:6.1f} {100 * counter['waits'] / edges:6.1f}")


if __name__ == "__main__":
    main()
