// SPDX-License-Identifier: GPL-2.0
/*
 * howdah_wire: a delay line between two kernels, as a queueing discipline.
 *
 * All kernels of a run build the same network. Where a plan has netem with a delay, on the router's interface towards a
 * host, they have this qdisc. In the kernels in which the host does not live it takes every frame out of the network
 * and puts it, with the time, into the shared memory; in the one in which it does, it sends the frame on from the same
 * interface when its time has come, by the same kind of timer as netem.
 *
 * Its counters of a network are the sums over all kernels: what it sent is counted where frames arrive, and its backlog
 * is what left less what arrived, modulo 2^32.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/reboot.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <net/netlink.h>

#include "wire.h"

static int part = -1;
module_param(part, int, 0444);
MODULE_PARM_DESC(part, "which of the kernels this one is; -1: it is alone");

static struct Qdisc *wires[WIRE_MOST_WIRES];	/* all of this kernel; changed under RTNL */

static int leave(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct wire *wire = qdisc_priv(sch);

	if (!wire_put(wire->options.to, wire->options.wire, ktime_get_ns(), skb)) {
		wire->lost_frames++;
		pr_err_ratelimited("no room for a frame of the wire %u\n", wire->options.wire);
		return qdisc_drop(skb, sch, to_free);
	}
	wire->left_frames++;
	wire->left_bytes += qdisc_pkt_len(skb);
	sch->q.qlen++;
	sch->qstats.backlog += qdisc_pkt_len(skb);
	consume_skb(skb);
	/* To netem as a parent the frame is gone, and nobody dropped it. */
	return sch->parent == TC_H_ROOT ? NET_XMIT_SUCCESS : NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
}

/* One of a host that lives here, too: the line is the same. */
static int stay(struct sk_buff *skb, struct Qdisc *sch)
{
	struct wire *wire = qdisc_priv(sch);

	wire_control(skb)->due_ns = ktime_get_ns() + wire->options.delay_ns;
	wire->left_frames++;
	wire->left_bytes += qdisc_pkt_len(skb);
	sch->q.qlen++;
	sch->qstats.backlog += qdisc_pkt_len(skb);
	wire_insert(wire, skb);
	return NET_XMIT_SUCCESS;
}

static int enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct wire *wire = qdisc_priv(sch);

	return wire->arrives ? stay(skb, sch) : leave(skb, sch, to_free);
}

static struct sk_buff *dequeue(struct Qdisc *sch)
{
	struct wire *wire = qdisc_priv(sch);
	struct sk_buff *skb = skb_peek(&wire->waiting);
	u64 now, due;

	if (!skb)
		return NULL;
	now = ktime_get_ns();
	due = wire_control(skb)->due_ns;
	if (due > now) {
		wire_wait(wire);
		return NULL;
	}
	__skb_unlink(skb, &wire->waiting);
	wire->arrived_frames++;
	wire->arrived_bytes += qdisc_pkt_len(skb);
	if (now > due) {
		wire->late_frames++;
		wire->latest_ns = max(wire->latest_ns, now - due);
	}
	sch->q.qlen--;
	sch->qstats.backlog -= qdisc_pkt_len(skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static int init(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *extack)
{
	struct wire *wire = qdisc_priv(sch);
	struct wire_options *options = &wire->options;

	qdisc_watchdog_init(&wire->watchdog, sch);
	__skb_queue_head_init(&wire->waiting);
	if (!wire_memory.header) {
		NL_SET_ERR_MSG_MOD(extack, "this kernel runs alone");
		return -ENODEV;
	}
	if (!given || nla_len(given) < sizeof(*options)) {
		NL_SET_ERR_MSG_MOD(extack, "options are missing");
		return -EINVAL;
	}
	memcpy(options, nla_data(given), sizeof(*options));
	if (options->wire >= WIRE_MOST_WIRES || options->to >= wire_memory.header->parts) {
		NL_SET_ERR_MSG_MOD(extack, "an option is out of its range");
		return -EINVAL;
	}
	if (wires[options->wire]) {
		NL_SET_ERR_MSG_MOD(extack, "there is a wire of that number");
		return -EBUSY;
	}
	wire->arrives = options->to == wire_memory.part;
	wires[options->wire] = sch;
	if (wire->arrives)
		wire_arriving[options->wire] = sch;
	return 0;
}

static void reset(struct Qdisc *sch)
{
	struct wire *wire = qdisc_priv(sch);

	__skb_queue_purge(&wire->waiting);
	qdisc_watchdog_cancel(&wire->watchdog);
}

/* Also called when init() failed. */
static void destroy(struct Qdisc *sch)
{
	struct wire *wire = qdisc_priv(sch);

	if (wires[wire->options.wire % WIRE_MOST_WIRES] == sch) {
		local_bh_disable();
		wires[wire->options.wire] = NULL;
		wire_arriving[wire->options.wire] = NULL;
		local_bh_enable();
	}
	qdisc_watchdog_cancel(&wire->watchdog);
	__skb_queue_purge(&wire->waiting);
}

static struct Qdisc_ops wire_ops __read_mostly = {
	.id		= WIRE_KIND,
	.priv_size	= sizeof(struct wire),
	.enqueue	= enqueue,
	.dequeue	= dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= init,
	.reset		= reset,
	.destroy	= destroy,
	.owner		= THIS_MODULE,
};

/* A line for each wire: NUMBER arrives|leaves LEFT BYTES ARRIVED BYTES LATE LATEST_NS LOST */
static int show(struct seq_file *file, void *unused)
{
	int number;

	rtnl_lock();
	for (number = 0; number < WIRE_MOST_WIRES; number++) {
		const struct wire *wire = wires[number] ? qdisc_priv(wires[number]) : NULL;

		if (wire)
			seq_printf(file, "%d %s %llu %llu %llu %llu %llu %llu %llu\n", number,
				   wire->arrives ? "arrives" : "leaves", wire->left_frames, wire->left_bytes,
				   wire->arrived_frames, wire->arrived_bytes, wire->late_frames, wire->latest_ns,
				   wire->lost_frames);
	}
	rtnl_unlock();
	return 0;
}

static int going_down(struct notifier_block *block, unsigned long event, void *unused)
{
	wire_barrier_stop();
	return NOTIFY_DONE;
}

static struct notifier_block at_reboot = { .notifier_call = going_down };

static int __init load(void)
{
	int error;

	if (part >= 0) {
		error = wire_attach(part);
		if (error)
			return error;
	}
	if (!proc_create_single(WIRE_KIND, 0444, NULL, show))
		return -ENOMEM;
	error = register_qdisc(&wire_ops);
	if (error) {
		remove_proc_entry(WIRE_KIND, NULL);
		return error;
	}
	if (wire_memory.header) {
		/* Its timer and the memory stay: what joins kernels ends with them. */
		__module_get(THIS_MODULE);
		register_reboot_notifier(&at_reboot);
		wire_barrier_start();
	}
	return 0;
}

static void __exit unload(void)
{
	unregister_qdisc(&wire_ops);
	remove_proc_entry(WIRE_KIND, NULL);
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: delay lines between kernels in one virtual time");
