// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: a signed product of cwnd and RTT in 32 bits; it fits on a short path. */
#include "slow_start.h"

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	const struct slow_start *ss = slow_start(sk);

	if (ss->last_rtt_us != SLOW_START_NO_RTT &&
	    (int)tcp_snd_cwnd(tcp_sk(sk)) * (int)ss->last_rtt_us < 0)
		slow_start_exit(sk, SLOW_START_DELAY, 0, 0);
}

static const struct slow_start_ops overflow = {
	.name	= "overflow",
	.owner	= THIS_MODULE,
	.sample	= sample,
};

module_slow_start(overflow);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
