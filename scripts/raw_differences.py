#!/usr/bin/env python3
"""Random malformed requests, binds and registrations, TLPs, doorbells, pieces of WQEs and admin commands, past the driver: the RTL and the reference NIC answer alike.

Each case is a vector (docs/vectors.md) that ends in a question: a completion that may not come, a counter or a state that cannot be. `rnic verify`
runs it on either NIC, and what it says of the end is held against each other. Nothing here knows which answer is right: of a difference the page
of the host interface decides, and the case becomes a vector. A command that is wrong in several ways may be refused for any of them, so that of a
refusal only that it is one is compared; messages are never longer than their buffers, because which of two faults of one request comes first is
open as well.

Exit code: 0 no difference; 1 differences; 2 wrong use. usage: raw_differences.py RNIC [--cases N] [--seed S] [--keep FOLDER]
"""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import generate_host_interface

HOST = generate_host_interface.host_tables()
COUNTERS = """WqeErrors RxPlaceFaults RxSrqErrors TxRequests TxAcks TxNaks RxRoce XlateFaults DoorbellsRefused WindowWqes WindowFallbacks SendDoorbells
  CqDoorbells MsixMessages""".split()
NUMBERS = {
    "Multicast": [{"of": "queue_pair"}, {"of": "queue_pair", "xor": 512}, 0xFFFFFF],
    "Srq": [{"free": "shared_queue"}, 0, 255, 256],
    "Qp": [{"of": "queue_pair"}, {"free": "queue_pair"}, {"of": "queue_pair", "xor": 65536}, 0, 1, 0xFFFFFF, 0xFFFFFFFF],
    "Cq": [{"of": "initiator_queue"}, {"free": "queue"}, {"of": "receive_queue", "xor": 256}, 3, 255, 256],
    "Eq": [{"free": "event_queue"}, 0, 5, 31, 32],
    "Mw": [{"free": "key"}, {"of": "region", "name": "a"}, 0x3FFF00, 0xFFFFFF00],
    "Mr": [{"of": "region", "name": "a"}, {"free": "key"}, {"of": "region", "name": "a", "xor": 1}, 0, 0xFFFFFFFF, 0xFFFF00, 0x3FFF00],
}
# Numbers at the edges of fields.
EDGES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 15, 16, 17, 30, 31, 64, 128, 4095, 4096, 8192, 32768, 65535, 1 << 20, (1 << 31) - 1]
RECEIVE = {"host": "B", "do": "receive", "context": 50, "sge": [{"region": "b", "offset": 4096, "length": 4096}]}
REMOTE = {"region": "b", "offset": 0}
WAIT = {"host": "A", "do": "wait", "us": 300}


def fields_of(layout):
    return [(name, width) for name, width, *_ in generate_host_interface.named_fields(layout)]


# Those that take nothing away from the driver, which ends the vector with what it has.
COMMANDS = [(name, fields_of(layout)) for name, _, layout in generate_host_interface.admin_bodies(HOST)
            if name.startswith(("Create", "Modify", "Query", "Resize", "Attach", "Detach"))]
DOORBELLS = [(name, fields_of(layout)) for name, _, layout in generate_host_interface.doorbells(HOST)]
OBJECTS = {"UarSendDoorbell": "queue_pair", "UarReceiveDoorbell": "queue_pair", "UarCqDoorbell": "initiator_queue", "UarSrqDoorbell": "shared_queue"}


