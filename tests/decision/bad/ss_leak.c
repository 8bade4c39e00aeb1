// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: memory of every round but the last is forgotten. */
#include <linux/slab.h>
#include "slow_start.h"

struct leak {
	void *samples;
};

static void round_ended(struct sock *sk)
{
	struct leak *leak = slow_start_state(sk);

	leak->samples = kzalloc(64, GFP_ATOMIC | __GFP_NOWARN);
}

static void stop(struct sock *sk)
{
	struct leak *leak = slow_start_state(sk);

	kfree(leak->samples);
	leak->samples = NULL;
}

static const struct slow_start_ops leak = {
	.name	= "leak",
	.owner	= THIS_MODULE,
	.state_bytes	= sizeof(struct leak),
	.round	= round_ended,
	.stop	= stop,
};

module_slow_start(leak);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
