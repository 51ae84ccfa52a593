#!/usr/bin/env python3
"""Objects of libibverbs in a guest, without pyverbs (docs/kernel_driver.md).

usage: verbs_objects.py numbers INDEX_BITS    prints keys and QPNs, whose order nobody can foretell; exit code 1: somebody can, or one returns at once
       verbs_objects.py churn                 registers and deregisters until the device is gone
       verbs_objects.py faults                in each call one allocation of the kernel's fails after the other
       verbs_objects.py load MODULE           the same while a module is loaded, and loads it
       verbs_objects.py scattered MIB         registers so much memory of scattered pages, and says what became of it
"""
import ctypes
import mmap
import os
import sys

verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_cq", "ibv_create_qp"):
    getattr(verbs, name).restype = ctypes.c_void_p
LOCAL_WRITE, RC = 1, 2
KEYS, QPS, ASCENDING = 60, 100, 10
MOST_ALLOCATIONS = 100_000


class QpInit(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "send_cq", "recv_cq", "srq")] + [
        (name, ctypes.c_uint32) for name in ("send_wr", "recv_wr", "send_sge", "recv_sge", "inline_data", "type", "all_signaled")]


class Mr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "pd", "address")] + [("length", ctypes.c_size_t)] + [
        (name, ctypes.c_uint32) for name in ("handle", "lkey", "rkey")]


class Qp(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "qp_context", "pd", "send_cq", "recv_cq", "srq")] + [
        (name, ctypes.c_uint32) for name in ("handle", "qpn")]


def pointer(value):
    if not value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return ctypes.c_void_p(value)


def open_device():
    devices = ctypes.cast(pointer(verbs.ibv_get_device_list(None)), ctypes.POINTER(ctypes.c_void_p))
    context = pointer(verbs.ibv_open_device(pointer(devices[0])))
    return context, pointer(verbs.ibv_alloc_pd(context))


def register(pd, memory, length):
    return ctypes.cast(pointer(verbs.ibv_reg_mr(pd, memory, ctypes.c_size_t(length), LOCAL_WRITE)), ctypes.POINTER(Mr))


def create_qp(pd, cq):
    init = QpInit(send_cq=cq.value, recv_cq=cq.value, send_wr=1, recv_wr=1, send_sge=1, recv_sge=1, type=RC)
    return ctypes.cast(pointer(verbs.ibv_create_qp(pd, ctypes.byref(init))), ctypes.POINTER(Qp))


def look_at(what, indexes, tags):
    """All indexes differ; neither they nor the tags count, and no tag is 0."""
    if len(set(indexes)) != len(indexes):
        sys.exit(f"an index of {what} returns at once: {indexes}")
    for name, numbers in (("indexes", indexes), ("tags", tags)):
        counted = sum((after - before) in (0, 1) for before, after in zip(numbers, numbers[1:]))
        if counted > ASCENDING:
            sys.exit(f"{name} of {what} count: {numbers}")
    if 0 in tags:
        sys.exit(f"a tag of {what} is 0: {tags}")


def numbers(index_bits):
    context, pd = open_device()
    memory = ctypes.create_string_buffer(4096)
    keys = [register(pd, memory, 4096)[0].rkey for _ in range(KEYS)]
    look_at("keys", [key >> 8 for key in keys], [key & 0xFF for key in keys])
    cq = pointer(verbs.ibv_create_cq(context, 1, None, None, 0))
    qpns = []
    for _ in range(QPS):  # one at a time: a number that has just become free rests
        qp = create_qp(pd, cq)
        qpns.append(qp[0].qpn)
        if verbs.ibv_destroy_qp(qp) != 0:
            sys.exit("a queue pair is not destroyed")
    look_at("queue pairs", [qpn & (1 << index_bits) - 1 for qpn in qpns], [qpn >> index_bits for qpn in qpns])
    print(*keys, *qpns)


def churn():
    _, pd = open_device()
    memory = ctypes.create_string_buffer(4096)
    while verbs.ibv_dereg_mr(register(pd, memory, 4096)) == 0:
        pass


def scattered(mebibytes):
    """One small file mapped again and again: few pages, none beside the next, and a page list as long as anybody wants."""
    piece = 4 << 20
    file = os.memfd_create("scattered")
    os.ftruncate(file, piece)
    with mmap.mmap(file, piece) as once:
        for at in reversed(range(0, piece, 4096)):  # so that they do not lie in order
            once[at] = 1
    libc = ctypes.CDLL("libc.so.6", use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    whole = mebibytes << 20
    at = libc.mmap(None, ctypes.c_size_t(whole), 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))
    fixed = 0x10
    for offset in range(0, whole, piece):
        libc.mmap(ctypes.c_void_p(at + offset), ctypes.c_size_t(piece), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | fixed, file, ctypes.c_long(0))
    _, pd = open_device()
    try:
        register(pd, ctypes.c_void_p(at), whole)
        print("registered")
    except OSError as error:
        print(error.strerror)


def failing(what, call, undo, every=1):
    """Allocation 1, 1 + every and so on of the call fails, until there are no more in it. A call that succeeds nevertheless is undone."""
    failed = 0
    with open("/proc/thread-self/fail-nth", "r+b", buffering=0) as nth:
        for number in range(1, MOST_ALLOCATIONS, every):
            nth.write(str(number).encode())
            made = call()
            left = int(os.pread(nth.fileno(), 16, 0))
            nth.write(b"0")
            failed += not made
            if made:
                undo(made)
            if left:
                print(f"well: {what}, {number - 1} allocations, {failed} failures", flush=True)
                return
    sys.exit(f"{what} has no end of allocations")


def faults():
    context, pd = open_device()
    memory = ctypes.create_string_buffer(1 << 20)
    cq = pointer(verbs.ibv_create_cq(context, 1, None, None, 0))
    init = QpInit(send_cq=cq.value, recv_cq=cq.value, send_wr=64, recv_wr=64, send_sge=1, recv_sge=1, type=RC)

    def destroyed(name):
        def undo(made):
            if getattr(verbs, name)(ctypes.c_void_p(made)) != 0:
                sys.exit(f"{name} fails")
        return undo

    calls = [
        ("ibv_alloc_pd", lambda: verbs.ibv_alloc_pd(context), "ibv_dealloc_pd"),
        ("ibv_reg_mr", lambda: verbs.ibv_reg_mr(pd, memory, ctypes.c_size_t(len(memory)), LOCAL_WRITE), "ibv_dereg_mr"),
        ("ibv_create_cq", lambda: verbs.ibv_create_cq(context, 1000, None, None, 0), "ibv_destroy_cq"),
        ("ibv_create_qp", lambda: verbs.ibv_create_qp(pd, ctypes.byref(init)), "ibv_destroy_qp"),
    ]
    for name, call, end in calls:
        failing(name, call, destroyed(end))


def load(module):
    libc = ctypes.CDLL(None, use_errno=True)
    finit_module, delete_module = 313, 176  # of x86-64
    file = os.open(module, os.O_RDONLY)

    def insert():
        return libc.syscall(finit_module, file, b"", 0) == 0

    def remove(_):
        if libc.syscall(delete_module, b"rnic_ib", 0) != 0:
            sys.exit("the module does not go")

    failing("loading", insert, remove, every=7)
    if not insert():
        sys.exit("the module does not come")


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    calls = {"numbers": numbers, "churn": churn, "faults": faults, "load": load, "scattered": scattered}
    calls[name](*(int(argument) if argument.isdigit() else argument for argument in arguments))
