#!/usr/bin/env bash
# Boots Debian's Linux kernel in QEMU with the RTL on its PCI bus, and looks at it from there (docs/guest.md); then runs the Linux driver and
# Debian's programs on it (docs/kernel_driver.md), plants faults into the driver that the machine must name, and lets it talk to Soft-RoCE. Installs
# QEMU, kernel headers and what the guests are made of, and builds tool, driver and provider.
# usage: scripts/linux.sh [--kills N]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --interop
cd "$root"
cmake --preset release
cmake --build --preset release --target rnic guest_probe rnic_ib rnic_provider
tests/guest/linux.py build/release/bin/rnic build/release/bin/guest_probe "$@"
tests/guest/linux_driver.py build/release/bin/rnic build/release/linux --long "$@"
tests/guest/linux_planted.py build/release/bin/rnic build/release/linux
tests/guest/linux_peers.py build/release/bin/rnic build/release/linux build/release/interop_guest || [ $? = 77 ]
