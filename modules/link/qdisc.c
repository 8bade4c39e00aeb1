// SPDX-License-Identifier: GPL-2.0
/*
 * howdah_link: a link that carries bytes when a trace says so, as a queueing discipline with a queue as its child.
 *
 * A trace is a list of opportunities, each of so many bytes at an instant, and begins again after its round. An
 * opportunity takes what waits, in order: several small packets, or a part of a large one, which leaves with the
 * opportunity that carries its last byte. What an opportunity does not use is lost. One that is due is taken before a
 * packet that arrives at the same instant is queued.
 *
 * The packet that an opportunity has begun has left the queue, whose limit does not count it any more.
 *
 * While no trace holds, the link has a constant rate: a packet leaves when the line is free, which it is again when the
 * packet's length has passed at the rate.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/gen_stats.h>
#include <net/netlink.h>

#include "link.h"

#define ONLY_CLASS 1

static u32 counted_bytes(const struct link *link, const struct sk_buff *skb)
{
	u32 segments = max_t(u32, skb_shinfo(skb)->gso_segs, 1);
	s64 bytes = qdisc_pkt_len(skb) + (s64)link->overhead_bytes * segments;

	return bytes > 0 ? bytes : 1;
}

/* One opportunity. */
static void carry(struct link *link)
{
	u32 room = link->opportunity_bytes;
	u32 bytes;

	link->stats.passed++;
	while (room) {
		if (!link->begun) {
			link->begun = link->queue->dequeue(link->queue);
			if (!link->begun)
				break;
			link->left_bytes = counted_bytes(link, link->begun);
		}
		bytes = min(room, link->left_bytes);
		room -= bytes;
		link->left_bytes -= bytes;
		if (link->left_bytes)
			break;
		__skb_queue_tail(&link->carried, link->begun);
		link->begun = NULL;
		link->stats.sent_packets++;
	}
	if (room < link->opportunity_bytes)
		link->stats.used++;
	link->stats.carried_bytes += link->opportunity_bytes - room;
	link->stats.unused_bytes += room;
}

/* Every opportunity up to now. */
static void follow(struct link *link, u64 now)
{
	while (link->trace.next_ns <= now) {
		carry(link);
		link_trace_step(&link->trace);
	}
	link->stats.until_ns = now;
}

static int enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct link *link = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	int result;

	if (link->follows_trace)
		follow(link, ktime_get_ns());
	result = qdisc_enqueue(skb, link->queue, to_free);
	if (result != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(result))
			qdisc_qstats_drop(sch);
		return result;
	}
	sch->qstats.backlog += bytes;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *next_at_constant_rate(struct link *link, u64 now)
{
	struct sk_buff *skb;

	if (now < link->free_ns) {
		if (link->queue->q.qlen) {
			link->waits = true;
			qdisc_watchdog_schedule_ns(&link->watchdog, link->free_ns);
		}
		return NULL;
	}
	skb = link->queue->dequeue(link->queue);
	/* What waited begins when the line was free, however late its timer is: to this bound, for it leaves at once. */
	if (!skb || !link->waits || link->free_ns + LINK_MOST_LATE_NS < now)
		link->free_ns = now;
	link->waits = skb && link->queue->q.qlen;	/* what is behind it begins when it ends, in the past or not */
	if (!skb)
		return NULL;
	link->free_ns += div64_u64((u64)qdisc_pkt_len(skb) * BITS_PER_BYTE * NSEC_PER_SEC, link->rate_bits_per_second);
	return skb;
}

static struct sk_buff *dequeue(struct Qdisc *sch)
{
	struct link *link = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;

	if (link->follows_trace)
		follow(link, now);
	skb = __skb_dequeue(&link->carried);
	if (!skb && !link->follows_trace)
		skb = next_at_constant_rate(link, now);
	if (skb) {
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
	} else if (link->follows_trace && (link->begun || link->queue->q.qlen)) {
		qdisc_watchdog_schedule_ns(&link->watchdog, link->trace.next_ns);
	}
	return skb;
}

static int begin(struct link *link, const struct nlattr *given, struct netlink_ext_ack *extack)
{
	const struct link_begin *asked = nla_data(given);
	u64 now = ktime_get_ns();

	if (nla_len(given) < sizeof(*asked) || !asked->begin_ns || asked->begin_ns > now) {
		NL_SET_ERR_MSG_MOD(extack, "a trace begins now or has begun");
		return -EINVAL;
	}
	if (link_trace_begin(&link->trace, asked->begin_ns)) {
		NL_SET_ERR_MSG_MOD(extack, "the trace is not complete");
		return -EINVAL;
	}
	memset(&link->stats, 0, sizeof(link->stats));
	link->stats.begin_ns = asked->begin_ns;
	link->follows_trace = true;
	return 0;
}

/* A packet that was begun leaves: its bytes are no trace's any more. */
static void end(struct link *link)
{
	u64 now = ktime_get_ns();

	if (!link->follows_trace)
		return;
	follow(link, now);
	link->follows_trace = false;
	link->free_ns = now;
	link->waits = false;
	if (link->begun)
		__skb_queue_tail(&link->carried, link->begun);
	link->begun = NULL;
}

