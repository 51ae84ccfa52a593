#!/usr/bin/env bash
# Instructions and allocations of the driver's posts and polls, exact. usage: scripts/driver_cost.sh [--json FILE]
# What is counted, and how the device's own work is kept out: scripts/driver_cost.py.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --tests
build=$root/build/driver_cost
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRNIC_DRIVER_ONLY=ON >/dev/null
ninja -C "$build" driver_cost >/dev/null
exec "$root/scripts/driver_cost.py" "$build/bin/driver_cost" "$@"
