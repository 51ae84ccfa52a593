#!/usr/bin/env bash
# What takes longer than CI has (docs/nightly.md): seeded runs in drawn worlds, mutants, proofs, sanitizers.
# usage: scripts/nightly.sh [HOURS, 8]       results go to build/nightly, or to $RNIC_NIGHTLY
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
hours=${1:-8}
results=${RNIC_NIGHTLY:-$root/build/nightly}
cd "$root"
scripts/setup.sh --tests --interop
cmake --preset release -DBUILD_TESTING=ON
cmake --build --preset release
code=0
scripts/nightly.py run --results "$results" --hours "$hours" || code=$?
scripts/nightly.py trend --results "$results"
exit "$code"
