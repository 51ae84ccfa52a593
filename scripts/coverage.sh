#!/usr/bin/env bash
# What the tests reach of the RTL, and which cover points (docs/coverage.md): builds the preset coverage, runs tests, prints and judges both.
# usage: scripts/coverage.sh [--all] [--again]
#   --all    every test that simulates the RTL; otherwise those of its blocks, the vectors, and what of the system tests is short
#   --again  adds to what an earlier run has reached; otherwise it begins anew
# Results are in build/coverage: hits/, code.json, points.json, points.html
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
all=no again=no
for option in "$@"; do
  case $option in
    --all) all=yes ;;
    --again) again=yes ;;
    *) sed -n '3,5s/^# //p' "$0" >&2; exit 2 ;;
  esac
done
jobs=$(nproc)
export RNIC_COVERAGE=$root/build/coverage/hits
tests='^(rtl/.*|vectors/.*|vectors_on_(rtl,model|model,rtl)|raw_differences|system/(compare|context_pairs|device_reset|extremes|flow_control|keys|memory_operations|multicast|operations|packets_by_state|pcie_sweep|protection|qp_counters|queue_pair_life|recovery|requests_by_state|srq|unreliable))$'
[[ $all == no ]] || tests='^(rtl|vectors|raw_differences|system|server)'
# They are about what the tool itself counts, and about files.
without='^(vectors_by_schema|system/coverage)$'
scripts/setup.sh --tests
cmake --preset coverage -DBUILD_TESTING=ON
cmake --build --preset coverage
[[ $again == yes ]] || rm -rf "$RNIC_COVERAGE"
mkdir -p "$RNIC_COVERAGE"
code=0
ctest --preset coverage -j "$jobs" --no-tests=error -R "$tests" -E "$without" || code=1
# A pair of clients comes together with one seed, another with the next.
for seed in 2 3 6; do
  RNIC_SEED=$seed build/coverage/bin/test_system_context_pairs || code=1
done
build/coverage/bin/rnic soak --cycles 60000 --seed 1 || code=1
build/coverage/bin/rnic fuzz --nic model --frames 50000 --seed 7 || code=1
build/coverage/bin/rnic compare --nic model,model --operations 30000 --seed 5 || code=1
build/coverage/bin/rnic fuzz --frames 3000 --seed 1 --corpus tests/fuzz_corpus || code=1
find build/coverage -name '*.points' -not -path '*/hits/*' -exec cp -t "$RNIC_COVERAGE" {} +
scripts/coverage.py "$RNIC_COVERAGE" --json build/coverage/code.json || code=1
build/coverage/bin/rnic coverage "$RNIC_COVERAGE" --closed tests/coverage/closed.txt --json build/coverage/points.json --html build/coverage/points.html || code=1
exit "$code"
