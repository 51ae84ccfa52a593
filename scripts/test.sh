#!/usr/bin/env bash
# Sets up, builds, and runs every test. usage: scripts/test.sh [ctest options, such as -L unit]
# Labels: unit, rtl, system, vectors, lint, synth.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh"
cd "$root"
cmake --preset release -DBUILD_TESTING=ON
cmake --build --preset release
ctest --preset release -j "$(nproc)" --no-tests=error "$@"
