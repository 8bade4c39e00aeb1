// SPDX-License-Identifier: GPL-2.0
/*
 * howdah_receiver: the ACK schemes of receivers that are not Linux, as a queueing discipline of a host's interface.
 *
 * The host's own TCP acknowledges every segment at once (route attribute quickack). Of its ACKs this qdisc lets those
 * leave that the emulated receiver would send: of segments in order one ACK for so many, or a time after the first one;
 * an ACK that is held back is replaced by the next, which says all that it said. Whatever tells of data out of order,
 * fills a gap, updates a window, or carries data or flags is sent at once, and what was held with it. The timer is the
 * connection's own and starts with the first segment that is not acknowledged.
 *
 * Selective acknowledgements can be cut or suppressed (sack.c), and data out of order refused (backlog.c).
 *
 * What is held counts as this qdisc's backlog; an ACK that another one replaced was never sent, and counts nowhere. All
 * else passes in order, without a limit: a veth takes what it is given.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ip.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <net/netlink.h>
#include <net/tcp.h>

#include "receiver.h"

/* Linux' own socket that sent an IPv4 segment, NULL for anything else. */
static struct sock *sender(const struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	if (skb->protocol != htons(ETH_P_IP) || !sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return NULL;
	return ip_hdr(skb)->protocol == IPPROTO_TCP ? sk : NULL;
}

static bool is_segment(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) && skb->sk && ip_hdr(skb)->protocol == IPPROTO_TCP &&
	       !ip_is_fragment(ip_hdr(skb)) && skb_transport_header_was_set(skb);
}

static bool is_pure_ack(const struct sk_buff *skb)
{
	const struct tcphdr *tcp = tcp_hdr(skb);

	return tcp->ack && !tcp->syn && !tcp->fin && !tcp->rst && !tcp->urg && !tcp->ece && !tcp->cwr &&
	       skb->len == skb_transport_offset(skb) + tcp->doff * 4;
}

static void drop_held(struct Qdisc *sch, struct receiver_flow *flow, struct sk_buff **to_free)
{
	if (!flow->held)
		return;
	list_del_init(&flow->waiting);
	qdisc_qstats_backlog_dec(sch, flow->held);
	sch->q.qlen--;
	__qdisc_drop(flow->held, to_free);
	flow->held = NULL;
}

static void hold(struct Qdisc *sch, struct receiver_flow *flow, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct receiver *receiver = qdisc_priv(sch);
	bool first = !flow->held;

	if (first) {
		flow->due_ns = ktime_get_ns() + (u64)receiver->options.delay_us * NSEC_PER_USEC;
	} else {
		qdisc_qstats_backlog_dec(sch, flow->held);
		sch->q.qlen--;
		__qdisc_drop(flow->held, to_free);
	}
	flow->held = skb;
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	if (!first)
		return;
	list_add_tail(&flow->waiting, &receiver->waiting);
	if (list_is_singular(&receiver->waiting))
		qdisc_watchdog_schedule_ns(&receiver->watchdog, flow->due_ns);
}

/* Whether an ACK says only that one more segment has come in order. */
static bool is_ordinary(struct receiver_flow *flow, const struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	bool was_disordered = flow->disordered;
	u64 before = flow->received;

	flow->disordered = !RB_EMPTY_ROOT(&tp->out_of_order_queue);
	flow->received = tp->bytes_received;
	return is_pure_ack(skb) && sk->sk_state == TCP_ESTABLISHED && !was_disordered && !flow->disordered &&
	       flow->received > before;
}

/* The connection of a segment on its way out; a SYN begins it anew. */
static struct receiver_flow *connection(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	const struct iphdr *ip = ip_hdr(skb);
	const struct tcphdr *tcp = tcp_hdr(skb);
	struct receiver_tuple tuple = { ip->saddr, ip->daddr, tcp->source, tcp->dest };
	struct receiver *receiver = qdisc_priv(sch);
	struct receiver_flow *flow = receiver_find(receiver, &tuple);
	u32 next = ntohl(tcp->ack_seq);

	if (!tcp->ack && !tcp->syn)
		return flow;
	if (!flow)
		return receiver_add(receiver, &tuple, next);
	if (!tcp->syn) {
		if (flow->received || flow->blocks)
			receiver_acknowledged(flow, next);
		else
			flow->next = next;	/* of an opener's SYN it could not be known */
		return flow;
	}
	drop_held(sch, flow, to_free);
	flow->received = 0;
	flow->unacknowledged = 0;
	flow->quick = 0;
	flow->disordered = false;
	receiver_resume(flow);
	flow->blocks = 0;
	flow->next = next;
	return flow;
}

