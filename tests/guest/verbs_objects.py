#!/usr/bin/env python3
"""Objects of libibverbs in a guest, without pyverbs (docs/kernel_driver.md).

usage: verbs_objects.py churn     registers and deregisters until the device is gone
"""
import ctypes
import os
import sys

verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr"):
    getattr(verbs, name).restype = ctypes.c_void_p
LOCAL_WRITE = 1


class Mr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "pd", "address")] + [("length", ctypes.c_size_t)] + [
        (name, ctypes.c_uint32) for name in ("handle", "lkey", "rkey")]


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


def churn():
    _, pd = open_device()
    memory = ctypes.create_string_buffer(4096)
    while verbs.ibv_dereg_mr(register(pd, memory, 4096)) == 0:
        pass


if __name__ == "__main__":
    arguments = sys.argv[1:]
    {"churn": churn}[arguments[0]](*map(int, arguments[1:]))
