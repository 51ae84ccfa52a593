#!/usr/bin/env bash
# Builds the kernel module rnic_ib.ko (docs/kernel_driver.md) against Debian's kernel headers, in a folder of its own.
# usage: build.sh FOLDER [VERSION]     writes FOLDER/rnic_ib.ko and FOLDER/version. VERSION: of the kernel, such as 6.1.0-56-amd64 (without it: the
# newest whose headers are installed). RNIC_KERNEL_HEADERS=FOLDER: where linux-headers-VERSION is (/usr/src). RNIC_KERNEL_CHECK=1: with sparse.
# Exit code: 77 headers are missing.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
place=${RNIC_KERNEL_HEADERS:-/usr/src}
version=${2:-$({ find "$place" -maxdepth 1 -name 'linux-headers-*-amd64' 2>/dev/null || true; } | sed 's/.*linux-headers-//' | sort -V | tail -n 1)}
headers=$place/linux-headers-$version
if [ -z "$version" ] || [ ! -f "$headers/Makefile" ]; then
  echo "rnic_ib.ko is not built: kernel headers are missing in $place (Debian's package linux-headers-${version:-amd64}; scripts/setup.sh --interop installs it)" >&2
  exit 77
fi
changed=
for file in Kbuild "$source"/*.c "$source"/*.h; do
  file=$(basename "$file")
  cmp -s "$source/$file" "$folder/$file" && continue
  cp "$source/$file" "$folder/$file"
  changed=1
done
if [ -z "$changed${RNIC_KERNEL_CHECK:-}" ] && [ -f "$folder/rnic_ib.ko" ] && [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ]; then exit 0; fi
rm -f "$folder/version"
check=()
[ -z "${RNIC_KERNEL_CHECK:-}" ] || check=(C=2 W=1)
make --no-print-directory -s -C "$headers" M="$folder" "${check[@]}" modules 2> >(grep -v 'Skipping BTF generation' >&2)
echo "$version" >"$folder/version"
