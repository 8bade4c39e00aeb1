// SPDX-License-Identifier: GPL-2.0
/* What every attached socket needs: the queue of its work, and the count of its bytes. */
#include <linux/interrupt.h>
#include <linux/ktime.h>

#include "traffic.h"

struct workqueue_struct *traffic_queue;

void traffic_count(struct traffic_socket *traffic, size_t bytes)
{
	u64 now;

	/* With bottom halves off, reading the clock costs no virtual time in a user-mode kernel. */
	local_bh_disable();
	now = ktime_get_ns();
	local_bh_enable();
	if (!traffic->bytes)
		WRITE_ONCE(traffic->first_ns, now);
	WRITE_ONCE(traffic->last_ns, now);
	WRITE_ONCE(traffic->bytes, traffic->bytes + bytes);
}