static int change(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *extack)
{
	struct link *link = qdisc_priv(sch);
	const struct link_gaps *gaps;
	int error = 0;

	if (!given || nla_len(given) < sizeof(u32)) {
		NL_SET_ERR_MSG_MOD(extack, "options are missing");
		return -EINVAL;
	}
	sch_tree_lock(sch);
	switch (nla_get_u32(given)) {
	case LINK_GAPS:
		gaps = nla_data(given);
		error = link->follows_trace ? -EBUSY :
			link_trace_add(&link->trace, gaps->gaps_us, (nla_len(given) - sizeof(*gaps)) / sizeof(u32));
		if (error)
			NL_SET_ERR_MSG_MOD(extack, "no trace can have these gaps now");
		break;
	case LINK_BEGIN:
		error = begin(link, given, extack);
		break;
	case LINK_END:
		end(link);
		break;
	default:
		NL_SET_ERR_MSG_MOD(extack, "no such message");
		error = -EINVAL;
	}
	if (!error && sch->q.qlen)
		qdisc_watchdog_schedule_ns(&link->watchdog, ktime_get_ns());
	sch_tree_unlock(sch);
	return error;
}

static int init(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *extack)
{
	struct link *link = qdisc_priv(sch);
	const struct link_settings *asked;

	qdisc_watchdog_init(&link->watchdog, sch);
	__skb_queue_head_init(&link->carried);
	link->queue = &noop_qdisc;
	if (!given || nla_len(given) < sizeof(*asked)) {
		NL_SET_ERR_MSG_MOD(extack, "options are missing");
		return -EINVAL;
	}
	asked = nla_data(given);
	if (asked->message != LINK_SETTINGS || !asked->opportunity_bytes || !asked->rate_bits_per_second) {
		NL_SET_ERR_MSG_MOD(extack, "an option is out of its range");
		return -EINVAL;
	}
	link->opportunity_bytes = asked->opportunity_bytes;
	link->overhead_bytes = asked->overhead_bytes;
	link->rate_bits_per_second = asked->rate_bits_per_second;
	return link_trace_make(&link->trace, asked->opportunities, asked->round_ns);
}

static void reset(struct Qdisc *sch)
{
	struct link *link = qdisc_priv(sch);

	qdisc_reset(link->queue);
	if (link->begun)
		rtnl_kfree_skbs(link->begun, link->begun);
	link->begun = NULL;
	__skb_queue_purge(&link->carried);
	sch->qstats.backlog = 0;
	sch->q.qlen = 0;
	link->free_ns = 0;
	link->waits = false;
	qdisc_watchdog_cancel(&link->watchdog);
}

/* Also called when init() failed. */
static void destroy(struct Qdisc *sch)
{
	struct link *link = qdisc_priv(sch);

	qdisc_watchdog_cancel(&link->watchdog);
	qdisc_put(link->queue);
	link_trace_free(&link->trace);
}

/* The clock is read with the lock held: in a user-mode kernel in virtual time it costs nothing there. */
static int dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct link *link = qdisc_priv(sch);
	struct link_stats stats;

	sch_tree_lock(sch);
	if (link->follows_trace) {
		follow(link, ktime_get_ns());
		if (!skb_queue_empty(&link->carried))
			qdisc_watchdog_schedule_ns(&link->watchdog, link->stats.until_ns);
	}
	stats = link->stats;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(dump, &stats, sizeof(stats));
}

static int graft(struct Qdisc *sch, unsigned long class, struct Qdisc *new, struct Qdisc **old,
		 struct netlink_ext_ack *extack)
{
	struct link *link = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &link->queue);
	return 0;
}

static struct Qdisc *leaf(struct Qdisc *sch, unsigned long class)
{
	struct link *link = qdisc_priv(sch);

	return link->queue;
}

static unsigned long find(struct Qdisc *sch, u32 classid)
{
	return ONLY_CLASS;
}

static void walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, ONLY_CLASS, walker) < 0) {
		walker->stop = 1;
		return;
	}
	walker->count++;
}

static int dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *skb, struct tcmsg *message)
{
	struct link *link = qdisc_priv(sch);

	message->tcm_handle |= TC_H_MIN(ONLY_CLASS);
	message->tcm_info = link->queue->handle;
	return 0;
}

static const struct Qdisc_class_ops class_ops = {
	.graft		= graft,
	.leaf		= leaf,
	.find		= find,
	.walk		= walk,
	.dump		= dump_class,
};

/* No options are dumped: tc, which does not know them, would print what is not JSON when asked for that. */
static struct Qdisc_ops link_ops __read_mostly = {
	.id		= LINK_KIND,
	.cl_ops		= &class_ops,
	.priv_size	= sizeof(struct link),
	.enqueue	= enqueue,
	.dequeue	= dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= init,
	.change		= change,
	.reset		= reset,
	.destroy	= destroy,
	.dump_stats	= dump_stats,
	.owner		= THIS_MODULE,
};

static int __init load(void)
{
	return register_qdisc(&link_ops);
}

static void __exit unload(void)
{
	unregister_qdisc(&link_ops);
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a link that carries bytes when a trace says so");
