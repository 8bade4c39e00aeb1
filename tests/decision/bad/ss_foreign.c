// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: a field that is TCP's is written. */
#include "slow_start.h"

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_wnd = 2 * tp->snd_cwnd * tp->mss_cache;
}

static const struct slow_start_ops foreign = {
	.name	= "foreign",
	.owner	= THIS_MODULE,
	.sample	= sample,
};

module_slow_start(foreign);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
