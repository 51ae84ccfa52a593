#!/usr/bin/env python3
"""Checks what the layers of the driver know of each other: include lines, transitively for headers of the driver;
and that the reference NIC and the checker of the wire know nothing but themselves.

usage: check_layers.py

umd and what they share know nothing of kmd, nor do the faces (nd2, verbs) of it and of each other; ndk, the face for kernel code, knows kmd and umd; kmd knows nothing of umd and the faces;
cm, the connection manager, knows none of them, and only kmd knows it; gsi, the kernel driver's thread that has QP1, ethernet, its frames that are not RoCEv2, and ip, its IP stack on those, know kmd and umd; remote, the way to a kernel driver in another process, knows none of
them, and of them only verbs and nd2 know it; win32, names of Windows on Linux, knows none of them, and of them only nd2 knows it, and ndk its types and status codes. Exit code: 0 all is
well, 1 something is not, and is printed.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Layer: those that it must not know.
FACES = ("nd2", "verbs", "rdmacm", "ndk")
OWN = ("gsi", "ethernet", "ip")  # clients of the kernel's own
LAYERS = ("kmd", "cm", *OWN, "umd", "remote", "kernel_calls", *FACES)
FORBIDDEN = {"umd": ("kmd", "cm", *OWN, "remote", *FACES), "nd2": ("kmd", "cm", *OWN, "verbs", "rdmacm", "ndk"), "verbs": ("kmd", "cm", *OWN, "nd2", "rdmacm", "ndk"), "rdmacm": ("kmd", "cm", *OWN, "umd", "remote", "nd2", "ndk"), "ndk": (*OWN, "remote", "nd2", "verbs", "rdmacm"), "kmd": ("umd", *OWN, "remote", *FACES),
             "remote": ("kmd", "cm", *OWN, "umd", *FACES), "kernel_calls": ("kmd", "cm", *OWN, "umd", "remote", *FACES),
             "cm": ("kmd", *OWN, "umd", "remote", "kernel_calls", *FACES), **{own: ("remote", *FACES) for own in OWN}, "win32": LAYERS, "": ("kmd", "cm", *OWN, "umd", "remote", *FACES)}
# Names alone, without the functions.
WIN32_NAMES = ("driver/win32/types.h", "driver/win32/ntstatus.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+"(driver/[^"]+)"', re.MULTILINE)


def reached(path, seen):
    """Every header of the driver that `path` includes, with the way there."""
    for name in INCLUDE.findall((ROOT / path).read_text()):
        if name not in seen:
            seen[name] = path
            reached(name, seen)
    return seen


def main():
    wrong = []
    for path in sorted((ROOT / "driver").rglob("*.[ch]pp")):
        layer = path.parent.name if path.parent.name != "driver" else ""
        without_win32 = () if layer in ("nd2", "win32") else ("win32",)
        known = WIN32_NAMES if layer == "ndk" else ()
        for name, of in reached(str(path.relative_to(ROOT)), {}).items():
            if name not in known and name.split("/")[1] in (*FORBIDDEN.get(layer, ()), *without_win32):
                wrong.append(f"{path.relative_to(ROOT)}: includes {name}" + ("" if of == str(path.relative_to(ROOT)) else f" by way of {of}"))
    for alone in ("model/reference", "testbench/wire_check"):
        for path in sorted((ROOT / alone).rglob("*.[ch]pp")):
            for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
                if not name.startswith(alone + "/"):
                    wrong.append(f"{path.relative_to(ROOT)}: includes {name}")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
