#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A host that has RDMA devices of its own: they stay visible and untouched beside ours.
# Usage: test_real_devices.sh LIBRARY; as root, in a mount namespace where /sys/class and /dev are made up.
set -u
library=$1
if [ "${IN_NAMESPACE:-}" = "" ]; then
	if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
		echo "1..0 # SKIP needs a mount namespace"
		exit 0
	fi
	IN_NAMESPACE=1 exec unshare -m --propagation private "$0" "$library"
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0 failed=0

ok() { # ok STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

is() { # is GOT WANTED NAME
	[ "$1" = "$2" ]
	ok $? "$3"
	[ "$1" = "$2" ] || printf '# got "%s"\n# not "%s"\n' "$1" "$2"
}

# mlx5_0 with uverbs3 stands on lo, as a NIC would on eth0.
hca=$dir/devices/mlx5_0
mkdir -p "$hca/device/net/lo" "$dir/class/infiniband" "$dir/class/infiniband_verbs/uverbs3" "$dir/dev"
echo 1234:5678:9abc:def0 >"$hca/node_guid"
ln -s "$hca" "$dir/class/infiniband/mlx5_0"
echo 7 >"$dir/class/infiniband_verbs/abi_version"
echo mlx5_0 >"$dir/class/infiniband_verbs/uverbs3/ibdev"
ln -s /sys/devices/virtual/net/lo "$dir/lo"
mkdir "$dir/class/net"
ln -s /sys/devices/virtual/net/lo "$dir/class/net/lo"
mknod "$dir/dev/uverbs3" c 231 195
mknod "$dir/dev/rdma_cm" c 10 60
mount --bind "$dir/class" /sys/class || exit 1
mkdir -p "$dir/devroot/infiniband"
mknod "$dir/devroot/null" c 1 3
chmod 666 "$dir/devroot/null"
cp -a "$dir/dev/." "$dir/devroot/infiniband/"
XDG_RUNTIME_DIR=$dir
export XDG_RUNTIME_DIR
mount --bind "$dir/devroot" /dev || exit 1

with() {
	LD_PRELOAD=$library "$@" 2>&1
}

# Not named: lo belongs to the hardware.
is "$(with ls /sys/class/infiniband | grep -c xrc_lo)" 0 "the interface of an RDMA NIC is left out"
RXE_NETDEV=lo
export RXE_NETDEV
is "$(with ls /sys/class/infiniband)" "mlx5_0
xrc_lo" "named, it is offered beside the real one"
is "$(with cat /sys/class/infiniband/mlx5_0/node_guid)" 1234:5678:9abc:def0 "the real one is read"
is "$(with realpath /sys/class/infiniband/mlx5_0)" "$hca" "the real one is where it is"
is "$(with readlink /sys/class/infiniband/mlx5_0)" "$hca" "its link is its own"
is "$(with cat /sys/class/infiniband_verbs/abi_version)" 7 "the kernel's version stands"
is "$(with ls /sys/class/infiniband_verbs)" "abi_version
uverbs3
uverbs4" "ours takes the next number"
is "$(with cat /sys/class/infiniband_verbs/uverbs4/ibdev)" xrc_lo "and is xrc_lo"
is "$(with ls /dev/infiniband)" "rdma_cm
uverbs3
uverbs4" "/dev/infiniband has all"
is "$(with stat -c '%F %t:%T' /dev/infiniband/uverbs3)" "character special file e7:c3" "the real node"
is "$(with stat -c '%F %t:%T' /dev/infiniband/uverbs4)" "character special file e7:c4" "our node"
is "$(with stat -c '%t:%T' /dev/infiniband/rdma_cm)" a:3c "the real connection manager"
with sh -c 'echo new >/sys/class/infiniband/mlx5_0/node_guid' && is "$(cat "$hca/node_guid")" new "the real one is written"
echo "1..$n"
exit $failed
