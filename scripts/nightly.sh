#!/usr/bin/env bash
# What takes longer than CI has: mutants, soak and fuzz in drawn worlds, vectors in drawn worlds, faults at
# any TLP of PCI Express, malicious clients of the kernel driver, sanitizers.
# usage: scripts/nightly.sh [first seed, 1] [worlds, 20]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
first=${1:-1}
worlds=${2:-20}
cd "$root"
scripts/setup.sh
cmake --preset release -DBUILD_TESTING=ON
cmake --build --preset release
rnic=build/release/bin/rnic
failed=()
try() {
  echo "== $*"
  "$@" || failed+=("$*")
}
for ((world = first; world < first + worlds; ++world)); do
  try $rnic verify --world "$world" tests/vectors
  try $rnic soak --world "$world" --seed "$world" --cycles 200000
  try $rnic soak --world "$world" --seed "$world" --cycles 50000 --no-faults
  try $rnic soak --world "$world" --seed "$world" --cycles 20000 --check-rest
  try $rnic fuzz --world "$world" --seed "$world" --frames 50000 --corpus tests/fuzz_corpus
done
for ((seed = first; seed < first + worlds; ++seed)); do
  try env RNIC_SEED="$seed" RNIC_SWEEP=200 build/release/bin/test_system_pcie_sweep
done
for ((seed = first; seed < first + worlds; ++seed)); do
  try env RNIC_SEED="$seed" RNIC_CALLS=1000000 build/release/bin/test_driver "whatever a client asks for*"
done
for ((seed = first; seed < first + worlds; ++seed)); do
  try env RNIC_SEED="$seed" RNIC_NIC=model RNIC_CONNECTIONS=10000 build/release/bin/test_system_many_connections
done
try env RNIC_SEED="$first" RNIC_CONNECTIONS=10000 build/release/bin/test_system_many_connections
try scripts/mutate.sh
try scripts/mutate.sh --vectors
for sanitizer in asan tsan; do
  try cmake --preset "$sanitizer" -DBUILD_TESTING=ON
  try cmake --build --preset "$sanitizer"
  try ctest --preset "$sanitizer" -j "$(nproc)"
done
try env RNIC_TOOL="$PWD/$rnic" build/tsan/bin/test_server
printf 'failed: %s\n' "${failed[@]:-nothing}"
((${#failed[@]} == 0))
