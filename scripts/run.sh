#!/usr/bin/env bash
# Sets up, builds, and runs the main job: a file crosses from host A to host B by RDMA.
# usage: scripts/run.sh [FILE [rnic copy options]]     FILE defaults to this project's README.md
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
file=${1:-$root/README.md}
[ $# -gt 0 ] && shift
if [ ! -r "$file" ] || [ -d "$file" ]; then
  echo "run.sh: cannot read file '$file'" >&2
  exit 2
fi
file=$(realpath "$file")
"$root/scripts/setup.sh"
cd "$root"
cmake --preset release
cmake --build --preset release --target rnic
exec build/release/bin/rnic copy "$file" "$@"
