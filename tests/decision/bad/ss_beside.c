// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: one element more than there is room for, in the private area of the socket. */
#include "slow_start.h"

struct beside {
	u8 rtt_us[8];
};

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct beside *beside = slow_start_state(sk);
	volatile u32 index = min_t(u32, slow_start(sk)->round * 8, ICSK_CA_PRIV_SIZE);

	((volatile u8 *)beside)[index] = 1;
}

static const struct slow_start_ops beside = {
	.name	= "beside",
	.owner	= THIS_MODULE,
	.state_bytes	= sizeof(struct beside),
	.sample	= sample,
};

module_slow_start(beside);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
