#!/usr/bin/env bash
# Sets up, builds what the main job needs, and runs it: a file crosses from host A to host B by RDMA and comes back.
# usage: scripts/run.sh [FILE [rnic copy options]]     without FILE: 1 MiB over four queue pairs
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -gt 0 ]; then
  file=$1
  shift
  if [ ! -r "$file" ] || [ -d "$file" ]; then
    echo "run.sh: cannot read file '$file'" >&2
    exit 2
  fi
  file=$(realpath "$file")
else
  mkdir -p "$root/build"
  file=$root/build/one_mebibyte
  head -c 1048576 /dev/urandom > "$file"
  set -- --qps 4
fi
step() { echo "== $*"; }
step "1/4 packages"
"$root/scripts/setup.sh"
cd "$root"
# A build folder that has the tests keeps them; a new one is configured without them, which is sooner.
tests=()
[ -f build/release/build.ninja ] || tests=(-DBUILD_TESTING=OFF)
step "2/4 configure: Verilator translates the RTL to C++"
cmake --preset release "${tests[@]}"
step "3/4 compile (rnic copy only: some 2 minutes on two cores; all commands: cmake --build --preset release --target rnic)"
cmake --build --preset release --target rnic_commands rnic_copy
step "4/4 run"
build/release/bin/rnic copy "$file" "$@"
cat <<'NEXT'

Next: add --report report.html (a page about the run), --trace waves.fst (GTKWave) or --pcap wire.pcap (Wireshark) to build/release/bin/rnic copy FILE.
NEXT
