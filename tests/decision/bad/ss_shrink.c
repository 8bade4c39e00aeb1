// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: cwnd is lowered without a word when the RTT has doubled. */
#include "slow_start.h"

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	const struct slow_start *ss = slow_start(sk);

	if (ss->last_rtt_us != SLOW_START_NO_RTT && ss->last_rtt_us / 2 > ss->min_rtt_us)
		slow_start_set_cwnd(sk, tcp_snd_cwnd(tcp_sk(sk)) / 2);
}

static const struct slow_start_ops shrink = {
	.name	= "shrink",
	.owner	= THIS_MODULE,
	.sample	= sample,
};

module_slow_start(shrink);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
