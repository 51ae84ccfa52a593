#!/usr/bin/env bash
# Installs the Debian 12 packages that the project builds with, those that are missing, as root or through sudo.
# usage: scripts/setup.sh [--tests] [--browser] [--clients] [--interop] [--slurm]
# without a switch: what the tool is built with and needs; --tests: what the tests use besides; --browser: Chromium, for the tests of the label report and
# the pictures; --clients: the programs that the tests of the label clients run; --interop: QEMU, and what its guests for the labels interop and linux are
# made of, kernel headers too; --slurm: a cluster of one node, for the test of scripts/campaign
set -euo pipefail

packages=(g++ clang-19 cmake ninja-build ccache git ca-certificates verilator libsystemc-dev libcli11-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev
  libdeflate-dev libpcap-dev libssl-dev libibverbs-dev librdmacm-dev zlib1g-dev node-d3 python3)
for switch in "$@"; do
  case $switch in
    --tests) packages+=(catch2 clang-format gtkwave make python3-jsonschema python3-venv pyflakes3 shellcheck tshark valgrind yosys z3) ;;
    --browser) packages+=(chromium chromium-driver fonts-dejavu-core pngquant) ;;
    --clients) packages+=(gdb ibverbs-utils perftest python3-pyverbs rdma-core rdmacm-utils) ;;
    --interop) packages+=(qemu-system-x86 busybox-static cpio gzip kmod linux-headers-amd64 make bc bison flex libelf-dev xz-utils sparse dpkg-dev iproute2 ibverbs-utils ibverbs-providers perftest python3-pyverbs rdma-core rdmacm-utils iperf3 nfs-kernel-server open-iscsi) ;;
    --slurm) packages+=(slurm-wlm) ;;
    *) echo "setup.sh: unknown switch '$switch'; there are --tests, --browser, --clients, --interop, --slurm" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup.sh: this needs Debian packages and there is no apt-get; install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
  as_root=(sudo)
else
  echo "setup.sh: not root and no sudo; as root run: apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "setup.sh: installing ${#missing[@]} Debian packages and what they need: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
