#!/usr/bin/env bash
# Runs shellcheck on every shell script of the checkout. Exit code: 0 clean, 1 not, 77 shellcheck is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v shellcheck >/dev/null; then
  echo "check_shell.sh: shellcheck is missing (Debian's package shellcheck; scripts/setup.sh installs it)" >&2
  exit 77
fi
grep -rlE --exclude-dir=build --exclude-dir=.git --null '^#!.*(bash|/sh)( |$)' .ci cmake driver scripts testbench tests | xargs -0 shellcheck
