"""Storage by the kernel's own users of RDMA (docs/kernel_driver.md): what a guest that serves and one that asks for it do, in linux_driver.py's shell.

Each pair writes a file of 2 MiB and reads it again past every cache; the server looks at it when the client is done, which it hears of by rping.
"""
SHELL = r"""
numbers() { seq 1000000 | head -c 2097152; }
same_bytes() { numbers | cmp -n 2097152 - "$1" || { echo "$1 has other bytes"; exit 1; }; }
# PROGRAM PACKAGE: without it there is nothing to see here.
needs() { command -v "$1" >/dev/null || { echo "skipped: $1 is missing (Debian's package $2)"; exit; }; }
# DEVICE: the first guest's disk, as this one has it.
keeps_bytes() {
  numbers >/tmp/in
  dd if=/tmp/in of="$1" bs=256k oflag=direct status=none
  dd if="$1" of=/tmp/out bs=256k count=8 iflag=direct status=none
  cmp /tmp/in /tmp/out
}
done_there() { rping -s -a 10.0.0.1 -C 1 >/dev/null 2>&1; }
"""
# A target of NVMe over fabrics with a file behind it.
NVME_DISK = r"""
modprobe -a nvmet nvmet-rdma
mount -t configfs none /sys/kernel/config
mount -t tmpfs none /mnt
truncate -s 16M /mnt/disk
cd /sys/kernel/config/nvmet
mkdir subsystems/disk
echo 1 >subsystems/disk/attr_allow_any_host
mkdir subsystems/disk/namespaces/1
printf /mnt/disk >subsystems/disk/namespaces/1/device_path
echo 1 >subsystems/disk/namespaces/1/buffered_io
echo 1 >subsystems/disk/namespaces/1/enable
mkdir ports/1
echo 10.0.0.1 >ports/1/addr_traddr
echo rdma >ports/1/addr_trtype
echo 4420 >ports/1/addr_trsvcid
echo ipv4 >ports/1/addr_adrfam
ln -s /sys/kernel/config/nvmet/subsystems/disk ports/1/subsystems/disk
"""
NVME_TARGET = SHELL + NVME_DISK + r"""
done_there
same_bytes /mnt/disk
quiet_kernel
"""
# Who uses it.
NVME_USE = r"""
modprobe nvme-rdma
connect() {
  for i in $(seq 30); do
    echo transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=disk,queue_size=32,nr_io_queues=1 2>/dev/null >/dev/nvme-fabrics && break
    sleep 1
  done
  sleep 1
  disk=$(ls -d /dev/nvme*n1)
}
connect
keeps_bytes $disk
"""
NVME_HOST = SHELL + NVME_USE + r"""
# The device is reset below a disk in use: who reads hears of it, and the disk is gone; then there is one again.
(while dd if=$disk of=/dev/null bs=64k iflag=direct status=none 2>/dev/null; do :; done) & reader=$!
sleep 1
echo 1 >$(ls -d /sys/bus/pci/drivers/rnic_ib/0000*)/reset
wait $reader
[ ! -e $disk ]
connect
keeps_bytes $disk
for it in /sys/class/nvme/nvme*; do echo 1 >$it/delete_controller; done
echo "well: NVMe over fabrics, its device reset too"
rping -c -a 10.0.0.1 -C 1 >/dev/null
quiet_kernel
"""
# A folder by NFS 4.2: data of reads and writes are RDMA Writes and Reads of the server's (RFC 8166).
NFS_SERVER = SHELL + r"""
needs rpc.nfsd nfs-kernel-server
modprobe -a nfsd
mount -t nfsd nfsd /proc/fs/nfsd
mount -t tmpfs none /mnt
exportfs -o rw,fsid=0,no_root_squash,no_subtree_check,insecure 10.0.0.2:/mnt
rpc.mountd --no-nfs-version 3
# Nobody had a file open before, who could want it back.
rpc.nfsd --no-nfs-version 3 --no-udp --rdma=20049 --grace-time 10 --lease-time 10 2
echo Y >/proc/fs/nfsd/v4_end_grace
done_there
same_bytes /mnt/folder/file
rpc.nfsd 0
quiet_kernel
"""
NFS_CLIENT = SHELL + r"""
needs rpc.nfsd nfs-kernel-server
until_there mount -t nfs4 -o rdma,port=20049,vers=4.2 10.0.0.1:/ /mnt
grep ' /mnt nfs4 .*proto=rdma' /proc/mounts
mkdir /mnt/folder
numbers >/tmp/in
dd if=/tmp/in of=/mnt/folder/other bs=256k oflag=direct status=none
mv /mnt/folder/other /mnt/folder/file
dd if=/mnt/folder/file of=/tmp/out bs=256k iflag=direct status=none
cmp /tmp/in /tmp/out
grep 'xprt:.*rdma' /proc/self/mountstats
umount /mnt
echo "well: NFS over RDMA"
rping -c -a 10.0.0.1 -C 1 >/dev/null
quiet_kernel
"""
# A disk by iSCSI Extensions for RDMA (RFC 7145).
ISER_DISK = "iqn.2026-01.example.guest:disk"
ISER_TARGET = SHELL + r"""
needs iscsid open-iscsi
modprobe -a target_core_mod iscsi_target_mod
mount -t configfs none /sys/kernel/config
mount -t tmpfs none /mnt
truncate -s 16M /mnt/disk
cd /sys/kernel/config/target
mkdir -p core/fileio_0/disk
echo fd_dev_name=/mnt/disk,fd_dev_size=16777216 >core/fileio_0/disk/control
echo 1 >core/fileio_0/disk/enable
mkdir -p iscsi/{disk}/tpgt_1/lun/lun_0 iscsi/{disk}/tpgt_1/np/10.0.0.1:3260
cd iscsi/{disk}/tpgt_1
ln -s /sys/kernel/config/target/core/fileio_0/disk lun/lun_0/disk
echo 1 >np/10.0.0.1:3260/iser
echo 0 >attrib/authentication
echo 1 >attrib/generate_node_acls
echo 0 >attrib/demo_mode_write_protect
echo 1 >enable
done_there
same_bytes /mnt/disk
quiet_kernel
""".replace("{disk}", ISER_DISK)
ISER_INITIATOR = SHELL + r"""
needs iscsid open-iscsi
modprobe -a ib_iser sd_mod
mkdir -p /run/lock/iscsi
echo InitiatorName=iqn.2026-01.example.guest:initiator >/etc/iscsi/initiatorname.iscsi
iscsid
disk="-m node -T {disk} -p 10.0.0.1:3260"
iscsiadm $disk -o new -I iser >/dev/null
until_there iscsiadm $disk --login
iscsiadm -m session
for try in $(seq 30); do [ ! -b /dev/sda ] || break; sleep 1; done
keeps_bytes /dev/sda
iscsiadm $disk --logout
echo "well: iSER"
rping -c -a 10.0.0.1 -C 1 >/dev/null
quiet_kernel
""".replace("{disk}", ISER_DISK)
