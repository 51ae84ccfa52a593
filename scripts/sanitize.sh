#!/usr/bin/env bash
# Builds with a sanitizer and runs tests under it; what it finds ends a test with the place.
# usage: scripts/sanitize.sh address [--all] | thread | both [--all]
#   address  AddressSanitizer, leaks too, and UBSan: what connects, registers and waits: connection manager, driver, libibverbs, librdmacm,
#            NetworkDirect, NDK, names of Windows, in lockstep and in processes. --all: every test but those of formal, interop, lint and synth
#   thread   ThreadSanitizer: what uses threads, and the process's side of a machine, whose tool comes from build/release
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
usage() { sed -n '3s/^# //p' "$0" >&2; exit 2; }
which=${1:-}
all=${2:-}
[[ $which =~ ^(address|thread|both)$ && $all =~ ^(--all)?$ && $# -le 2 && ! ($which == thread && -n $all) ]] || usage
jobs=$(nproc)
scripts/setup.sh --tests

address() {
  if [[ $all == --all ]]; then
    cmake --preset asan -DBUILD_TESTING=ON -DRNIC_MODELS=
    cmake --build --preset asan
    ctest --preset asan -j "$jobs" --no-tests=error -LE 'formal|interop|lint|synth'
    return
  fi
  # Of the Verilated models those alone that the tool has.
  cmake --preset asan -DBUILD_TESTING=ON -DRNIC_MODELS='^(rnic_top_model|rnic_verify)$'
  cmake --build build/asan --target rnic test_cm test_driver test_driver_memory test_driver_threads test_examples test_lockstep test_nd2_programs test_rdmacm \
    test_system_connections test_system_many_connections test_system_nd2_connections test_system_nd2_programs test_system_ndk \
    test_system_ndk_connections test_system_ndk_dispatch_level test_system_ndk_failures test_system_ndk_objects test_verbs test_win32 win32_wide_program
  ctest --preset asan -j "$jobs" --no-tests=error -R \
    '^(cm/logic|driver/(logic|out_of_memory|threads)|nd2/.*|server/rdmacm|system/(connections|many_connections.*|nd2_.*|ndk.*)|verbs/logic|win32/.*)$'
}

thread() {
  cmake --preset release -DBUILD_TESTING=ON
  cmake --build --preset release --target rnic
  cmake --preset tsan -DBUILD_TESTING=ON
  cmake --build --preset tsan
  export RNIC_TOOL=$root/build/release/bin/rnic TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
  ctest --preset tsan -j "$jobs" --no-tests=error
  build/tsan/bin/test_server
  build/tsan/bin/test_nd2_programs
  "$RNIC_TOOL" exec --hosts 2 -- build/tsan/bin/test_rdmacm
}

case $which in
  address) address ;;
  thread) thread ;;
  both) address && thread ;;
esac
