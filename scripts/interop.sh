#!/usr/bin/env bash
# Runs programs of Debian's packages between Linux's Soft-RoCE, in a virtual machine, and the NIC (docs/interop.md). Installs QEMU and what
# the guest is made of, builds the tool and the guest, and says what each side has sent.
# usage: scripts/interop.sh [--keep FOLDER]    FOLDER: for the captures and logs
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --tests --clients --interop
cd "$root"
cmake --preset release
cmake --build --preset release --target rnic
exec tests/interop/interop.py build/release/bin/rnic build/release/interop_guest "$@"
