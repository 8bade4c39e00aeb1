// SPDX-License-Identifier: GPL-2.0-only
/*
 * Standard slow start (RFC 5681): cwnd grows by what is acknowledged, until ssthresh.
 *
 * Parameters choose between its dialects: Linux counts packets and has no limit per
 * ACK; RFC 5681 allows one packet an ACK (abc_limit=1), RFC 3465 two.
 */
#include "slow_start.h"

static unsigned int init_cwnd;
module_param(init_cwnd, uint, 0644);
MODULE_PARM_DESC(init_cwnd, "initial window in packets, 0: the kernel's");

static unsigned int init_ssthresh;
module_param(init_ssthresh, uint, 0644);
MODULE_PARM_DESC(init_ssthresh, "initial ssthresh in packets, 0: the kernel's");

static unsigned int abc_limit;
module_param(abc_limit, uint, 0644);
MODULE_PARM_DESC(abc_limit, "packets cwnd grows by at most for one ACK (L of RFC 3465), 0: no limit");

static void start(struct sock *sk)
{
	if (slow_start(sk)->joined)
		return;
	if (init_cwnd)
		slow_start_set_cwnd(sk, init_cwnd);
	if (init_ssthresh)
		tcp_sk(sk)->snd_ssthresh = max(init_ssthresh, 2U);
}

static u32 grow(struct sock *sk, u32 acked)
{
	u32 left, counted = abc_limit ? min(acked, abc_limit) : acked;

	left = tcp_slow_start(tcp_sk(sk), counted);
	return left ? left + acked - counted : 0;
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
