#!/usr/bin/env python3
"""What a program finds that was linked with libibverbs 1.0: no device, and refusals (docs/verbs.md, Limits).

usage: check_old_programs.py LIBRARY

Exit code: 0 all is well, 1 something is not, and is printed.
"""
import ctypes
import errno
import sys

NULL = ("ibv_open_device", "ibv_alloc_pd", "ibv_create_cq", "ibv_create_qp", "ibv_create_srq", "ibv_create_ah", "ibv_reg_mr", "ibv_get_device_name")
REFUSED = ("ibv_close_device", "ibv_query_device", "ibv_query_port", "ibv_query_gid", "ibv_dealloc_pd", "ibv_dereg_mr", "ibv_modify_qp",
           "ibv_query_qp", "ibv_destroy_qp", "ibv_resize_cq", "ibv_attach_mcast", "ibv_get_async_event")


def main():
    library = ctypes.CDLL(sys.argv[1], use_errno=True)
    find = ctypes.CDLL(None).dlvsym
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    wrong = []

    def old(name, result):
        address = find(library._handle, name.encode(), b"IBVERBS_1.0")
        if address is None:
            sys.exit(f"{name}@IBVERBS_1.0 is not there")
        return ctypes.CFUNCTYPE(result, ctypes.c_void_p, use_errno=True)(address)

    count = ctypes.c_int(7)
    devices = old("ibv_get_device_list", ctypes.POINTER(ctypes.c_void_p))(ctypes.addressof(count))
    if not devices or devices[0] is not None or count.value != 0:
        wrong.append(f"the list is not an empty one: {count.value} devices")
    old("ibv_free_device_list", None)(ctypes.cast(devices, ctypes.c_void_p))
    for name in NULL:
        ctypes.set_errno(0)
        if old(name, ctypes.c_void_p)(None) is not None or ctypes.get_errno() != errno.EOPNOTSUPP:
            wrong.append(f"{name} does not refuse with EOPNOTSUPP")
    for name in REFUSED:
        ctypes.set_errno(0)
        if old(name, ctypes.c_int)(None) != errno.EOPNOTSUPP or ctypes.get_errno() != errno.EOPNOTSUPP:
            wrong.append(f"{name} does not refuse with EOPNOTSUPP")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
