#!/usr/bin/env bash
# Builds the Rust example and runs its two ends on a machine of two hosts.
# usage: run.sh RNIC FOLDER     FOLDER: where it is built. Exit code 77: cargo, rustc or a crate is missing.
set -euo pipefail
rnic=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)

missing() { echo "skipped: $1" && exit 77; }
# The crates that Cargo.lock names need edition 2024.
newer="Rust 1.85 or newer is needed (rustup installs it; Debian 12's packages cargo and rustc are older)"
for program in cargo rustc; do command -v "$program" >/dev/null || missing "$program is missing: $newer"; done
version=$(rustc --version) || missing "rustc does not run: $newer"
minor=$(sed -E 's/^rustc 1\.([0-9]+)\..*/\1/' <<<"$version")
[[ $minor =~ ^[0-9]+$ && $minor -ge 85 ]] || missing "this is $version: $newer"
export CARGO_TARGET_DIR=$folder
cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml" || missing "cargo cannot fetch the crates of Cargo.lock"
cargo build --quiet --locked --manifest-path "$here/Cargo.toml"
port=$(python3 "$here/../../support/tcp_ports.py")
messages=("$folder/debug/messages")
if [ -n "${RNIC_SANITIZER_RUNTIME:-}" ]; then  # it was not built with the sanitizer, and our libraries were
  messages=(env LD_PRELOAD="$RNIC_SANITIZER_RUNTIME" ASAN_OPTIONS=detect_leaks=0 "${messages[@]}")
fi
exec "$rnic" exec --pair --out "$folder/run" -- "${messages[@]}" listen "$port" -- "${messages[@]}" connect "$port"
