// SPDX-License-Identifier: GPL-2.0
/* The connections of a receiver, by addresses and ports. */
#include <linux/jhash.h>
#include <linux/slab.h>

#include "receiver.h"

static u32 hash(const struct receiver_tuple *tuple)
{
	return jhash_3words((__force u32)tuple->near, (__force u32)tuple->far,
			    (__force u32)tuple->near_port << 16 | (__force u32)tuple->far_port, 0);
}

static bool same(const struct receiver_tuple *one, const struct receiver_tuple *other)
{
	return one->near == other->near && one->far == other->far && one->near_port == other->near_port &&
	       one->far_port == other->far_port;
}

/* Caller holds receiver->lock, here and below. */
struct receiver_flow *receiver_find(struct receiver *receiver, const struct receiver_tuple *tuple)
{
	struct receiver_flow *flow;

	hash_for_each_possible(receiver->flows, flow, node, hash(tuple))
		if (same(&flow->tuple, tuple))
			return flow;
	return NULL;
}

/* NULL where there is no memory: the connection's ACKs are then left as they are. */
struct receiver_flow *receiver_add(struct receiver *receiver, const struct receiver_tuple *tuple, u32 next)
{
	struct receiver_flow *flow = kzalloc(sizeof(*flow), GFP_ATOMIC | __GFP_NOWARN);

	if (!flow)
		return NULL;
	flow->tuple = *tuple;
	flow->next = next;
	INIT_LIST_HEAD(&flow->waiting);
	hash_add(receiver->flows, &flow->node, hash(tuple));
	return flow;
}

/* Nothing is out of order: data are taken again. */
void receiver_resume(struct receiver_flow *flow)
{
	flow->suppressed = false;
	kfree_skb(flow->answer);
	flow->answer = NULL;
}

/* All of them; no ACK waits any more. */
void receiver_forget(struct receiver *receiver)
{
	struct receiver_flow *flow;
	struct hlist_node *next;
	int bucket;

	hash_for_each_safe(receiver->flows, bucket, next, flow, node) {
		hash_del(&flow->node);
		receiver_resume(flow);
		kfree(flow->block);
		kfree(flow);
	}
}
