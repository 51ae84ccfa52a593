#!/usr/bin/env bash
# Sets up, builds, and runs every test. usage: scripts/test.sh [ctest options, such as -L unit]
# Labels: unit, rtl, system, server, vectors, lint, synth; report, whose tests want Chromium: -L report installs it, and without it they are skipped.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
case " $* " in
  *" -L report "*) "$root/scripts/setup.sh" --browser ;;
  *) "$root/scripts/setup.sh" ;;
esac
cd "$root"
cmake --preset release -DBUILD_TESTING=ON
cmake --build --preset release
ctest --preset release -j "$(nproc)" --no-tests=error "$@"
