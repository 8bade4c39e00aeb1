/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HOWDAH_PROCESSOR_H
#define HOWDAH_PROCESSOR_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <net/pkt_sched.h>

#include "search.h"

#define PROCESSOR_KIND "howdah_cpu" /* 15 letters at most */

/* TCA_OPTIONS of the qdisc; howdah/profile/processor.py says what each means. */
struct processor_options {
	__u32 packet_ns;
	__u32 ack_ns;
	__u32 searched_ns;
	__u32 search;		/* enum processor_search */
	__u32 queue_packets;
};

/* TCA_STATS_APP; all are of one instant. arrived = served + dropped + waiting. */
struct processor_stats {
	__u64 arrived;
	__u64 served;
	__u64 dropped;
	__u64 waiting;		/* with the one in service */
	__u64 begun;		/* served, and the one in service */
	__u64 acks;		/* of those begun */
	__u64 searched;		/* packets passed for those begun */
	__u64 cost_ns;		/* of those begun */
	__u64 busy_ns;		/* what of it is done */
	__u64 rests;		/* times that nothing was left to do */
};

/* A connection of which something was searched; in network byte order, as headers have it. */
struct processor_tuple {
	__be32 near;
	__be32 far;
	__be16 near_port;
	__be16 far_port;
};

struct processor_flow {
	struct hlist_node node;
	struct processor_tuple tuple;
	struct processor_memory memory;
};

struct processor {
	struct processor_options options;
	struct Qdisc *sch;
	bool listens;			/* has the device's rx_handler */

	spinlock_t lock;		/* everything below */
	struct sk_buff_head queue;	/* the first is in service */
	struct hrtimer timer;
	bool busy;
	u64 done_ns;			/* when the one in service is done, or the last was; CLOCK_MONOTONIC */
	struct processor_stats stats;	/* but waiting and busy_ns, which are of the instant of a reading */
	DECLARE_HASHTABLE(flows, 6);

	struct sk_buff *delivered;	/* on its way to TCP; read by whoever delivers it alone */
};

u64 processor_take(struct processor *processor, struct sk_buff *skb);
void processor_forget(struct processor *processor);

bool processor_wants(const struct sk_buff *skb);
rx_handler_result_t processor_receive(struct sk_buff **pskb);
enum hrtimer_restart processor_work(struct hrtimer *timer);

#endif
