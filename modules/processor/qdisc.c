// SPDX-License-Identifier: GPL-2.0
/*
 * howdah_processor: a host whose processor takes its time, as an ingress queueing discipline of the host's interface.
 *
 * Segments that arrive wait in one queue for one processor. It takes them in order, each for as long as it costs
 * (cost.c), and hands them to TCP when it is done. What arrives at a full queue is dropped and counted. All else that
 * arrives passes at once. Captures and the interface's counters see a segment when it arrives, so the path ends before
 * the queue. TCP's own timers do not wait: they are as free as an interrupt.
 *
 * The processor never rests while a segment waits. Each begins when the one before is done, however late its timer is,
 * so the time that it was busy is the sum of the costs.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/version.h>
#include <net/gen_stats.h>
#include <net/netlink.h>

#include "processor.h"

/* Caller holds processor->lock, here and below. */
static void enqueue(struct processor *processor, struct sk_buff *skb)
{
	skb_orphan(skb);
	__skb_queue_tail(&processor->queue, skb);
	processor->sch->q.qlen++;
	qdisc_qstats_backlog_inc(processor->sch, skb);
}

static struct sk_buff *dequeue(struct processor *processor)
{
	struct sk_buff *skb = __skb_dequeue(&processor->queue);

	if (!skb)
		return NULL;
	processor->stats.served++;
	processor->sch->q.qlen--;
	qdisc_qstats_backlog_dec(processor->sch, skb);
	return skb;
}

/* To TCP, at the place in the stack where the device's handler took it: captures have seen it. Only from work(). */
static void deliver(struct processor *processor, struct sk_buff *skb)
{
#if defined(CONFIG_NET_XGRESS) || defined(CONFIG_NET_CLS_ACT)
	skb->tc_skip_classify = 1;
#endif
	processor->delivered = skb;
	netif_receive_skb_core(skb);
	processor->delivered = NULL;
}

enum hrtimer_restart processor_work(struct hrtimer *timer)
{
	struct processor *processor = container_of(timer, struct processor, timer);
	struct sk_buff *skb;
	u64 cost_ns;

	for (;;) {
		spin_lock(&processor->lock);
		skb = dequeue(processor);
		spin_unlock(&processor->lock);
		if (skb)
			deliver(processor, skb);
		spin_lock(&processor->lock);
		skb = skb_peek(&processor->queue);
		if (!skb) {
			processor->busy = false;
			processor->stats.rests++;
			spin_unlock(&processor->lock);
			return HRTIMER_NORESTART;
		}
		cost_ns = processor_take(processor, skb);
		processor->done_ns += cost_ns;
		spin_unlock(&processor->lock);
		if (cost_ns) {
			hrtimer_set_expires(timer, ns_to_ktime(processor->done_ns));
			return HRTIMER_RESTART;
		}
	}
}

static bool is_full(const struct processor *processor)
{
	return skb_queue_len(&processor->queue) > processor->options.queue_packets;
}

rx_handler_result_t processor_receive(struct sk_buff **pskb)
{
	struct sk_buff *skb = *pskb;
	struct processor *processor = rcu_dereference(skb->dev->rx_handler_data);
	struct processor_stats *stats = &processor->stats;
	u64 now_ns, cost_ns;

	if (skb == READ_ONCE(processor->delivered) || !processor_wants(skb))
		return RX_HANDLER_PASS;
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return RX_HANDLER_CONSUMED;
	*pskb = skb;
	spin_lock(&processor->lock);
	stats->arrived++;
	if (processor->busy) {
		if (is_full(processor)) {
			stats->dropped++;
			qdisc_qstats_drop(processor->sch);
			spin_unlock(&processor->lock);
			kfree_skb(skb);
			return RX_HANDLER_CONSUMED;
		}
		enqueue(processor, skb);
		spin_unlock(&processor->lock);
		return RX_HANDLER_CONSUMED;
	}
	now_ns = ktime_get_ns();
	if (processor->done_ns < now_ns)
		processor->done_ns = now_ns;
	cost_ns = processor_take(processor, skb);
	processor->done_ns += cost_ns;
	if (processor->done_ns <= now_ns) {
		stats->served++;
		spin_unlock(&processor->lock);
		return RX_HANDLER_PASS;
	}
	processor->busy = true;
	enqueue(processor, skb);
	hrtimer_start(&processor->timer, ns_to_ktime(processor->done_ns), HRTIMER_MODE_ABS_SOFT);
	spin_unlock(&processor->lock);
	return RX_HANDLER_CONSUMED;
}

static int init(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *extack)
{
	struct processor *processor = qdisc_priv(sch);
	struct processor_options *options = &processor->options;
	int error;

	processor->sch = sch;
	spin_lock_init(&processor->lock);
	__skb_queue_head_init(&processor->queue);
	hash_init(processor->flows);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&processor->timer, processor_work, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#else
	hrtimer_init(&processor->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	processor->timer.function = processor_work;
#endif
	if (sch->parent != TC_H_INGRESS) {
		NL_SET_ERR_MSG_MOD(extack, "it works on what arrives: its parent is ingress");
		return -EOPNOTSUPP;
	}
	if (!given || nla_len(given) < sizeof(*options)) {
		NL_SET_ERR_MSG_MOD(extack, "options are missing");
		return -EINVAL;
	}
	memcpy(options, nla_data(given), sizeof(*options));
	if (options->search >= PROCESSOR_SEARCHES) {
		NL_SET_ERR_MSG_MOD(extack, "an option is out of its range");
		return -EINVAL;
	}
	error = netdev_rx_handler_register(qdisc_dev(sch), processor_receive, processor);
	processor->listens = !error;
	return error;
}

/* The device is down: nothing arrives. */
static void reset(struct Qdisc *sch)
{
	struct processor *processor = qdisc_priv(sch);

	hrtimer_cancel(&processor->timer);
	spin_lock_bh(&processor->lock);
	__skb_queue_purge(&processor->queue);
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	processor->busy = false;
	spin_unlock_bh(&processor->lock);
}

/* Also called when init() failed. */
static void destroy(struct Qdisc *sch)
{
	struct processor *processor = qdisc_priv(sch);

	if (processor->listens)
		netdev_rx_handler_unregister(qdisc_dev(sch));
	reset(sch);
	processor_forget(processor);
}

/* The clock is read with the lock held: in a user-mode kernel in virtual time it costs nothing there. */
static int dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct processor *processor = qdisc_priv(sch);
	struct processor_stats stats;
	u64 now_ns;

	spin_lock_bh(&processor->lock);
	now_ns = ktime_get_ns();
	stats = processor->stats;
	stats.waiting = skb_queue_len(&processor->queue);
	stats.busy_ns = stats.cost_ns;
	if (processor->busy && processor->done_ns > now_ns)
		stats.busy_ns -= processor->done_ns - now_ns;
	spin_unlock_bh(&processor->lock);
	return gnet_stats_copy_app(dump, &stats, sizeof(stats));
}

/* No options are dumped: tc, which does not know them, would print what is not JSON when asked for that. */
static struct Qdisc_ops processor_ops __read_mostly = {
	.id		= PROCESSOR_KIND,
	.static_flags	= TCQ_F_INGRESS,
	.priv_size	= sizeof(struct processor),
	.init		= init,
	.reset		= reset,
	.destroy	= destroy,
	.dump_stats	= dump_stats,
	.owner		= THIS_MODULE,
};

static int __init load(void)
{
	return register_qdisc(&processor_ops);
}

static void __exit unload(void)
{
	unregister_qdisc(&processor_ops);
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: a host whose processor takes its time");
