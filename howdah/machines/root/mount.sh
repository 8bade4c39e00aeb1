#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mount.sh TREE SHARED PROGRAM [ARGUMENT...]: runs PROGRAM where TREE has what a chroot needs, and SHARED under the same
# name as here. The mount namespace is the caller's own (unshare --mount), so that the mounts end with PROGRAM: nobody who
# removes TREE can come to this machine's /dev.
set -eu

tree=$1 shared=$2
shift 2
mount --rbind /proc "$tree/proc"
mount --rbind /dev "$tree/dev"
mkdir -p "$tree$shared"
mount --bind "$shared" "$tree$shared"
exec "$@"
