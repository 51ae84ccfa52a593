#!/usr/bin/env bash
# Looks at the Linux driver as its reviewers would: checkpatch.pl --strict of Debian's kernel source, and sparse. Both must have nothing to say.
# usage: check.sh FOLDER [VERSION]     FOLDER, VERSION: as build.sh. RNIC_CHECKPATCH=FILE: a checkpatch.pl, in place of that of Debian's archive (150 MB).
# Exit code: 1 something is said, 77 something is missing, and is named.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
missing() { echo "$1" >&2; exit 77; }
command -v sparse >/dev/null || missing "sparse is missing (Debian's package sparse; scripts/setup.sh --interop installs it)"
command -v perl >/dev/null || missing "perl is missing (Debian's package perl)"
command -v xz >/dev/null || missing "xz is missing (Debian's package xz-utils)"
checkpatch=${RNIC_CHECKPATCH:-${XDG_CACHE_HOME:-$HOME/.cache}/rnic/checkpatch/checkpatch.pl}
if [ ! -f "$checkpatch" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && apt-get -o APT::Sandbox::User=root download -qq linux-source-6.1 >&2) || missing "apt-get cannot fetch linux-source-6.1"
  dpkg-deb --fsys-tarfile "$work"/linux-source-6.1*.deb | tar -xO ./usr/src/linux-source-6.1.tar.xz |
    tar -xJ -C "$work" --wildcards 'linux-source-6.1/scripts/*checkpatch*' 'linux-source-6.1/scripts/spelling.txt'
  mkdir -p "$(dirname "$checkpatch")"
  cp "$work"/linux-source-6.1/scripts/* "$(dirname "$checkpatch")/"
fi
wrong=0
# Words of the generated header are those of the host interface.
for file in "$source"/*.c "$source"/*.h; do
  said=$(perl "$checkpatch" --no-tree --strict --terse --ignore TYPO_SPELLING -f "$file") || { echo "$said"; wrong=1; }
done
said=$(RNIC_KERNEL_CHECK=1 "$source/build.sh" "$@" 2>&1) || { code=$?; echo "$said" >&2; ((code == 77)) || code=1; exit "$code"; }
# What sparse says of the kernel's own headers is theirs.
said=$(grep -E '/rnic[^/]*\.[ch]:[0-9]+:[0-9]+: (warning|error)' <<<"$said" || true)
[ -z "$said" ] || { echo "$said"; wrong=1; }
exit $wrong
