// SPDX-License-Identifier: GPL-2.0
/*
 * A receiver that keeps only so much data out of order: what arrives is looked at before TCP gets it, and what exceeds
 * the limit is discarded. Captures on the device have seen it by then; no counter of drops moves. It is answered as TCP
 * answers any segment out of order, with a duplicate of the last ACK.
 */
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "receiver.h"

static void remove_blocks(struct receiver_flow *flow, u32 first, u32 count)
{
	flow->blocks -= count;
	memmove(&flow->block[first], &flow->block[first + count], (flow->blocks - first) * sizeof(*flow->block));
}

/* Everything up to @next is there; caller holds receiver->lock, here and below. */
void receiver_acknowledged(struct receiver_flow *flow, u32 next)
{
	if (after(next, flow->next))
		flow->next = next;
	while (flow->blocks && !after(flow->block[0].start, flow->next)) {
		if (after(flow->block[0].end, flow->next))
			flow->next = flow->block[0].end;
		remove_blocks(flow, 0, 1);
	}
	if (!flow->blocks)
		receiver_resume(flow);
}

/* An ACK that leaves while nothing more is taken out of order. */
void receiver_remember(struct receiver_flow *flow, const struct sk_buff *ack)
{
	kfree_skb(flow->answer);
	flow->answer = skb_copy(ack, GFP_ATOMIC | __GFP_NOWARN);
}

/* Adds [start, end) to the sorted blocks, joining those it touches. There is room for one more. */
static void insert(struct receiver_flow *flow, u32 start, u32 end)
{
	u32 first = 0, last;

	while (first < flow->blocks && before(flow->block[first].end, start))
		first++;
	last = first;
	while (last < flow->blocks && !after(flow->block[last].start, end)) {
		if (before(flow->block[last].start, start))
			start = flow->block[last].start;
		if (after(flow->block[last].end, end))
			end = flow->block[last].end;
		last++;
	}
	if (last == first) {
		memmove(&flow->block[first + 1], &flow->block[first], (flow->blocks - first) * sizeof(*flow->block));
		flow->blocks++;
	} else {
		remove_blocks(flow, first + 1, last - first - 1);
	}
	flow->block[first].start = start;
	flow->block[first].end = end;
}

/* Whether the receiver takes the data [start, end). */
static bool takes(struct receiver_flow *flow, u32 start, u32 end, u32 limit)
{
	if (!after(start, flow->next)) {
		receiver_acknowledged(flow, end);
		return true;
	}
	if (flow->suppressed)
		return false;
	if (!flow->block) {
		flow->block = kmalloc_array(limit, sizeof(*flow->block), GFP_ATOMIC | __GFP_NOWARN);
		if (!flow->block)
			return true;
	}
	insert(flow, start, end);
	flow->suppressed = flow->blocks >= limit;
	return true;
}

static rx_handler_result_t receive(struct sk_buff **pskb)
{
	struct sk_buff *skb = *pskb;
	struct Qdisc *sch = rcu_dereference(skb->dev->rx_handler_data);
	struct receiver *receiver = qdisc_priv(sch);
	struct receiver_flow *flow;
	const struct tcphdr *tcp;
	const struct iphdr *ip;
	struct receiver_tuple tuple;
	struct tcphdr tcp_copy;
	struct iphdr ip_copy;
	struct sk_buff *answer = NULL;
	bool taken = true;
	int payload;
	u32 start;

	if (skb->protocol != htons(ETH_P_IP))
		return RX_HANDLER_PASS;
	ip = skb_header_pointer(skb, 0, sizeof(ip_copy), &ip_copy);
	if (!ip || ip->version != 4 || ip->protocol != IPPROTO_TCP || ip_is_fragment(ip))
		return RX_HANDLER_PASS;
	tcp = skb_header_pointer(skb, ip->ihl * 4, sizeof(tcp_copy), &tcp_copy);
	if (!tcp || tcp->syn || tcp->rst)
		return RX_HANDLER_PASS;
	payload = ntohs(ip->tot_len) - ip->ihl * 4 - tcp->doff * 4;
	if (payload <= 0)
		return RX_HANDLER_PASS;
	tuple = (struct receiver_tuple){ ip->daddr, ip->saddr, tcp->dest, tcp->source };
	start = ntohl(tcp->seq);

	spin_lock(&receiver->lock);
	flow = receiver_find(receiver, &tuple);
	if (flow)
		taken = takes(flow, start, start + payload, receiver->options.backlog_blocks);
	if (!taken && flow->answer)
		answer = skb_copy(flow->answer, GFP_ATOMIC | __GFP_NOWARN);
	spin_unlock(&receiver->lock);
	if (taken)
		return RX_HANDLER_PASS;
	if (answer)
		dev_queue_xmit(answer);
	kfree_skb(skb);
	return RX_HANDLER_CONSUMED;
}

/* Caller holds RTNL, here and below. */
int receiver_listen(struct receiver *receiver, struct Qdisc *sch)
{
	int error = netdev_rx_handler_register(qdisc_dev(sch), receive, sch);

	receiver->listens = !error;
	return error;
}

void receiver_deafen(struct receiver *receiver, struct Qdisc *sch)
{
	if (receiver->listens)
		netdev_rx_handler_unregister(qdisc_dev(sch));
	receiver->listens = false;
}
