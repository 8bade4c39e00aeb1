// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: a division by a difference of RTTs that is 0 on a path without a queue. */
#include "slow_start.h"

static void round_ended(struct sock *sk)
{
	const struct slow_start *ss = slow_start(sk);

	if (ss->last_round_min_rtt_us != SLOW_START_NO_RTT &&
	    div_u64(1000, ss->last_round_min_rtt_us - ss->min_rtt_us) > 2000)
		slow_start_exit(sk, SLOW_START_DELAY, 0, 0);
}

static const struct slow_start_ops divide = {
	.name	= "divide",
	.owner	= THIS_MODULE,
	.round	= round_ended,
};

module_slow_start(divide);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
