#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run in a guest: load the modules named in /howdah/in/order, use every congestion control, unload them in reverse.
# What happened is left in /howdah/out: loaded, used, unloaded (names), errors, log (the kernel's, with levels).
share=/howdah/in
out=/howdah/out

dmesg --clear
while read -r name; do
	insmod "$share/modules/$name.ko" 2>>$out/errors && echo "$name" >>$out/loaded
done <$share/order

ip link set lo up
tc qdisc add dev lo root netem delay 10ms limit 10000
python3 -S $share/use_algorithms.py >>$out/used 2>>$out/errors

# A connection being closed still holds its algorithm's module.
sleep 10
tac $share/order | while read -r name; do
	rmmod "$name" 2>>$out/errors && echo "$name" >>$out/unloaded
done
dmesg --raw >$out/log
