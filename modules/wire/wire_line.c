// SPDX-License-Identifier: GPL-2.0
/* The line itself: frames in the order of their time, and the timer of the first. */
#include <linux/ktime.h>

#include "wire.h"

struct Qdisc *wire_arriving[WIRE_MOST_WIRES];

/* Caller holds the qdisc's lock, here and below. */
void wire_insert(struct wire *wire, struct sk_buff *skb)
{
	struct sk_buff *before = skb_peek_tail(&wire->waiting);

	while (before && wire_control(before)->due_ns > wire_control(skb)->due_ns)
		before = skb_queue_is_first(&wire->waiting, before) ? NULL : skb_queue_prev(&wire->waiting, before);
	if (before)
		__skb_queue_after(&wire->waiting, before, skb);
	else
		__skb_queue_head(&wire->waiting, skb);
}

void wire_wait(struct wire *wire)
{
	struct sk_buff *first = skb_peek(&wire->waiting);

	if (first)
		qdisc_watchdog_schedule_ns(&wire->watchdog, wire_control(first)->due_ns);
}

/* A frame from another kernel, in a softirq; takes the lock. */
void wire_arrived(struct Qdisc *sch, struct sk_buff *skb, u64 stamp_ns)
{
	/* qdisc_root_sleeping_lock() asks for the RTNL, which nobody holds in a softirq. */
	spinlock_t *lock = qdisc_lock(rcu_dereference_raw(sch->dev_queue->qdisc_sleeping));
	struct wire *wire = qdisc_priv(sch);

	skb->dev = qdisc_dev(sch);
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	wire_control(skb)->due_ns = stamp_ns + wire->options.delay_ns;
	spin_lock(lock);
	wire_insert(wire, skb);
	if (skb_peek(&wire->waiting) == skb)
		wire_wait(wire);
	spin_unlock(lock);
}
