#!/usr/bin/env bash
# Runs the Linux driver in guests whose kernel finds its own faults (docs/kernel_driver.md): KASAN, lockdep and allocations that fail in one, KCSAN in the other.
# The kernels are built once (tests/guest/kernel/build.sh).
# usage: scripts/kernel_checks.sh BUILD [KIND...]     BUILD: where rnic and the driver are built, such as build/release. KIND: kasan, kcsan (both)
# Exit code: 0 all is well, 77 something is missing, and is named; else something is not well.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:?kernel_checks.sh: which build?}" && pwd)
shift
[ $# -gt 0 ] || set -- kasan kcsan
[ -f "$build/linux/librnic-rdmav34.so" ] || { echo "the provider is missing: build the target rnic_provider (docs/kernel_driver.md)"; exit 77; }
for kind in "$@"; do
  built=$("$root/tests/guest/kernel/build.sh" "$kind")
  version=${built%% *} place=${built#* }
  folder=$build/linux-$kind
  RNIC_KERNEL_HEADERS=$place "$root/driver/linux/build.sh" "$folder" "$version"
  cp "$build/linux/librnic-rdmav34.so" "$folder/"
  driver=("$root/tests/guest/linux_driver.py" "$build/bin/rnic" "$folder")
  "${driver[@]}"
  "${driver[@]}" --only unload
  [ "$kind" != kasan ] || "${driver[@]}" --only faults --nic model
  RNIC_KERNEL_HEADERS=$place "$root/tests/guest/linux_races.py" "$build/bin/rnic" "$folder"
done
