/* SPDX-License-Identifier: GPL-2.0-only */
/* Doubly linked lists, with the kernel's names; the "_rcu" ones are the same here. */
#ifndef SHIM_LINUX_LIST_H
#define SHIM_LINUX_LIST_H

#include <linux/types.h>

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#define LIST_HEAD_INIT(name)	{ &(name), &(name) }
#define LIST_HEAD(name)		struct list_head name = LIST_HEAD_INIT(name)
#define HLIST_HEAD_INIT		{ NULL }
#define HLIST_HEAD(name)	struct hlist_head name = { NULL }
#define INIT_HLIST_HEAD(head)	((head)->first = NULL)

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline void list_add(struct list_head *entry, struct list_head *after)
{
	entry->next = after->next;
	entry->prev = after;
	after->next->prev = entry;
	after->next = entry;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	list_add(entry, head->prev);
}

static inline void list_del(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	/* Used again, it is found. */
	entry->next = NULL;
	entry->prev = NULL;
}

static inline void list_del_init(struct list_head *entry)
{
	list_del(entry);
	INIT_LIST_HEAD(entry);
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	list_del(entry);
	list_add(entry, head);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *head)
{
	list_del(entry);
	list_add_tail(entry, head);
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void INIT_HLIST_NODE(struct hlist_node *node)
{
	node->next = NULL;
	node->pprev = NULL;
}

static inline bool hlist_unhashed(const struct hlist_node *node)
{
	return !node->pprev;
}

static inline bool hlist_empty(const struct hlist_head *head)
{
	return !head->first;
}

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	node->next = head->first;
	if (node->next)
		node->next->pprev = &node->next;
	head->first = node;
	node->pprev = &head->first;
}

static inline void hlist_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
	INIT_HLIST_NODE(node);
}

static inline void hlist_del_init(struct hlist_node *node)
{
	if (!hlist_unhashed(node))
		hlist_del(node);
}

#define list_entry(p, type, member)	container_of(p, type, member)
#define list_first_entry(head, type, member)				\
	list_entry((head)->next, type, member)
#define list_last_entry(head, type, member)				\
	list_entry((head)->prev, type, member)
#define list_first_entry_or_null(head, type, member)			\
	(list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_for_each_entry(p, head, member)				\
	for (p = list_first_entry(head, typeof(*p), member);		\
	     &p->member != (head);					\
	     p = list_entry(p->member.next, typeof(*p), member))
#define list_for_each_entry_safe(p, n, head, member)			\
	for (p = list_first_entry(head, typeof(*p), member),		\
	     n = list_entry(p->member.next, typeof(*p), member);	\
	     &p->member != (head);					\
	     p = n, n = list_entry(n->member.next, typeof(*n), member))

#define shim_hlist_entry(node, type, member)				\
({									\
	struct hlist_node *shim_node = (node);				\
	shim_node ? container_of(shim_node, type, member) : NULL;	\
})
#define hlist_entry(p, type, member)	container_of(p, type, member)
#define hlist_for_each_entry(p, head, member)				\
	for (p = shim_hlist_entry((head)->first, typeof(*p), member); p;	\
	     p = shim_hlist_entry(p->member.next, typeof(*p), member))
#define hlist_for_each_entry_safe(p, n, head, member)			\
	for (p = shim_hlist_entry((head)->first, typeof(*p), member);	\
	     p && ({ n = p->member.next; 1; });				\
	     p = shim_hlist_entry(n, typeof(*p), member))

#define list_add_rcu			list_add
#define list_add_tail_rcu		list_add_tail
#define list_del_rcu			list_del
#define list_for_each_entry_rcu		list_for_each_entry
#define hlist_add_head_rcu		hlist_add_head
#define hlist_del_rcu			hlist_del
#define hlist_del_init_rcu		hlist_del_init
#define hlist_for_each_entry_rcu	hlist_for_each_entry
#define rcu_read_lock()			((void)0)
#define rcu_read_unlock()		((void)0)
#define rcu_barrier()			((void)0)
#define synchronize_rcu()		((void)0)

#endif
