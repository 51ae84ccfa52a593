#!/usr/bin/env python3
"""Look at the machine code of posting and polling (x86-64) for ordering instructions that have no business there.

usage: check_post_path.py PROGRAM    PROGRAM: driver_cost, which holds the whole path

Followed: the calls of the API below and every function of the driver that they call directly, but for what is only
reached when something is wrong or full (COLD). docs/driver.md (Barriers) says what may be there:

- no mfence, no lfence and no instruction with a lock prefix: neither DMA memory nor a doorbell needs one;
- sfence only where a WQE goes through the window, in front of it and behind each burst;
- an exchange with memory, which locks too, only to take one of the locks.
"""
import re
import subprocess
import sys

QP, RING = "rnic::nd2::QueuePair::", "rnic::umd::"
# Root: whether it writes to the window, the locks that it takes.
ROOTS = {
    QP + "Send(": (True, 2),
    QP + "Write(": (True, 2),
    QP + "Read(": (True, 2),
    QP + "Receive(": (False, 1),
    "rnic::nd2::SharedReceiveQueue::Receive(": (False, 1),
    "rnic::nd2::CompletionQueue::GetResults(": (False, 2),
    RING + "ReceiveQueue::complete(": (False, 1),
    RING + "SharedReceiveQueue::complete(": (False, 1),
}
COLD = ["SpinLock::wait", "post_after_decoding", "refuse_to_post", "failure_status", "posting_status", "control_status",
        "CompletionQueue::decode", "ProcessContext::look_for_events", "CompletionQueue::take_failure",
        "SendQueue::refuse_watched", "SharedReceiveQueue::decode", "[clone .cold]"]


def functions(program):
    """Name and instructions of every function."""
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    found = {}
    for block in text.split("\n\n"):
        head = re.match(r"\n*[0-9a-f]+ <(.+)>:\n", block)
        if head:
            found[head[1]] = [line.split("\t", 1)[1].strip() for line in block.splitlines()[1:] if ":\t" in line]
    return found


def reached(root, code):
    """The functions from `root` on, without the cold ones."""
    todo, seen = [root], []
    while todo:
        name = todo.pop()
        seen.append(name)
        for line in code[name]:
            target = re.search(r"(?:call|j\w+) +[0-9a-f]+ <(.+?)(\+0x[0-9a-f]+)?>$", line)
            if target and target[1] in code and "@plt" not in target[1] and target[1] not in seen + todo:
                if not any(cold in target[1] for cold in COLD):
                    todo.append(target[1])
    return seen


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    code = functions(sys.argv[1])
    wrong = []
    for prefix, (window, locks) in ROOTS.items():
        roots = [name for name in code if name.startswith(prefix) and "[clone" not in name and "::{lambda" not in name]
        if len(roots) != 1:
            wrong.append(f"{prefix}: {len(roots)} functions of this name")
            continue
        lines = [(name, line) for name in reached(roots[0], code) for line in code[name]]
        for name, line in lines:
            if re.match(r"(lock|mfence|lfence)\b", line):
                wrong.append(f"{roots[0]}: '{line}' in {name}")
        exchanges = sum(bool(re.match(r"xchg .*\(", line)) for _, line in lines)
        if exchanges != locks:
            wrong.append(f"{roots[0]}: takes {exchanges} locks, not {locks}")
        fences = sum(line.startswith("sfence") for _, line in lines)
        if fences != (2 if window else 0):
            wrong.append(f"{roots[0]}: {fences} sfence")
        print(f"{prefix[:-1]}: {len(lines)} instructions, {exchanges} locks, {fences} sfence")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
