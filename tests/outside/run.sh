#!/usr/bin/env bash
# Another project adds this one and Verilates a NIC with rnic_nic (docs/bring_your_own_nic.md).
# usage: tests/outside/run.sh FOLDER [--build]     FOLDER: for its build, made anew. --build: compiles it too, and runs it (a minute of processor time)
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
folder=${1:?run.sh: which folder?}
rm -rf "$folder"
cmake -S "$source" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRNIC_SOURCE="$source/../.." >"$folder.log" || { cat "$folder.log"; exit 1; }
[ -f "$folder/own_nic_rnic_top/Vrnic_top.h" ] || { echo "run.sh: rnic_nic has not Verilated the NIC"; exit 1; }
[ "${2:-}" = --build ] || exit 0
cmake --build "$folder" --target own_test
"$folder/own_test"
