#!/usr/bin/env bash
# Makes a Linux guest with Soft-RoCE (the kernel's rdma_rxe) of Debian's packages: their kernel as it is, busybox, and the programs that
# this machine has installed (scripts/setup.sh --interop). It fetches the kernel's package, and needs no root.
# usage: build_guest.sh FOLDER    writes FOLDER/vmlinuz and FOLDER/initramfs.gz, unless they are newer than what this puts there of ours
# Exit code: 77 something is missing, and is named.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rping=$here/../support/programs/rping
[ $# = 1 ] || { echo "usage: build_guest.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
up_to_date() {
  local source
  [ -f "$out/vmlinuz" ] || return
  for source in "$here/build_guest.sh" "$here/guest_init" "$rping"; do [ "$out/initramfs.gz" -nt "$source" ] || return; done
}
up_to_date && exit 0
export PATH=$PATH:/sbin:/usr/sbin
missing() { echo "the guest with Soft-RoCE is not built: $1" >&2; exit 77; }
programs=(rdma ibv_devinfo ibv_{rc,uc,ud,srq}_pingpong ib_{send,write,read,atomic}_{bw,lat} ucmatose udaddy rdma_{client,server} rping)
for program in apt-get apt-cache dpkg-deb depmod modprobe busybox cpio gzip "${programs[@]}"; do
  command -v "$program" >/dev/null || missing "$program is missing (scripts/setup.sh --interop installs it)"
done
plugin=$(compgen -G '/usr/lib/*/libibverbs/librxe-rdmav*.so' | head -n 1) || missing "librxe-rdmavN.so is missing (Debian's package ibverbs-providers; scripts/setup.sh --interop installs it)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

package=$({ apt-cache depends linux-image-amd64 2>/dev/null || true; } | sed -n 's/.*Depends: *\(linux-image-[^ ]*\)$/\1/p' | head -n 1)
[ -n "$package" ] || missing "apt does not know linux-image-amd64 (apt-get update)"
(cd "$work" && apt-get download -qq "$package") || missing "apt-get cannot fetch $package"
(cd "$work" && dpkg-deb -x "$package"_*.deb kernel)
version=$(basename "$work"/kernel/lib/modules/*)
depmod -b "$work/kernel" "$version"

root=$work/root
mkdir -p "$root"/{bin,usr/bin,modules,proc,sys,dev}
install -m 755 "$here/guest_init" "$root/init"

# Modules in the order in which they can be loaded, each once.
count=100
for module in virtio_pci virtio_console virtio_net crc32_generic ib_uverbs rdma_ucm rdma_rxe; do
  while read -r insmod path _; do
    [ "$insmod" = insmod ] || continue
    name=$(basename "$path")
    compgen -G "$root/modules/*-$name" >/dev/null || cp "$path" "$root/modules/$((count++))-$name"
  done < <(modprobe -d "$work/kernel" -S "$version" --ignore-install --show-depends "$module")
done

add_with_libraries() {
  local file library
  file=$1
  cp -L "$file" "$2"
  while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done < <(ldd "$file" | grep -o '/[^ ]*')
}
cp "$(command -v busybox)" "$root/bin/busybox"
for program in "${programs[@]}"; do
  [ "$program" = rping ] || add_with_libraries "$(command -v "$program")" "$root/bin/"
done
add_with_libraries /usr/bin/rping "$root/usr/bin/"
install -m 755 "$rping" "$root/bin/rping"
plugins=$(dirname "$plugin")
mkdir -p "$root$plugins" "$root/etc/libibverbs.d"
for plugin in "$plugins"/librxe-rdmav*.so; do add_with_libraries "$plugin" "$root$plugins/"; done
cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
# Threads that end look for it by themselves.
libgcc=$(find /lib/*/ -maxdepth 1 -name libgcc_s.so.1 | head -n 1)
mkdir -p "$root$(dirname "$libgcc")" && cp -L "$libgcc" "$root$libgcc"

cp "$work/kernel/boot/vmlinuz-$version" "$out/vmlinuz"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -6 >"$out/initramfs.part")
mv "$out/initramfs.part" "$out/initramfs.gz"
echo "guest: Linux $version, in $out"
