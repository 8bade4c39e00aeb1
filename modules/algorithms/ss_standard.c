// SPDX-License-Identifier: GPL-2.0-only
/*
 * Standard slow start (RFC 5681, section 3.1): cwnd grows by what is acknowledged,
 * until ssthresh.
 *
 * Parameters choose between its dialects. Linux counts packets and has no limit for
 * one ACK; RFC 5681 allows one packet an ACK (abc_limit=1), RFC 3465 two. The first
 * window is 10 packets in RFC 6928, 2 to 4 in RFC 5681 and 1 before.
 *
 * Left out: byte counting (RFC 3465 counts bytes, Linux packets), and the smaller
 * limit it asks for after a timeout.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

slow_start_parameter(init_cwnd, 0, 0, 1000000,
		     "initial window in packets, 0: the kernel's (default 0)");

slow_start_parameter(init_ssthresh, 0, 0, 0x7fffffff,
		     "initial ssthresh in packets, at least 2, 0: the kernel's (default 0)");

slow_start_parameter(abc_limit, 0, 0, 1000000,
		     "packets cwnd grows by at most for one ACK (L of RFC 3465), 0: no limit (default 0)");

static void start(struct sock *sk)
{
	u32 threshold = READ_ONCE(init_ssthresh), window = READ_ONCE(init_cwnd);

	if (slow_start(sk)->joined)
		return;
	if (window)
		slow_start_set_cwnd(sk, window);
	if (threshold)
		tcp_sk(sk)->snd_ssthresh = max(threshold, 2U);
}

static u32 grow(struct sock *sk, u32 acked)
{
	u32 limit = READ_ONCE(abc_limit);
	u32 counted = limit ? min(acked, limit) : acked;
	u32 left = tcp_slow_start(tcp_sk(sk), counted);

	/* Congestion avoidance knows no limit: it gets all that did not count. */
	return tcp_in_slow_start(tcp_sk(sk)) ? 0 : left + acked - counted;
}

static const struct slow_start_ops standard = {
	.name	= "standard",
	.owner	= THIS_MODULE,
	.start	= start,
	.grow	= grow,
};

module_slow_start(standard);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: standard slow start");
