/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_LINUX_HASHTABLE_H
#define SHIM_LINUX_HASHTABLE_H

#include <linux/bitops.h>
#include <linux/hash.h>
#include <linux/list.h>

#define DEFINE_HASHTABLE(name, bits)	struct hlist_head name[1 << (bits)]
#define DECLARE_HASHTABLE(name, bits)	struct hlist_head name[1 << (bits)]
#define HASH_SIZE(name)			ARRAY_SIZE(name)
#define HASH_BITS(name)			ilog2(HASH_SIZE(name))
#define hash_init(table)		memset(table, 0, sizeof(table))
#define hash_add(table, node, key)					\
	hlist_add_head(node, &(table)[hash_32(key, HASH_BITS(table))])
#define hash_add_rcu			hash_add
#define hash_del(node)			hlist_del_init(node)
#define hash_del_rcu			hash_del
#define hash_for_each_possible(table, p, member, key)			\
	hlist_for_each_entry(p, &(table)[hash_32(key, HASH_BITS(table))], member)
#define hash_for_each_possible_rcu	hash_for_each_possible
#define hash_for_each_safe(table, bucket, next, p, member)		\
	for ((bucket) = 0; (bucket) < (int)HASH_SIZE(table); (bucket)++)	\
		hlist_for_each_entry_safe(p, next, &(table)[bucket], member)
#define hash_for_each(table, bucket, p, member)				\
	for ((bucket) = 0; (bucket) < (int)HASH_SIZE(table); (bucket)++)	\
		hlist_for_each_entry(p, &(table)[bucket], member)

#endif
