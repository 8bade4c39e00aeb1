// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: a window from a difference that is nothing on a path without a queue. */
#include "slow_start.h"

static void round_ended(struct sock *sk)
{
	const struct slow_start *ss = slow_start(sk);

	if (ss->round == 3)
		tcp_snd_cwnd_set(tcp_sk(sk), ss->last_round_min_rtt_us - ss->min_rtt_us);
}

static const struct slow_start_ops zero = {
	.name	= "zero",
	.owner	= THIS_MODULE,
	.round	= round_ended,
};

module_slow_start(zero);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
