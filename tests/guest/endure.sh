#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run in a guest: loads the modules in /howdah/in/modules in the order of /howdah/in/order, lets the congestion controls
# named in /howdah/in/names endure everything, unloads. Left in /howdah/out: endure.json, errors, unloaded, log.
share=/howdah/in
out=/howdah/out

ip link set lo up
tc qdisc add dev lo root netem delay 10ms limit 10000
sysctl -q -w net.ipv4.tcp_no_metrics_save=1 net.core.somaxconn=4096
dmesg --clear
while read -r name; do
	insmod "$share/modules/$name.ko" 2>>$out/errors
done <$share/order
# shellcheck disable=SC2046
python3 -S $share/endure.py $(cat $share/names) 2>>$out/errors
sleep 70
tac $share/order | while read -r name; do
	rmmod "$name" 2>>$out/errors && echo "$name" >>$out/unloaded
done
dmesg --raw >$out/log
