#!/usr/bin/env bash
# Boots Debian's Linux kernel in QEMU with the RTL on its PCI bus, and looks at it from there (docs/guest.md); then runs the Linux driver and
# Debian's programs on it (docs/kernel_driver.md). Installs QEMU, kernel headers and what the guest is made of, and builds tool, driver and provider.
# usage: scripts/linux.sh [--kills N]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --interop
cd "$root"
cmake --preset release
cmake --build --preset release --target rnic guest_probe rnic_ib rnic_provider
tests/guest/linux.py build/release/bin/rnic build/release/bin/guest_probe "$@"
exec tests/guest/linux_driver.py build/release/bin/rnic build/release/linux --long