static int enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct receiver *receiver = qdisc_priv(sch);
	const struct receiver_options *options = &receiver->options;
	struct receiver_flow *flow;
	struct sock *sk;
	u32 blocks = options->sack_blocks;
	bool suppressed;

	if (!is_segment(skb))
		return qdisc_enqueue_tail(skb, sch);
	spin_lock(&receiver->lock);
	flow = connection(sch, skb, to_free);
	suppressed = flow && flow->suppressed;
	spin_unlock(&receiver->lock);
	if (suppressed)
		blocks = 0;
	sk = sender(skb);
	if (!flow || !sk || tcp_hdr(skb)->syn)
		return qdisc_enqueue_tail(skb, sch);
	if (blocks < MOST_SACK_BLOCKS && receiver_limit_sack(skb, blocks))
		return qdisc_drop(skb, sch, to_free);
	if (suppressed && is_pure_ack(skb)) {
		spin_lock(&receiver->lock);
		if (flow->suppressed)
			receiver_remember(flow, skb);
		spin_unlock(&receiver->lock);
	}
	if (is_ordinary(flow, sk, skb)) {
		if (flow->quick < options->quick_first) {
			flow->quick++;
		} else if (++flow->unacknowledged < options->acknowledge_every) {
			hold(sch, flow, skb, to_free);
			return NET_XMIT_SUCCESS;
		}
	}
	flow->unacknowledged = 0;
	drop_held(sch, flow, to_free);
	return qdisc_enqueue_tail(skb, sch);
}

/* Lets the ACKs go whose time has come. */
static void release(struct Qdisc *sch)
{
	struct receiver *receiver = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct receiver_flow *flow, *next;

	list_for_each_entry_safe(flow, next, &receiver->waiting, waiting) {
		if (flow->due_ns > now) {
			qdisc_watchdog_schedule_ns(&receiver->watchdog, flow->due_ns);
			return;
		}
		list_del_init(&flow->waiting);
		flow->unacknowledged = 0;
		sch->q.qlen--;	/* it is counted again by the queue; the backlog stays as it is */
		__qdisc_enqueue_tail(flow->held, &sch->q);
		flow->held = NULL;
	}
}

static struct sk_buff *dequeue(struct Qdisc *sch)
{
	struct receiver *receiver = qdisc_priv(sch);

	if (!list_empty(&receiver->waiting))
		release(sch);
	return qdisc_dequeue_head(sch);
}

static int init(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *extack)
{
	struct receiver *receiver = qdisc_priv(sch);
	struct receiver_options *options = &receiver->options;

	qdisc_watchdog_init(&receiver->watchdog, sch);
	INIT_LIST_HEAD(&receiver->waiting);
	spin_lock_init(&receiver->lock);
	hash_init(receiver->flows);
	if (!given || nla_len(given) < sizeof(*options)) {
		NL_SET_ERR_MSG_MOD(extack, "options are missing");
		return -EINVAL;
	}
	memcpy(options, nla_data(given), sizeof(*options));
	if (!options->acknowledge_every || options->sack_blocks > MOST_SACK_BLOCKS ||
	    options->backlog_blocks > MOST_BACKLOG_BLOCKS || (options->acknowledge_every > 1 && !options->delay_us)) {
		NL_SET_ERR_MSG_MOD(extack, "an option is out of its range");
		return -EINVAL;
	}
	return options->backlog_blocks ? receiver_listen(receiver, sch) : 0;
}

static void reset(struct Qdisc *sch)
{
	struct receiver *receiver = qdisc_priv(sch);
	struct receiver_flow *flow, *next;

	qdisc_reset_queue(sch);
	list_for_each_entry_safe(flow, next, &receiver->waiting, waiting) {
		list_del_init(&flow->waiting);
		rtnl_kfree_skbs(flow->held, flow->held);
		flow->held = NULL;
		flow->unacknowledged = 0;
	}
	sch->q.qlen = 0;
	qdisc_watchdog_cancel(&receiver->watchdog);
}

/* Also called when init() failed. */
static void destroy(struct Qdisc *sch)
{
	struct receiver *receiver = qdisc_priv(sch);

	qdisc_watchdog_cancel(&receiver->watchdog);
	receiver_deafen(receiver, sch);
	receiver_forget(receiver);
}

/* No options are dumped: tc, which does not know them, would print what is not JSON when asked for that. */
static struct Qdisc_ops receiver_ops __read_mostly = {
	.id		= RECEIVER_KIND,
	.priv_size	= sizeof(struct receiver),
	.enqueue	= enqueue,
	.dequeue	= dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= init,
	.reset		= reset,
	.destroy	= destroy,
	.owner		= THIS_MODULE,
};

static int __init load(void)
{
	return register_qdisc(&receiver_ops);
}

static void __exit unload(void)
{
	unregister_qdisc(&receiver_ops);
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: ACK schemes and selective acknowledgements of other receivers");
