// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: pacing to a rate of nothing. */
#include "slow_start.h"

static void start(struct sock *sk)
{
	slow_start_pace(sk, slow_start_rate(sk, 1, 1000));
	sk->sk_max_pacing_rate = 0;
}

static const struct slow_start_ops stopped = {
	.name	= "stopped",
	.owner	= THIS_MODULE,
	.start	= start,
};

module_slow_start(stopped);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
