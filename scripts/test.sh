#!/usr/bin/env bash
# Sets up, builds, and runs every test. usage: scripts/test.sh [ctest options, such as -L unit]
# Labels: unit, rtl, formal, system, server, vectors, lint, synth; report, whose tests want Chromium, clients, whose tests run programs of
# Debian's packages, and interop, whose test runs them against Linux in QEMU: -L report, -L clients and -L interop install what they want,
# and without it they are skipped.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
case " $* " in
  *" -L report "*) "$root/scripts/setup.sh" --browser ;;
  *" -L clients "*) "$root/scripts/setup.sh" --clients ;;
  *" -L interop "*) "$root/scripts/setup.sh" --clients --interop ;;
  *) "$root/scripts/setup.sh" ;;
esac
cd "$root"
cmake --preset release -DBUILD_TESTING=ON
cmake --build --preset release
ctest --preset release -j "$(nproc)" --no-tests=error "$@"
