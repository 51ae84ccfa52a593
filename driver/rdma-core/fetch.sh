#!/usr/bin/env bash
# Puts what a provider includes of rdma-core's source, in Debian's version of the library that is installed, into a folder, and prints the folder.
# The headers that providers see (driver.h and what it includes) are in no package but the source package.
# usage: fetch.sh      RNIC_RDMA_CORE=FOLDER: a source tree of that version, in place of Debian's archive. Exit code: 77 something is missing, and is named.
set -euo pipefail
missing() { echo "librnic is not built: $1" >&2; exit 77; }
for program in apt-get dpkg-query dpkg-source python3; do
  command -v "$program" >/dev/null || missing "$program is missing (Debian's packages apt, dpkg, dpkg-dev, python3; scripts/setup.sh --interop installs them)"
done
version=$(dpkg-query -W -f='${source:Version}' libibverbs1 2>/dev/null || true)
[ -n "$version" ] || missing "libibverbs is missing (Debian's package libibverbs-dev; scripts/setup.sh installs it)"
folder=${XDG_CACHE_HOME:-$HOME/.cache}/rnic/rdma-core/$version
if [ -f "$folder/include/infiniband/driver.h" ]; then echo "$folder/include"; exit 0; fi

mkdir -p "$folder"
work=$(mktemp -d "$folder/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=${RNIC_RDMA_CORE:-}
if [ -z "$tree" ]; then
  # Lists of sources of our own: nobody's configuration changes, and no root is needed.
  mkdir -p "$work/lists/partial"
  for suite in bookworm bookworm-updates; do echo "deb-src http://deb.debian.org/debian $suite main"; done >"$work/sources.list"
  echo "deb-src http://deb.debian.org/debian-security bookworm-security main" >>"$work/sources.list"
  apt=(apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$work/lists" -o APT::Sandbox::User=root
    -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache=)
  "${apt[@]}" update >&2 || missing "apt-get cannot fetch Debian's lists of source packages"
  (cd "$work" && "${apt[@]}" source "rdma-core=$version" >&2) || missing "apt-get cannot fetch the source package rdma-core $version; with RNIC_RDMA_CORE=FOLDER a source tree of that version is taken"
  tree=$(find "$work" -maxdepth 1 -type d -name 'rdma-core-*' | head -n 1)
fi
[ -f "$tree/libibverbs/driver.h" ] || missing "there is no source tree of rdma-core in $tree"

ready=$work/include
mkdir -p "$ready"/{infiniband,rdma,kernel-abi,util,ccan}
cp "$tree"/libibverbs/{driver,kern-abi,cmd_ioctl,verbs,verbs_api,tm_types,opcode,arch}.h "$ready/infiniband/"
cp "$tree"/kernel-headers/rdma/*.h "$ready/rdma/"
cp "$tree"/util/*.h "$ready/util/"
cp "$tree"/ccan/*.h "$ready/ccan/"
cp "$tree/buildlib/make_abi_structs.py" "$ready/"
python3 "$ready/make_abi_structs.py" "$tree/kernel-headers/rdma/ib_user_verbs.h" "$ready/kernel-abi/ib_user_verbs.h"
# What its configure would find out for us.
pabi=$(sed -n 's/.*set(IBVERBS_PABI_VERSION "\([0-9]*\)").*/\1/p' "$tree/CMakeLists.txt")
cat >"$ready/config.h" <<END
#define HAVE_STATEMENT_EXPR 1
#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
#define HAVE_TYPEOF 1
#define HAVE_FUNC_ATTRIBUTE_ALWAYS_INLINE 1
#define VERBS_IOCTL_ONLY 0
#define VERBS_WRITE_ONLY 0
#define IBVERBS_PABI_VERSION $pabi
#define SIZEOF_LONG 8
END
mv -T "$ready" "$folder/include" 2>/dev/null || [ -f "$folder/include/infiniband/driver.h" ]
echo "$folder/include"
