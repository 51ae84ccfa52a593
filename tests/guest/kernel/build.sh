#!/usr/bin/env bash
# Builds a Linux kernel that finds its own faults, of Debian's package linux-source-6.1, for guests of `rnic linux` (docs/kernel_driver.md), and puts it where
# `rnic linux --kernel VERSION` looks. It takes an hour of a processor, and stays in the user's cache folder.
# usage: build.sh KIND     KIND: kasan or kcsan (KIND.config, beside this). Prints VERSION and the folder that has linux-headers-VERSION, for
# RNIC_KERNEL_HEADERS of driver/linux/build.sh. RNIC_KERNEL_JOBS: compilers at a time (all processors). Exit code: 77 something is missing, and is named.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
guest=$root/testbench/guest/linux
kind=${1:-}
case $kind in
  kasan | kcsan) ;;
  *) echo "usage: build.sh kasan|kcsan" >&2; exit 2 ;;
esac
missing() { echo "no kernel is built: $1" >&2; exit 77; }
export PATH=$PATH:/sbin:/usr/sbin
for program in apt-get dpkg-deb xz make gcc bc flex bison busybox cpio gzip depmod; do
  command -v "$program" >/dev/null || missing "$program is missing (Debian's packages apt, dpkg, xz-utils, make, gcc, bc, flex, bison, busybox-static, cpio, gzip, kmod)"
done
[ -f /usr/include/gelf.h ] || missing "gelf.h is missing (Debian's package libelf-dev)"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/rnic
package=$({ apt-cache show linux-source-6.1 2>/dev/null || true; } | sed -n 's/^Version: //p' | head -n 1)
[ -n "$package" ] || missing "apt knows no linux-source-6.1 (apt-get update)"
key=$(cat "$here/guest.config" "$here/$kind.config" <(echo "$package") | sha256sum | cut -c 1-12)
place=$cache/kernel/$kind-$key
# The folder in which the tool keeps guests: that of the scripts that make them (testbench/tool/linux_files.cpp).
guests=$cache/linux/$(cat "$guest/prepare.sh" "$guest/init" | sha256sum | cut -c 1-12)

if [ ! -f "$place/version" ]; then
  mkdir -p "$place/built"
  if [ ! -d "$place/source" ]; then
    work=$(mktemp -d "$place/.work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    (cd "$work" && apt-get -o APT::Sandbox::User=root download -qq linux-source-6.1 >&2) || missing "apt-get cannot fetch linux-source-6.1"
    dpkg-deb --fsys-tarfile "$work"/linux-source-6.1*.deb | tar -xO ./usr/src/linux-source-6.1.tar.xz | tar -xJ -C "$work"
    mv "$work/linux-source-6.1" "$place/source"
  fi
  build() { make -s -C "$place/source" O="$place/built" "$@" >&2; }
  build tinyconfig >/dev/null 2>&1
  cat "$here/guest.config" "$here/$kind.config" >>"$place/built/.config"
  echo "CONFIG_LOCALVERSION=\"-rnic-$kind\"" >>"$place/built/.config"
  # It warns of each option that the fragments set otherwise than tinyconfig.
  build olddefconfig 2>/dev/null
  # What an option needs and has not, the kernel drops without a word.
  while read -r option; do
    grep -qxF "$option" "$place/built/.config" || { echo "the kernel has no $option" >&2; exit 1; }
  done < <(grep -h '^CONFIG_' "$here/guest.config" "$here/$kind.config")
  build -j "${RNIC_KERNEL_JOBS:-$(nproc)}" all
  version=$(make -s -C "$place/source" O="$place/built" kernelrelease)
  build INSTALL_MOD_PATH="$place/installed" modules_install
  depmod -b "$place/installed" "$version"
  ln -sfn built "$place/linux-headers-$version"
  echo "$version" >"$place/version"
fi

version=$(cat "$place/version")
if [ ! -f "$guests/$version/initrd" ]; then
  ready=$(mktemp -d "$place/.ready.XXXXXX")
  mkdir -p "$ready/root/bin" "$ready/root/modules" "$ready/root/proc" "$ready/root/sys" "$ready/root/dev" "$ready/$version/modules" "$guests"
  install -m 755 "$guest/init" "$ready/root/init"
  cp "$(command -v busybox)" "$ready/root/bin/busybox"
  (cd "$ready/root" && find . | cpio --quiet -o -H newc | gzip -1 >"$ready/$version/initrd")
  cp "$place/built/arch/x86/boot/bzImage" "$ready/$version/vmlinuz"
  cp -r "$place/installed/lib/modules/$version" "$ready/$version/modules/"
  rm -f "$ready/$version/modules/$version/"{build,source}
  rm -rf "${guests:?}/$version"
  mv "$ready/$version" "$guests/$version"
  rm -rf "$ready"
fi
echo "$version $place"
