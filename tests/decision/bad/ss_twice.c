// SPDX-License-Identifier: GPL-2.0-only
/* Planted bug: the end of a connection frees what all of them use. */
#include <linux/slab.h>
#include "slow_start.h"

static void *samples;

static void start(struct sock *sk)
{
	if (!samples)
		samples = kzalloc(64, GFP_ATOMIC | __GFP_NOWARN);
}

static void stop(struct sock *sk)
{
	kfree(samples);
}

static const struct slow_start_ops twice = {
	.name	= "twice",
	.owner	= THIS_MODULE,
	.start	= start,
	.stop	= stop,
};

module_slow_start(twice);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a plug-in with a planted bug");
