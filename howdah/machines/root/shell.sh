#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ansible's shell for a tree that is not booted: what it would run here runs in $HOWDAH_TREE.
exec chroot "$HOWDAH_TREE" /usr/bin/env --ignore-environment HOME=/root LC_ALL=C.UTF-8 \
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive /bin/sh "$@"