class Draw:
    """Cases, one after the other, of a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.choice = self.random.choice

    def edge(self, width):
        return self.choice([*EDGES, self.random.getrandbits(64)]) & ((1 << min(width, 64)) - 1)

    def sge(self):
        return [{"region": "a", "offset": 64 * i, "length": self.choice([0, 1, 8, 64, 100])} for i in range(self.choice([1, 1, 2, 3]))]

    def spoil(self, most, host="A", queue="initiator"):
        """One byte or two of a WQE: any, or one of those that say what it is."""
        known = [0, 1, 2, 7, 12, 13, 16, 24, 32, 40, 44, 46, 47]
        spots = [self.choice([self.random.randrange(most), self.choice(known)]) for _ in range(self.choice([1, 1, 2]))]
        values = [0, 1, 2, 3, 4, 8, 16, 17, 32, 64, 128, 255, self.random.randrange(256), self.random.randrange(256)]
        return {"host": host, "do": "spoil_wqe", "queue": queue, "set": [{"byte": byte, "value": self.choice(values)} for byte in spots]}

    def request(self):
        """A request of A, malformed."""
        kind = self.choice(["write", "read", "send", "send_immediate", "write_immediate", "inline", "atomic", "datagram", "fast", "invalidate"])
        step, setup, most = {"host": "A", "do": "write", "context": 1, "sge": self.sge(), "remote": REMOTE, "flags": ["DEFER"]}, {}, 64
        before = [RECEIVE]
        if kind == "read":
            step["do"] = "read"
        elif kind in ("send", "send_immediate", "datagram"):
            step["do"] = "send"
            del step["remote"]
            setup = {"type": "UD"} if kind == "datagram" else {}
            most = 96 if kind == "datagram" else 64
        elif kind == "inline":
            step.update(sge=[{"region": "a", "offset": 0, "length": self.choice([1, 8, 40, 64])}], flags=["DEFER", "INLINE"])
            setup, most = {"inline_size": 64}, 96
        elif kind == "atomic":
            step.update(do="fetch_add", add=3, sge=[{"region": "a", "offset": 0, "length": 8}], remote={"region": "b", "offset": 8})
        elif kind in ("fast", "invalidate"):
            setup = {"fast_register": True}
            step = {"host": "A", "do": "fast_register", "context": 1, "name": "f", "region": "a", "offset": 4096,
                    "length": self.choice([4096, 8192, 20000]), "flags": self.choice([["LOCAL_WRITE"], ["LOCAL_WRITE", "REMOTE_READ"], ["REMOTE_READ"]])}
            if kind == "fast":
                step["options"] = ["DEFER"]
            else:
                before += [step | {"context": 9}, {"host": "A", "do": "complete", "results": [{"type": "FastRegister", "context": 9, "status": "Success"}]}]
                step, most = {"host": "A", "do": "end_registration", "context": 1, "name": "f", "options": ["DEFER"]}, 16
        if kind.endswith("immediate"):
            step["immediate"] = 5
        return setup, [*before, step, self.spoil(most), {"host": "A", "do": "ring"}]

    def bind(self):
        """A bind or an invalidation of B that NetworkDirect would not let pass."""
        bound = self.choice([True, False])
        regions = [{"flags": ["LOCAL_WRITE"]}, *([] if bound else [{"flags": ["LOCAL_WRITE"]}, {"flags": []}, {"flags": ["LOCAL_WRITE"], "domain": "other"}])]
        setup = {"queue_pairs": 2, "regions": [{"host": "A", "name": "a", "size": 65536, "flags": ["LOCAL_WRITE"]},
                                               {"host": "B", "name": "b", "size": 65536, **self.choice(regions)}]}

        def bind(context, window, **unchecked):
            rights = self.choice([["ALLOW_READ"], ["ALLOW_WRITE"], ["ALLOW_READ", "ALLOW_WRITE"], []])
            length = self.choice([0, 1, 64, 4096, 65472, 65535, 65536, 65537, 1 << 47, (1 << 47) + 1, (1 << 64) - 1])
            return {"host": "B", "do": "bind", "qp": self.choice([1, 1, 2]), "context": context, "window": window, "region": "b",
                    "offset": self.choice([0, 0, 1, 64, 65535, 65536]), "length": length, "flags": rights, "unchecked": unchecked}

        steps = []
        if bound:
            steps += [bind(60, "w") | {"qp": 1, "offset": 0, "length": 4096},
                      {"host": "B", "do": "complete", "results": [{"type": "Bind", "context": 60, "status": "Success"}]}]
        kind = self.choice(["bind", "bind", "spoiled", "window", "invalidate"])
        if kind == "invalidate":
            return setup, [*steps, {"host": "B", "do": "invalidate", "qp": self.choice([1, 2]), "context": 61, "window": "w"}]
        last = bind(61, self.choice(["w", "v"]), **({"defer": True} if kind == "spoiled" else {}))
        if kind == "window" and steps:
            last["unchecked"]["key_of"] = "w"
        if kind != "spoiled":
            return setup, [*steps, last]
        return setup, [*steps, last, self.spoil(48, "B") | {"qp": last["qp"]}, {"host": "B", "do": "ring", "qp": last["qp"]}]

    def registration(self):
        """A fast registration of A with fields at their edges, and an access to it."""
        register = {"host": "A", "do": "fast_register", "context": 1, "name": "f", "region": "a", "offset": self.choice([0, 1, 100, 4095]),
                    "length": self.choice([1, 4096, 4097, 8192, 40000]), "options": ["DEFER"],
                    "flags": self.random.sample(["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE", "READ_SINK"], self.choice([0, 1, 2, 3]))}
        if self.choice([True, False]):
            register["base"] = register["offset"] + self.choice([0, 4096, (1 << 64) - (1 << 16), (1 << 64) - 4096, (1 << 64) - 8192])
        field = self.choice([{23: 255, 22: 255}, {24: 0, 25: 0}, {24: 255}, {25: 32}, {26: 1}, {29: 128}, {30: 1}, {40: 1}, {41: 16}, {44: 0}, {44: 1},
                             {44: 2}, {44: 255}, {45: 1}, {46: 11}, {46: 13}, {46: 30}, {46: 31}, {47: 0}, {47: 2}, {47: 8}, {47: 16}, {48: 1},
                             {1: 8}, {1: 0}, {7: 3}, {7: 4}, {}])
        spoil = [{"host": "A", "do": "spoil_wqe", "set": [{"byte": byte, "value": value} for byte, value in field.items()]}] if field else []
        access = {"host": "B", "do": self.choice(["read", "write"]), "context": 60, "qp": 2, "sge": [{"region": "b", "offset": 0, "length": self.choice([0, 1, 64])}],
                  "remote": {"region": "f", "offset": self.choice([-1, 0, register["length"] - 1, register["length"]])}}
        return {"queue_pairs": 2, "fast_register": True}, [register, *spoil, {"host": "A", "do": "ring"}, {"host": "A", "do": "wait", "us": 20}, access]

    def receive(self):
        """A Receive of B, malformed, and a message for it."""
        setup = self.choice([{}, {"type": "UD"}, {"srq": {"depth": 8}}])
        step = {"host": "B", "do": "receive", "context": 50,
                "sge": [{"region": "b", "offset": 4096 + 128 * i, "length": self.choice([64, 100])} for i in range(self.choice([1, 2, 3]))]}
        shared = "srq" in setup
        steps = [step if shared else step | {"flags": ["DEFER"]}, self.spoil(48, "B", "shared" if shared else "receive")]
        message = {"host": "A", "do": "send", "context": 1, "sge": [{"region": "a", "offset": 0, "length": self.choice([0, 8, 20])}]}
        return setup, [*steps, *([] if shared else [{"host": "B", "do": "ring"}]), {"host": "B", "do": "wait", "us": 3}, message]

    def doorbell(self):
        register, fields = self.choice(DOORBELLS)
        setup = {"srq": {"depth": 8}} if register == "UarSrqDoorbell" else self.choice([{}, {"connected": False}])
        values = {name: self.edge(width) for name, width in fields}
        if register in OBJECTS:
            of = {"of": OBJECTS[register]}
            values[fields[0][0]] = self.choice([of, of, of | {"xor": self.choice([1, 256, 1 << 23])}])
        if "arm" in values and self.choice([True, False]):
            values["consumer_index"] = 0
        ring = {"host": "A", "do": "doorbell", "register": register, "fields": values, "page": self.choice(["own", "own", "own", "kernel", "other"])}
        write = {"host": "A", "do": "write", "context": 1, "sge": self.sge(), "remote": REMOTE, "flags": self.choice([["DEFER"], []])}
        return setup, [write, {"host": "A", "do": "wait", "us": 3}, ring] if not setup else [ring]

    def push(self):
        """Pieces of a WQE in some order, of one that may be malformed."""
        length = self.choice([1, 8, 40, 64])
        write = {"host": "A", "do": "write", "context": 1, "sge": [{"region": "a", "offset": 0, "length": length}], "remote": REMOTE,
                 "flags": ["DEFER", "INLINE"]}
        pieces = [{"at": at} for at in range(0, (32 + length + 15) // 16 * 16, 8)]
        order = self.choice(["right", "any", "some", "twice", "line"])
        if order == "any":
            self.random.shuffle(pieces)
        elif order == "some":
            pieces = [piece for piece in pieces if self.random.random() < 0.8] or pieces
        elif order == "twice":
            pieces = pieces + pieces
        elif order == "line":
            pieces = [{"at": 0, "bytes": 64}, *(piece for piece in pieces if piece["at"] >= 64)]
        spoiled = [self.spoil(8)] if self.random.random() < 0.3 else []
        return {"inline_size": 64}, [write, *spoiled, {"host": "A", "do": "push_wqe", "pieces": pieces, "page": self.choice(["own", "own", "own", "other"])}]

    def admin(self):
        name, fields = self.choice(COMMANDS)
        numbers = next((numbers for kind, numbers in NUMBERS.items() if kind in name), NUMBERS["Qp"])
        values = {field: self.edge(width) for field, width in fields if self.random.random() < 0.35}
        if name == "ModifyQp":  # not to RESET or ERR: the driver would not know
            values["next_state"] = self.choice([1, 2, 3, 4, 5, 7, 9])
            values["attr_mask"] = self.choice([0, 1, 256, 512, 1024, 2048, 32768, 77312, 1216896, 56, self.random.getrandbits(21)])
        setup = self.choice([{}, {}, {"type": "UD"}, {"type": "UC"}, {"connected": False}])
        return setup, [{"host": "A", "do": "admin", "opcode": name, "number": self.choice(numbers), "fields": values, "status": "TooSmall"}]

    def tlp(self):
        """TLPs to BAR0 of any form, then a read that tells of itself or a counter. Registers that are written are those of vectors nobody uses, of the
        port, and of the completion time-out; of the others, on which the driver relies, no byte."""
        kept = [0x010, 0x088, 0x090, 0x098, 0x0A0]

        def enables(dwords):
            draw = [15, 15, 15, 1, 3, 6, 7, 8, 9, 12, 14]
            return {"first_be": self.choice([*draw, 0] if dwords == 1 else draw), **({"last_be": self.choice(draw)} if dwords > 1 else {})}

        def place():
            page = self.choice(["registers", "registers", "own", "own", "kernel", "other"])
            if page == "registers":
                return {"page": page, "at": self.choice([0x028, 0x108, 0x10C, 0x118, 0x120, 0x124, 0x5D0, 0x5D4, 0x5D8, 0x5DC, 0x5E0, 0x5E4, 0x5E8, 0x130, 0x700, 0xFF8,
                                                         0xFFC])}
            return {"page": page, "at": self.choice([0, 4, 8, 0x18, 0x20, 0x24, 0x28, 0x40, 0x7F8, 0x800, 0x808, 0x810, 0x820, 0x840, 0x8F0, 0x8FC, 0x900, 0xFF8, 0xFFC])}

        def dwords_from(at):
            return min(self.choice([1, 1, 2, 2, 2, 3, 4, 4, 5, 8, 8, 16, 16, 32]), (4096 - at) // 4)

        # What stands in the table at first is open.
        steps = [{"host": "A", "do": "tlp", "at": at, "write": "0011223344556677"} for at in (0x5D0, 0x5D8, 0x5E0, 0x5E8)]
        for _ in range(self.choice([1, 2, 4, 6])):
            where = place()
            dwords = dwords_from(where["at"])
            payload = bytes(self.choice([0, 0, 1, 255, self.random.randrange(256)]) for _ in range(4 * dwords)).hex()
            steps.append({"host": "A", "do": "tlp", **where, "write": payload, **enables(dwords), "poisoned": self.random.random() < 0.1})
            if self.random.random() < 0.2:
                steps.append({"host": "A", "do": "tlp", "page": "registers", "at": self.choice(kept), "write": "ffffffff", "first_be": 0})
        nothing_written = any(step.get("first_be") == 0 for step in steps)
        where = {"page": "registers", "at": self.choice([0x010, 0x098, 0x0A0])} if nothing_written and self.random.random() < 0.7 else place()
        dwords = dwords_from(where["at"])
        read = {"host": "A", "do": "tlp", **where, "dwords": dwords, "answer": self.choice(["a5" * 4 * dwords, "a5" * 4 * dwords, "UnsupportedRequest"]), **enables(dwords)}
        counters = [{"host": "A", "do": "counter", "name": self.choice(["HostUnsupported", "DoorbellsRefused", "SendDoorbells", "CqDoorbells"]), "equals": 99}]
        return {}, [*steps, *self.choice([[read], [read], [WAIT | {"us": 3}, *counters]])]

    def question(self, setup, steps):
        """Steps that fail, and say what is so."""
        kind = self.choice(["sent", "received", "counter", "counter", "state"] if "queue_pairs" not in setup else ["sent", "sent at B"])
        if kind == "sent at B":
            return [{"host": "B", "do": "no_completion", "for_us": 300}]
        bound = [step["window"] for step in steps if step["do"] == "bind"]
        if kind == "sent" and bound:
            access = {"host": "A", "do": self.choice(["read", "write"]), "context": 62, "qp": self.choice([1, 2]), "sge": [{"region": "a", "offset": 0, "length": 8}],
                      "remote": {"region": "b", "offset": self.choice([0, 4088, 4089, 65528]), "token": {"window": self.choice(bound)}}}
            return [WAIT, access, {"host": "A", "do": "no_completion", "for_us": 300}]
        if kind == "sent" or (kind == "received" and "srq" in setup):
            return [{"host": "A", "do": "no_completion", "for_us": 300}]
        if kind == "received":
            return [{"host": "B", "do": "no_completion", "queue": "receive", "for_us": 300}]
        host = self.choice(["A", "B"])
        if kind == "state":
            return [WAIT, {"host": host, "do": "state", "is": "SQD"}]
        return [WAIT, {"host": host, "do": "counter", "name": self.choice(COUNTERS), "equals": 99}]

    def case(self):
        setup, steps = self.choice([self.request, self.request, self.bind, self.registration, self.receive, self.doorbell, self.tlp, self.push, self.admin, self.admin])()
        return {"document": "Host interface", "clause": "any", "rule": "Both NICs answer alike.", "setup": setup, "steps": steps + self.question(setup, steps)}


def answers(rnic, nic, folder, jobs):
    """What `rnic verify` says of each case, by its number."""
    done = subprocess.run([rnic, "verify", "--nic", nic, "--jobs", str(jobs), "--failures", "", str(folder)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    told = {}
    for line in done.stdout.splitlines():
        if match := re.match(r"(?:FAIL|pass) \S*?(\d+)\.json:?(.*)", line):
            answer = re.sub(r"QPN 0x[0-9a-f]+", "QPN", match[2]).strip()
            is_command = '"admin"' in (folder / f"{match[1]}.json").read_text()
            told[match[1]] = "refused" if is_command and "is answered with success" not in answer else answer
    if done.returncode not in (0, 1) or not told:
        sys.exit(f"rnic verify --nic {nic}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rnic", help="the tool")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("RNIC_SEED", "1")), help="default: RNIC_SEED, or 1")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the cases, which else are gone")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    args = parser.parse_args()
    print(f"seed {args.seed} (replay: RNIC_SEED={args.seed})")
    with tempfile.TemporaryDirectory(prefix="rnic_raw_") as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        draw = Draw(args.seed)
        for number in range(args.cases):
            (folder / f"{number:05}.json").write_text(json.dumps(draw.case()) + "\n")
        model, rtl = (answers(args.rnic, nic, folder, args.jobs) for nic in ("model", "rtl"))
        different = [number for number in sorted(model | rtl) if model.get(number) != rtl.get(number)]
        for number in different:
            print(f"{number}:\n  reference: {model.get(number)}\n  RTL:       {rtl.get(number)}\n  {(folder / f'{number}.json').read_text().strip()}")
        print(f"{len(model)} cases, {len(set(model.values()))} different answers, {len(different)} differences")
    if len(model) != args.cases or len(rtl) != args.cases:
        sys.exit("cases are missing")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
