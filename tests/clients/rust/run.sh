#!/usr/bin/env bash
# Builds the Rust example and runs its two ends on a machine of two hosts.
# usage: run.sh RNIC FOLDER     FOLDER: where it is built. Exit code 77: there is no Rust that can build it, or no crates.
set -euo pipefail
rnic=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)

if ! command -v cargo >/dev/null; then
  echo "skipped: there is no cargo" && exit 77
fi
# The crates that Cargo.lock names want edition 2024.
minor=$(rustc --version | sed -E 's/^rustc 1\.([0-9]+)\..*/\1/')
if [ "$minor" -lt 85 ]; then
  echo "skipped: $(rustc --version) is older than 1.85" && exit 77
fi
export CARGO_TARGET_DIR=$folder
if ! cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml"; then
  echo "skipped: the crates can't be fetched" && exit 77
fi
cargo build --quiet --locked --manifest-path "$here/Cargo.toml"
port=$(python3 "$here/../../support/tcp_ports.py")
messages=("$folder/debug/messages")
if [ -n "${RNIC_SANITIZER_RUNTIME:-}" ]; then  # it was not built with the sanitizer, and our libraries were
  messages=(env LD_PRELOAD="$RNIC_SANITIZER_RUNTIME" ASAN_OPTIONS=detect_leaks=0 "${messages[@]}")
fi
exec "$rnic" exec --pair --out "$folder/run" -- "${messages[@]}" listen "$port" -- "${messages[@]}" connect "$port"
