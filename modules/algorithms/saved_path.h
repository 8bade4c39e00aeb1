/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ss_careful remembers of paths: one set of parameters for each remote address, in
 * a table of fixed size, 64 sets of four. The oldest entry of a set gives way, unless a
 * connection is using it.
 */
#ifndef HOWDAH_SAVED_PATH_H
#define HOWDAH_SAVED_PATH_H

#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/spinlock.h>
#include <net/tcp.h>

#define SAVED_PATH_SET_BITS	6
#define SAVED_PATH_WAYS		4

/**
 * struct saved_path - a path; under the lock of its table
 * @remote: address of the other end, IPv4 as mapped
 * @bytes: acknowledged in one RTT, 0: the entry is free
 * @rtt_us: smallest RTT of the connection
 * @saved: jiffies
 * @user: the connection that is jumping by it, only compared
 */
struct saved_path {
	struct in6_addr remote;
	u32 bytes;
	u32 rtt_us;
	unsigned long saved;
	const struct sock *user;
};

/* Of one network namespace. */
struct saved_path_table {
	spinlock_t lock;	/* of all that follows */
	struct saved_path paths[1 << SAVED_PATH_SET_BITS][SAVED_PATH_WAYS];
};

static inline void saved_path_table_init(struct saved_path_table *table)
{
	spin_lock_init(&table->lock);
}

static inline struct in6_addr saved_path_remote(const struct sock *sk)
{
	struct in6_addr remote;

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		return sk->sk_v6_daddr;
#endif
	ipv6_addr_set_v4mapped(sk->sk_daddr, &remote);
	return remote;
}

static inline struct saved_path *saved_path_set(struct saved_path_table *table,
						const struct in6_addr *remote)
{
	u32 folded = (__force u32)(remote->s6_addr32[0] ^ remote->s6_addr32[1] ^
				   remote->s6_addr32[2] ^ remote->s6_addr32[3]);

	return table->paths[hash_32(folded, SAVED_PATH_SET_BITS)];
}

static inline struct saved_path *saved_path_find(struct saved_path *set,
						 const struct in6_addr *remote)
{
	unsigned int i;

	for (i = 0; i < SAVED_PATH_WAYS; i++)
		if (set[i].bytes && ipv6_addr_equal(&set[i].remote, remote))
			return &set[i];
	return NULL;
}

/* A free entry, or the oldest that nobody uses; NULL: all are in use. */
static inline struct saved_path *saved_path_oldest(struct saved_path *set)
{
	struct saved_path *oldest = NULL;
	unsigned int i;

	for (i = 0; i < SAVED_PATH_WAYS; i++) {
		if (!set[i].bytes)
			return &set[i];
		if (!set[i].user &&
		    (!oldest || time_before(set[i].saved, oldest->saved)))
			oldest = &set[i];
	}
	return oldest;
}

static inline void saved_path_store(struct saved_path_table *table,
				    const struct sock *sk, u32 bytes, u32 rtt_us)
{
	struct in6_addr remote = saved_path_remote(sk);
	struct saved_path *path, *set = saved_path_set(table, &remote);

	spin_lock_bh(&table->lock);
	path = saved_path_find(set, &remote);
	if (!path) {
		path = saved_path_oldest(set);
		if (path)
			path->user = NULL;
	}
	if (path) {
		path->remote = remote;
		path->bytes = bytes;
		path->rtt_us = rtt_us;
		path->saved = jiffies;
	}
	spin_unlock_bh(&table->lock);
}

/**
 * saved_path_claim() - use what was saved, if nobody else does
 * @table: of the connection's network namespace
 * @sk: the connection
 * @lifetime: jiffies for which it may be used; what is older is forgotten
 * @bytes: set to what was acknowledged in one RTT
 * @rtt_us: set to the smallest RTT
 *
 * Return: whether there is something that no other connection uses;
 * saved_path_release() must follow
 */
static inline bool saved_path_claim(struct saved_path_table *table,
				    const struct sock *sk, unsigned long lifetime,
				    u32 *bytes, u32 *rtt_us)
{
	struct in6_addr remote = saved_path_remote(sk);
	struct saved_path *path, *set = saved_path_set(table, &remote);
	bool ours = false;

	spin_lock_bh(&table->lock);
	path = saved_path_find(set, &remote);
	if (path && !path->user) {
		if (time_after(jiffies, path->saved + lifetime)) {
			path->bytes = 0;
		} else {
			*bytes = path->bytes;
			*rtt_us = path->rtt_us;
			path->user = sk;
			ours = true;
		}
	}
	spin_unlock_bh(&table->lock);
	return ours;
}

/* The end of a claim; with @forget nobody is to use the parameters again. */
static inline void saved_path_release(struct saved_path_table *table,
				      const struct sock *sk, bool forget)
{
	struct in6_addr remote = saved_path_remote(sk);
	struct saved_path *path, *set = saved_path_set(table, &remote);

	spin_lock_bh(&table->lock);
	path = saved_path_find(set, &remote);
	if (path && path->user == sk) {
		path->user = NULL;
		if (forget)
			path->bytes = 0;
	}
	spin_unlock_bh(&table->lock);
}

#endif
