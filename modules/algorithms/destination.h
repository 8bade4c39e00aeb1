/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ss_cached keeps of destinations: a table of fixed size, 64 sets of four. An entry
 * that running connections use stays; of the others the oldest gives way. With all four
 * in use a further destination is not kept track of.
 */
#ifndef HOWDAH_DESTINATION_H
#define HOWDAH_DESTINATION_H

#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <net/tcp.h>

#define DESTINATION_SET_BITS	6
#define DESTINATION_WAYS	4

/* An IPv4 address is the mapped one. */
struct destination {
	__be32 words[4];
};

/**
 * struct route - a destination; under the lock of its table
 * @members: connections that run now, struct cached
 * @count: of them
 * @used: the entry names a destination
 * @known: a connection has ended, and the following is what it learnt
 * @window: packets
 * @ssthresh: packets, may be infinite
 * @srtt_us: smoothed RTT, 0 if it had none
 * @learnt: jiffies
 */
struct route {
	struct destination destination;
	struct list_head members;
	u32 count;
	bool used;
	bool known;
	u32 window;
	u32 ssthresh;
	u32 srtt_us;
	unsigned long learnt;
};

/* Of one network namespace. An entry in use stays where it is. */
struct destination_table {
	spinlock_t lock;	/* of all that follows */
	struct route routes[1 << DESTINATION_SET_BITS][DESTINATION_WAYS];
};

static inline void destination_table_init(struct destination_table *table)
{
	unsigned int set, way;

	spin_lock_init(&table->lock);
	for (set = 0; set < 1 << DESTINATION_SET_BITS; set++)
		for (way = 0; way < DESTINATION_WAYS; way++)
			INIT_LIST_HEAD(&table->routes[set][way].members);
}

/* The leading bits that fall into one word. */
static inline __be32 destination_mask(unsigned int bits)
{
	if (bits >= 32)
		return htonl(~0U);
	return bits ? htonl(~0U << (32 - bits)) : 0;
}

static inline struct destination destination_of(const struct sock *sk,
						u32 prefix_ipv4, u32 prefix_ipv6)
{
	struct destination to = {};

	to.words[2] = htonl(0xffff);
	to.words[3] = sk->sk_daddr & destination_mask(prefix_ipv4);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		unsigned int i, bits = prefix_ipv6;

		for (i = 0; i < 4; i++)
			to.words[i] = sk->sk_v6_daddr.s6_addr32[i] &
				      destination_mask(bits > 32 * i ? bits - 32 * i : 0);
	}
#endif
	return to;
}

/* An entry for a destination, its own or one that may be taken; NULL: all are in use. */
static inline struct route *route_to(struct destination_table *table,
				     const struct destination *to)
{
	u32 folded = (__force u32)(to->words[0] ^ to->words[1] ^ to->words[2] ^
				   to->words[3]);
	struct route *set = table->routes[hash_32(folded, DESTINATION_SET_BITS)];
	struct route *oldest = NULL;
	unsigned int i;

	for (i = 0; i < DESTINATION_WAYS; i++) {
		if (set[i].used && !memcmp(&set[i].destination, to, sizeof(*to)))
			return &set[i];
		if (set[i].count)
			continue;
		if (!oldest || !set[i].known ||
		    (oldest->known && time_before(set[i].learnt, oldest->learnt)))
			oldest = &set[i];
	}
	if (oldest) {
		oldest->destination = *to;
		oldest->used = true;
		oldest->known = false;
	}
	return oldest;
}

#endif
