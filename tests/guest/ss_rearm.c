// SPDX-License-Identifier: GPL-2.0-only
/* Counts what the core tells a plug-in of idle times, for a test on every kernel. */
#include "slow_start.h"

static unsigned int counts[3];
module_param_array(counts, uint, NULL, 0644);
MODULE_PARM_DESC(counts, "calls of restart: transmission starts, idle, after a timeout");

static void restart(struct sock *sk, enum slow_start_restart why)
{
	counts[why]++;
}

static const struct slow_start_ops rearm = {
	.name		= "rearm",
	.owner		= THIS_MODULE,
	.restart	= restart,
};

module_slow_start(rearm);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a slow start that counts restarts");
