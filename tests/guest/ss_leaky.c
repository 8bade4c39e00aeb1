// SPDX-License-Identifier: GPL-2.0-only
/* Standard slow start that loses 32 bytes with every connection, for a test of the test. */
#include <linux/slab.h>
#include "slow_start.h"

struct lost {
	void *memory;
};

static void start(struct sock *sk)
{
	struct lost *lost = slow_start_state(sk);

	lost->memory = kmalloc(32, GFP_ATOMIC);
}

static const struct slow_start_ops leaky = {
	.name		= "leaky",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct lost),
	.start		= start,
};

module_slow_start(leaky);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a slow start that leaks");
