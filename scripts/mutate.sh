#!/bin/sh
# Takes checks out of the RTL, one at a time, and runs the unit tests that should notice. See scripts/mutate.py --help.
exec python3 "$(dirname "$0")/mutate.py" "$@"
