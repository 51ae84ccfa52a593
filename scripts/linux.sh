#!/usr/bin/env bash
# Boots Debian's Linux kernel in QEMU with the RTL on its PCI bus, and looks at it from there (docs/guest.md); then runs the Linux driver and
# Debian's programs on it (docs/kernel_driver.md), plants faults into the driver that the machine must name, and lets it talk to Soft-RoCE. Installs
# QEMU, kernel headers and what the guests are made of, and builds tool, driver and provider.
# usage: scripts/linux.sh [--kills N] [--unloads N]    guests that are killed, in each of the two tests that do so (20 and 3); how often the module is
# unloaded under traffic (10)
set -euo pipefail
kills=() unloads=()
while [ $# -gt 0 ]; do
  case $1 in
    --kills) kills=(--kills "${2:?linux.sh: --kills needs a number}") ;;
    --unloads) unloads=(--unloads "${2:?linux.sh: --unloads needs a number}") ;;
    *) echo "linux.sh: what is $1?" >&2; exit 2 ;;
  esac
  shift 2
done
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --tests --interop
cd "$root"
cmake --preset release -DBUILD_TESTING=ON
cmake --build --preset release --target rnic guest_probe rnic_ib rnic_provider
tests/guest/linux.py build/release/bin/rnic build/release/bin/guest_probe "${kills[@]}"
tests/guest/linux_driver.py build/release/bin/rnic build/release/linux --long "${kills[@]}" "${unloads[@]}"
tests/guest/linux_races.py build/release/bin/rnic build/release/linux
tests/guest/linux_planted.py build/release/bin/rnic build/release/linux
tests/guest/linux_peers.py build/release/bin/rnic build/release/linux build/release/interop_guest || [ $? = 77 ]
