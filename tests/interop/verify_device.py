#!/usr/bin/env python3
"""Runs the vectors of the grade verbs on Linux's Soft-RoCE (rdma_rxe), in the guest of interop.py: `rnic verify --device rxe0` there.

usage: verify_device.py RNIC GUEST VECTORS [FOLDER...] [--known FILE] [--keep FILE]

GUEST is the folder that build_guest.sh fills. The tool, the libraries that it needs and the vectors are put behind the guest's files. Each FOLDER of
VECTORS (all of them) is a run of its own. What fails must be what FILE says (soft_roce_vectors.toml, where each difference is judged), no more and
no less. Exit code: 0 so it is, 1 it is not, 77 something is missing that is needed.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import interop

PATIENCE = 1500  # seconds, of a folder: a time-out of each vector that waits for what does not come, in an emulated processor
# In the guest: longer for what must come, and for what must not, than where a processor is not emulated.
DEVICE = "rnic verify --device rxe0 --patience 3 --settle 60 --in-part"


def libraries_of(program):
    return re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout)


def guest_with(rnic, vectors, left_out, guest, folder):
    """The guest's files, and behind them the tool and the vectors: the kernel unpacks one archive after the other."""
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    program = rnic.parent.parent / "libexec/rnic/rnic-check"
    (root / "libexec/rnic").mkdir(parents=True)
    shutil.copy(rnic, root / "bin/rnic")
    shutil.copy(program, root / "libexec/rnic")
    for library in libraries_of(program):
        to = root / library.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, to)
    shutil.copytree(vectors, root / "vectors")
    for name in left_out:
        (root / f"vectors/{name}.json").unlink()
    names = b"\0".join(str(path.relative_to(root)).encode() for path in sorted(root.rglob("*")))
    archive = subprocess.run(["cpio", "--quiet", "--null", "-o", "-H", "newc"], cwd=root, input=names, stdout=subprocess.PIPE, check=True).stdout
    more = subprocess.run(["gzip", "-1"], input=archive, stdout=subprocess.PIPE, check=True).stdout
    first = (guest / "initramfs.gz").read_bytes()
    made = folder / "guest_files"
    made.mkdir()
    (made / "initramfs.gz").write_bytes(first + b"\0" * (-len(first) % 4) + more)
    os.symlink(guest / "vmlinuz", made / "vmlinuz")
    shutil.rmtree(root)
    return made


def run_folders(guest, folder, names):
    """The lines of the vectors."""
    lines, linux = [], None
    try:
        for name in names:
            linux = linux or interop.boot(guest, folder)
            try:
                linux.start(f"{DEVICE} /vectors/{name}", 0, PATIENCE)
                output, code = linux.wait_for(f"=== {linux.number} exit", PATIENCE + 60)
            except interop.Failure as failure:
                log = (folder / "guest.log").read_text(errors="replace")[-4000:]
                lines.append(f"FAIL /vectors/{name}: the guest does not come back: {failure}\n{log}")
                linux.end()
                linux = None
                continue
            found = [line for line in output.splitlines() if re.match(r"(pass|part|FAIL|skip) /vectors/", line)]
            lines += found
            if code not in ("0", "1") and "none of these vectors" not in output:
                lines.append(f"FAIL /vectors/{name}: ends with {code}: {output.splitlines()[-1:]}")
            print("\n".join(found), flush=True)
    finally:
        if linux is not None:
            linux.end()
    return lines


def read_rows(known):
    """The differences that are judged, (vectors, what the tool says of them), and the vectors that end the guest's kernel, which it does not get."""
    table = tomllib.loads(known.read_text()) if known else {}
    return [(set(row["vectors"]), re.compile(row["says"])) for row in table.get("difference", [])], [name for row in table.get("ends_the_kernel", []) for name in row["vectors"]]


def unjudged(name, message, rows):
    """The parts of what the tool says of a vector that no row has."""
    return [part for part in message.split(" | ") if not any(name in vectors and says.search(part) for vectors, says in rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rnic", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("guest", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("vectors", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--known", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="file for the lines of all vectors")
    arguments = parser.parse_args()
    if lacking := interop.missing(arguments.guest):
        print(f"skipped: there is {', '.join(lacking)}; scripts/interop.sh brings what is missing")
        sys.exit(77)
    rows, left_out = read_rows(arguments.known)
    folders = arguments.folders or sorted(path.name for path in arguments.vectors.iterdir() if path.is_dir())
    with tempfile.TemporaryDirectory(prefix="rnic_verify_device_") as temporary:
        folder = pathlib.Path(temporary)
        guest = guest_with(arguments.rnic, arguments.vectors, left_out, arguments.guest, folder)
        lines = run_folders(guest, folder, folders)
    if arguments.keep:
        arguments.keep.write_text("\n".join(lines) + "\n")
    seen = {match[2]: (match[1], match[3]) for line in lines if (match := re.match(r"(\w+) /vectors/(.*?)(?:\.json)?(?:: (.*))?$", line))}
    counts = {verdict: sum(one == verdict for one, _ in seen.values()) for verdict in ("pass", "part", "FAIL", "skip")}
    wrong = [f"not judged: {name}: {part}" for name, (verdict, message) in seen.items() if verdict == "FAIL" for part in unjudged(name, message, rows)]
    wrong += [f"judged as a difference, and there is none: {name} ({says.pattern})" for vectors, says in rows for name in sorted(vectors & set(seen))
              if seen[name][0] != "FAIL" or not any(says.search(part) for part in seen[name][1].split(" | "))]
    print("\n".join(wrong))
    print(f"{counts['pass']} passed, {counts['part']} as far as a device shows, {counts['FAIL']} otherwise, {counts['skip']} skipped; {len(wrong)} not as judged")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
