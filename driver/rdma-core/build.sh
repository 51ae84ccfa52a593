#!/usr/bin/env bash
# Builds the provider librnic-rdmavN.so of Debian's libibverbs (docs/kernel_driver.md; N is 34 in Debian 12).
# usage: build.sh FOLDER     writes FOLDER/librnic-rdmav34.so. Exit code: 77 something is missing, and is named.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
linux=$source/../linux
mkdir -p "$1"
folder=$(cd "$1" && pwd)
include=$("$source/fetch.sh")
pabi=$(sed -n 's/#define IBVERBS_PABI_VERSION //p' "$include/config.h")
library=$folder/librnic-rdmav$pabi.so
if [ -f "$library" ]; then
  changed=$(find "$source" "$linux/rnic_hw.h" "$linux/rnic_field.h" "$linux/rnic_segment.h" "$linux/rnic-abi.h" -newer "$library" -type f)
  [ -n "$changed" ] || exit 0
fi
mkdir -p "$folder/abi/rdma" "$folder/abi/kernel-abi"
cp "$linux/rnic-abi.h" "$folder/abi/rdma/"
python3 "$include/make_abi_structs.py" "$linux/rnic-abi.h" "$folder/abi/kernel-abi/rnic-abi.h"
"${CC:-cc}" -shared -fPIC -O2 -g -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wl,--no-undefined -Wl,-soname,"$(basename "$library")" \
  -isystem "$include" -I "$folder/abi" -I "$linux" -I "$source" "$source"/*.c -o "$library" -l:libibverbs.so.1 -lpthread
