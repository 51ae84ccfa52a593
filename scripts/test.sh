#!/usr/bin/env bash
# Sets up, builds, and runs every test. usage: scripts/test.sh [ctest options, such as -L unit]
# Labels: unit, rtl, formal, system, server, vectors, lint, synth; report, whose tests want Chromium, clients, whose tests run programs of
# Debian's packages, and interop, whose test runs them against Linux in QEMU: -L report, -L clients and -L interop install what they want,
# and without it they are skipped.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
step() { echo "== $*"; }
step "1/4 packages"
case " $* " in
  *" -L report "*) "$root/scripts/setup.sh" --tests --browser ;;
  *" -L clients "*) "$root/scripts/setup.sh" --tests --clients ;;
  *" -L interop "*) "$root/scripts/setup.sh" --tests --clients --interop ;;
  *) "$root/scripts/setup.sh" --tests ;;
esac
cd "$root"
step "2/4 configure: Verilator translates the RTL to C++, some 70 blocks"
cmake --preset release -DBUILD_TESTING=ON
step "3/4 compile"
cmake --build --preset release
step "4/4 test"
ctest --preset release -j "$(nproc)" --no-tests=error "$@"
