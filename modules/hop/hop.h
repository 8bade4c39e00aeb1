/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HOWDAH_HOP_H
#define HOWDAH_HOP_H

#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/types.h>

#define HOP_KIND "howdah_hop"
#define MOST_LOST 12000		/* an attribute of netlink has 64 kB */

#define HOP_ACTIVE BIT(0)
#define HOP_ANSWERS BIT(1)	/* what is too large, with "fragmentation needed" */
#define HOP_CLEARS_ECN BIT(2)

/* TCA_OPTIONS of the qdisc, followed by the numbers of the packets that are lost; howdah/profile/middlebox.py. */
struct hop_options {
	__u64 seed;
	__u32 flags;
	__u32 mtu;		/* 0: no limit */
	__u32 strips;		/* bit N: the TCP option of kind N */
	__u32 duplicates;	/* of 2^32 - 1 */
	__u32 corrupts;
	__u32 lost_count;
};

/* TCA_STATS_APP, of packets while the hop was active. */
struct hop_stats {
	__u32 seen;
	__u32 lost;
	__u32 too_large;
	__u32 answered;
	__u32 cleared;
	__u32 stripped;
	__u32 duplicated;
	__u32 corrupted;
	__u32 largest;		/* bytes of the largest IPv4 packet that passed */
};

struct hop {
	struct hop_options options;
	struct hop_stats stats;
	struct rnd_state random;
	u32 *lost;		/* sorted */
	u32 next_lost;		/* index */
};

bool hop_is_large(const struct sk_buff *skb, u32 mtu);
bool hop_answer(struct sk_buff *skb, const struct net_device *device, u32 mtu);
bool hop_clear_ecn(struct sk_buff *skb);
bool hop_strip(struct sk_buff *skb, u32 kinds);
bool hop_corrupt(struct sk_buff *skb, u32 random);

#endif
