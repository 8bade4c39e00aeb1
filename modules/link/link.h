/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HOWDAH_LINK_H
#define HOWDAH_LINK_H

#include <linux/bits.h>
#include <linux/skbuff.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <net/pkt_sched.h>

#define LINK_KIND "howdah_link"
#define LINK_MOST_OPPORTUNITIES BIT(25)
#define LINK_MOST_LATE_NS (10 * NSEC_PER_MSEC)	/* that a timer of the constant rate makes up for */

/* Each TCA_OPTIONS begins with one; howdah/linux/netlink/discipline/howdah_link.py writes them. */
enum link_message {
	LINK_SETTINGS,		/* struct link_settings, when the link is made */
	LINK_GAPS,		/* struct link_gaps: the trace follows in parts, in order */
	LINK_BEGIN,		/* struct link_begin: the trace holds from then on */
	LINK_END,		/* the constant rate holds again */
};

struct link_settings {
	__u32 message;
	__u32 opportunity_bytes;
	__s32 overhead_bytes;		/* added to each packet's length as the interface counts it */
	__u32 opportunities;		/* of a round, as many as gaps follow */
	__u64 rate_bits_per_second;	/* while no trace holds */
	__u64 round_ns;			/* after which the trace begins again */
};

struct link_gaps {
	__u32 message;
	__u32 gaps_us[];		/* each from the opportunity before, the first from the beginning of a round */
};

struct link_begin {
	__u32 message;
	__u32 unused;
	__u64 begin_ns;			/* CLOCK_MONOTONIC */
};

/* TCA_STATS_APP; all of one instant, since the trace began. */
struct link_stats {
	__u64 begin_ns;			/* CLOCK_MONOTONIC; 0 before any began */
	__u64 until_ns;			/* the instant, or when the trace ended */
	__u64 passed;			/* opportunities */
	__u64 used;			/* of them, those that carried something */
	__u64 carried_bytes;		/* passed x opportunity_bytes = carried + unused */
	__u64 unused_bytes;
	__u64 sent_packets;		/* whose last byte was carried */
};

/* Where in the rounds of its trace a link is. */
struct link_trace {
	u32 *gaps_us;
	u32 opportunities;
	u32 known;			/* gaps so far */
	u64 round_ns;
	u64 length_ns;			/* sum of the gaps known */

	u64 begun_ns;			/* this round */
	u32 number;			/* of the next opportunity in it */
	u64 next_ns;			/* its time, CLOCK_MONOTONIC */
};

int link_trace_make(struct link_trace *trace, u32 opportunities, u64 round_ns);
int link_trace_add(struct link_trace *trace, const u32 *gaps_us, u32 count);
void link_trace_free(struct link_trace *trace);
int link_trace_begin(struct link_trace *trace, u64 begin_ns);
void link_trace_step(struct link_trace *trace);

struct link {
	struct Qdisc *queue;		/* the child */
	struct qdisc_watchdog watchdog;
	u32 opportunity_bytes;
	s32 overhead_bytes;
	u64 rate_bits_per_second;

	bool follows_trace;
	struct link_trace trace;
	struct sk_buff *begun;		/* some of its bytes were carried, or will be by the next opportunity */
	u32 left_bytes;			/* of it */
	struct sk_buff_head carried;	/* whole, on its way out */
	struct link_stats stats;

	u64 free_ns;			/* when the line is free, at the constant rate */
	bool waits;			/* for it */
};

#endif
