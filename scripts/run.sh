#!/usr/bin/env bash
# Sets up, builds the tool, and runs the main job: a file crosses from host A to host B by RDMA and comes back.
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
"$root/scripts/setup.sh"
cd "$root"
# A build folder that has the tests keeps them; a new one gets the tool alone, which is built much sooner.
tests=()
[ -f build/release/build.ninja ] || tests=(-DBUILD_TESTING=OFF)
cmake --preset release "${tests[@]}"
cmake --build --preset release --target rnic
build/release/bin/rnic copy "$file" "$@"
cat <<'NEXT'

Next: add --trace waves.fst (GTKWave) or --pcap wire.pcap (Wireshark) to build/release/bin/rnic copy FILE; build/release/bin/rnic verify tests/vectors runs the test vectors.
NEXT
