#!/usr/bin/env bash
# Makes what a Linux guest boots of Debian's packages: the kernel as it is, its modules, and an initrd of busybox and the modules that the
# way to the host's files needs. It fetches the kernel's package, and needs no root.
# usage: prepare.sh FOLDER INIT [VERSION]    writes FOLDER/VERSION/{vmlinuz,initrd,modules}, unless they are there, and prints VERSION, such as
# 6.1.0-56-amd64 (without it: that of linux-image-amd64). INIT is the first process. Exit code: 77 something is missing, and is named.
set -euo pipefail
missing() { echo "$1" >&2; exit 77; }
for program in busybox cpio gzip apt-get apt-cache dpkg-deb; do
  command -v "$program" >/dev/null || missing "$program is missing (Debian's packages busybox-static, cpio, gzip, apt, dpkg; scripts/setup.sh --interop installs them)"
done
for program in depmod modprobe; do
  PATH=$PATH:/sbin:/usr/sbin command -v "$program" >/dev/null || missing "$program is missing (Debian's package kmod; scripts/setup.sh --interop installs it)"
done
folder=$1 init=$2 version=${3:-}
if [ -z "$version" ]; then
  # apt-cache fails where Debian's lists are missing. A kernel that an earlier run has fetched is good enough then.
  version=$({ apt-cache depends linux-image-amd64 2>/dev/null || true; } | sed -n 's/.*Depends: *linux-image-\([^ ]*\)$/\1/p' | head -n 1)
  if [ -z "$version" ] && [ -d "$folder" ]; then
    version=$(find "$folder" -mindepth 1 -maxdepth 1 -type d -not -name '.*' -printf '%f\n' | sort -V | tail -n 1)
  fi
  [ -n "$version" ] || missing "apt knows no linux-image-amd64 (apt-get update)"
fi
out=$folder/$version
if [ -f "$out/initrd" ] && [ -f "$out/vmlinuz" ]; then echo "$version"; exit 0; fi

mkdir -p "$folder"
work=$(mktemp -d "$folder/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get -o APT::Sandbox::User=root download -qq "linux-image-$version" >&2) || missing "apt-get cannot fetch linux-image-$version"
dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel"
tree=$work/kernel/lib/modules/$version
[ -d "$tree" ] || missing "linux-image-$version has no modules of that version"
PATH=$PATH:/sbin:/usr/sbin depmod -b "$work/kernel" "$version"

root=$work/root
mkdir -p "$root"/{bin,modules,proc,sys,dev}
install -m 755 "$init" "$root/init"
cp "$(command -v busybox)" "$root/bin/busybox"
# In the order in which they can be loaded, each once.
count=100
for module in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
  while read -r insmod path _; do
    [ "$insmod" = insmod ] || continue
    name=$(basename "$path")
    compgen -G "$root/modules/*-$name" >/dev/null || cp "$path" "$root/modules/$((count++))-$name"
  done < <(PATH=$PATH:/sbin:/usr/sbin modprobe -d "$work/kernel" -S "$version" --ignore-install --show-depends "$module")
done
ready=$work/ready
mkdir "$ready"
cp "$work/kernel/boot/vmlinuz-$version" "$ready/vmlinuz"
mkdir "$ready/modules"
mv "$tree" "$ready/modules/"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1 >"$ready/initrd")
# Another that was as quick is as good.
mv -T "$ready" "$out" 2>/dev/null || [ -f "$out/initrd" ]
echo "$version"
