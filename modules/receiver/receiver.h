/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HOWDAH_RECEIVER_H
#define HOWDAH_RECEIVER_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <net/pkt_sched.h>

#define RECEIVER_KIND "howdah_receiver"
#define MOST_SACK_BLOCKS 4
#define MOST_BACKLOG_BLOCKS 65535

/* TCA_OPTIONS of the qdisc; howdah/profile/end.py says what each means. */
struct receiver_options {
	__u32 acknowledge_every;
	__u32 delay_us;
	__u32 quick_first;
	__u32 sack_blocks;
	__u32 backlog_blocks;
};

/* A connection, as its receiver sees it; in network byte order, as the headers have it. */
struct receiver_tuple {
	__be32 near;
	__be32 far;
	__be16 near_port;
	__be16 far_port;
};

/* Data that arrived beyond a gap. */
struct receiver_block {
	u32 start;
	u32 end;
};

struct receiver_flow {
	struct hlist_node node;
	struct receiver_tuple tuple;

	/* the ACK that waits, in the qdisc's order of due_ns; only under the qdisc's lock */
	struct list_head waiting;
	struct sk_buff *held;
	u64 due_ns;
	u64 received;		/* payload bytes in order, at the last ACK */
	u32 unacknowledged;	/* segments in order that no ACK has left for */
	u32 quick;		/* ACKs of segments in order that were not delayed because they are the first */
	bool disordered;	/* at the last ACK data lay beyond a gap */

	/* what arrived, for the backlog's limit; under receiver->lock */
	u32 next;		/* expected sequence number */
	bool suppressed;
	struct sk_buff *answer;	/* while suppressed: the last ACK, a copy of which answers what is discarded */
	u32 blocks;
	struct receiver_block *block;	/* sorted, apart from each other; as many as the limit */
};

struct receiver {
	struct receiver_options options;
	struct qdisc_watchdog watchdog;
	struct list_head waiting;	/* flows with a held ACK */
	bool listens;			/* has the device's rx_handler */

	spinlock_t lock;		/* the table, and the flows' backlogs */
	DECLARE_HASHTABLE(flows, 8);
};

struct receiver_flow *receiver_find(struct receiver *receiver, const struct receiver_tuple *tuple);
struct receiver_flow *receiver_add(struct receiver *receiver, const struct receiver_tuple *tuple, u32 next);
void receiver_resume(struct receiver_flow *flow);
void receiver_forget(struct receiver *receiver);

int receiver_limit_sack(struct sk_buff *skb, unsigned int blocks);

void receiver_acknowledged(struct receiver_flow *flow, u32 next);
void receiver_remember(struct receiver_flow *flow, const struct sk_buff *ack);
int receiver_listen(struct receiver *receiver, struct Qdisc *sch);
void receiver_deafen(struct receiver *receiver, struct Qdisc *sch);

#endif
