// SPDX-License-Identifier: GPL-2.0
/*
 * howdah_hop: what hops of the Internet do to packets besides delaying them, as a queueing discipline below a delay
 * line: an MTU with or without ICMP, cleared ECN fields, TCP options that do not survive, packets that are lost by
 * their number, that come twice, or with a bit turned over.
 *
 * Nothing is held: what enters leaves as soon as the delay line asks. Each packet draws two numbers, whatever becomes
 * of it, so that the fate of the N-th packet depends on the seed alone.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ip.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "hop.h"

static bool is_ipv4(struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) && pskb_may_pull(skb, skb_network_offset(skb) + sizeof(struct iphdr));
}

static bool is_listed(struct hop *hop, u32 number)
{
	while (hop->next_lost < hop->options.lost_count && hop->lost[hop->next_lost] < number)
		hop->next_lost++;
	return hop->next_lost < hop->options.lost_count && hop->lost[hop->next_lost] == number;
}

/* Whether an IPv4 packet still goes on. */
static bool treat(struct hop *hop, struct Qdisc *sch, struct sk_buff *skb)
{
	const struct hop_options *options = &hop->options;
	struct hop_stats *stats = &hop->stats;
	u32 bytes = skb->len - skb_network_offset(skb);

	if (options->mtu && hop_is_large(skb, options->mtu)) {
		stats->too_large++;
		if (options->flags & HOP_ANSWERS)
			stats->answered += hop_answer(skb, qdisc_dev(sch), options->mtu);
		return false;
	}
	if (options->flags & HOP_CLEARS_ECN)
		stats->cleared += hop_clear_ecn(skb);
	if (options->strips)
		stats->stripped += hop_strip(skb, options->strips);
	if (bytes > stats->largest)
		stats->largest = bytes;
	return true;
}

static void add_copy(struct hop *hop, struct Qdisc *sch, struct sk_buff *skb)
{
	struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC);
	unsigned int bytes = qdisc_pkt_len(skb);

	if (!copy)
		return;
	hop->stats.duplicated++;
	qdisc_enqueue_tail(copy, sch);
	qdisc_tree_reduce_backlog(sch, -1, -(int)bytes);	/* what is above holds one more */
}

static int enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct hop *hop = qdisc_priv(sch);
	u32 twice, wrong;

	if (!(hop->options.flags & HOP_ACTIVE))
		return qdisc_enqueue_tail(skb, sch);
	twice = prandom_u32_state(&hop->random);
	wrong = prandom_u32_state(&hop->random);
	if (is_listed(hop, ++hop->stats.seen)) {
		hop->stats.lost++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (is_ipv4(skb) && !treat(hop, sch, skb))
		return qdisc_drop(skb, sch, to_free);
	if (twice < hop->options.duplicates)
		add_copy(hop, sch, skb);
	if (wrong < hop->options.corrupts && is_ipv4(skb))	/* the copy is whole */
		hop->stats.corrupted += hop_corrupt(skb, wrong);
	return qdisc_enqueue_tail(skb, sch);
}

static int change(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *extack)
{
	struct hop *hop = qdisc_priv(sch);
	struct hop_options options;
	size_t bytes;
	u32 *lost = NULL;

	if (!given || nla_len(given) < sizeof(options)) {
		NL_SET_ERR_MSG_MOD(extack, "options are missing");
		return -EINVAL;
	}
	memcpy(&options, nla_data(given), sizeof(options));
	bytes = options.lost_count * sizeof(*lost);
	if (options.lost_count > MOST_LOST || nla_len(given) < sizeof(options) + bytes) {
		NL_SET_ERR_MSG_MOD(extack, "the list of lost packets is too long or cut");
		return -EINVAL;
	}
	if (bytes) {
		lost = kvmalloc(bytes, GFP_KERNEL);
		if (!lost)
			return -ENOMEM;
		memcpy(lost, (const u8 *)nla_data(given) + sizeof(options), bytes);
	}
	sch_tree_lock(sch);
	swap(hop->lost, lost);
	hop->options = options;
	hop->next_lost = 0;
	prandom_seed_state(&hop->random, options.seed);
	sch_tree_unlock(sch);
	kvfree(lost);
	return 0;
}

static void destroy(struct Qdisc *sch)
{
	struct hop *hop = qdisc_priv(sch);

	kvfree(hop->lost);
}

static int dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct hop *hop = qdisc_priv(sch);
	struct hop_stats stats;

	sch_tree_lock(sch);
	stats = hop->stats;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(dump, &stats, sizeof(stats));
}

/* No options are dumped: tc, which does not know them, would print what is not JSON when asked for that. */
static struct Qdisc_ops hop_ops __read_mostly = {
	.id		= HOP_KIND,
	.priv_size	= sizeof(struct hop),
	.enqueue	= enqueue,
	.dequeue	= qdisc_dequeue_head,
	.peek		= qdisc_peek_head,
	.init		= change,
	.change		= change,
	.reset		= qdisc_reset_queue,
	.destroy	= destroy,
	.dump_stats	= dump_stats,
	.owner		= THIS_MODULE,
};

static int __init load(void)
{
	return register_qdisc(&hop_ops);
}

static void __exit unload(void)
{
	unregister_qdisc(&hop_ops);
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: MTU, middleboxes, lost, repeated and damaged packets");
