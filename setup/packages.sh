#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages.sh FILE…: install the Debian packages that the files list (one a line, "# why" behind it) and that are not
# there.
# Without root, print the line that a person with root has to run, and do nothing else.
set -eu

missing=''
list=$(cat -- "$@")
while read -r package _; do
	case $package in ''|'#'*) continue ;; esac
	# A line may name alternatives, as the package has another name in another release: a|b.
	found=''
	candidate=''
	for name in $(printf '%s' "$package" | tr '|' ' '); do
		state=$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null || true)
		[ "$state" = installed ] && found=yes
		[ -n "$candidate" ] || candidate=$name
	done
	[ -n "$found" ] || missing="$missing $candidate"
done <<END
$list
END

[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
	echo "These Debian packages are missing. As root, run:" >&2
	echo "  apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
echo "installing:$missing"
apt-get update -qq
# shellcheck disable=SC2086 # the list is meant to be split
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing </dev/null >/dev/null
