#!/bin/sh
# In a guest of `rnic linux`: loads the driver that was built in FOLDER, gives the port its addresses, and runs a command (docs/kernel_driver.md).
# usage: guest.sh FOLDER NUMBER COMMAND...     FOLDER: such as build/release/linux. NUMBER: of the guest, from 0 on: its MAC address is 02:00:00:00:00:0N+1,
# its IPv4 address 10.0.0.N+1, as the machine's other hosts reckon with.
set -e
folder=$(cd "$1" && pwd)
number=$2
shift 2
[ -d /dev/shm ] || { mkdir /dev/shm && mount -t tmpfs shm /dev/shm; }
modprobe -a ib_uverbs rdma_ucm ib_umad
# Once more: with the module as it is now, not as it was read before.
if [ -d /sys/module/rnic_ib ]; then rmmod rnic_ib; fi
echo 3 >/proc/sys/vm/drop_caches
insmod "$folder/rnic_ib.ko"
mkdir -p /etc/libibverbs.d
rm -f /etc/libibverbs.d/*.driver
echo "driver $folder/librnic" >/etc/libibverbs.d/rnic.driver
port=$(find /sys/bus/pci/drivers/rnic_ib/*/net/ -mindepth 1 -printf '%f\n' | head -n 1)
ip link set lo up
ip link set "$port" address "02:00:00:00:00:0$((number + 1))" mtu 4078 up
ip addr add "10.0.0.$((number + 1))/24" dev "$port"
exec "$@"
