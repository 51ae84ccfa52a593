#!/usr/bin/env bash
# Boots Debian's Linux kernel in QEMU with the RTL on its PCI bus, and looks at it from there (docs/guest.md). Installs QEMU and what the
# guest is made of, and builds the tool.
# usage: scripts/linux.sh [--kills N]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --interop
cd "$root"
cmake --preset release
cmake --build --preset release --target rnic guest_probe
exec tests/guest/linux.py build/release/bin/rnic build/release/bin/guest_probe "$@"
