// SPDX-License-Identifier: GPL-2.0-only
/* Making congestion controls of plug-ins, one for each base. */
#include <linux/ctype.h>
#include "core.h"

#ifdef HAVE_CONG_CONTROL_FLAG
static void control(struct sock *sk, u32 ack, int flag,
		    const struct rate_sample *rate)
#else
static void control(struct sock *sk, const struct rate_sample *rate)
#endif
{
	slow_start_control(sk, rate->acked_sacked, rate);
}

static bool is_name(const char *name)
{
	size_t length = strnlen(name, SLOW_START_NAME_MAX + 1);

	if (!length || length > SLOW_START_NAME_MAX)
		return false;
	for (; *name; name++)
		if (!islower(*name) && !isdigit(*name) && *name != '_')
			return false;
	return true;
}

static int add(struct slow_start_algorithm *algorithm,
	       const struct slow_start_ops *ops,
	       const struct slow_start_base *base)
{
	struct tcp_congestion_ops *tcp = &algorithm->tcp;

	algorithm->ops = ops;
	algorithm->base = base;
	*tcp = slow_start_hooks;
	if (!ops->ack)
		tcp->in_ack_event = NULL;
	if (ops->flags & SLOW_START_OWN_RECOVERY)
		tcp->cong_control = control;
	if (ops->transmit)
		tcp->min_tso_segs = slow_start_transmit;
	tcp->owner = ops->owner;
	snprintf(tcp->name, sizeof(tcp->name), "%s_%s", ops->name, base->name);
	return tcp_register_congestion_control(tcp);
}

/**
 * slow_start_register() - offer a plug-in over every base
 * @ops: the plug-in; it and @family must live until slow_start_unregister()
 * @family: filled here
 *
 * Return: 0, -EINVAL for a name that does not fit or a plug-in that promises a
 * recovery it does not have, or what tcp_register_congestion_control() says (-EEXIST:
 * the name is taken).
 */
int slow_start_register(const struct slow_start_ops *ops,
			struct slow_start_family *family)
{
	int error;

	if (!is_name(ops->name) ||
	    (ops->flags & SLOW_START_OWN_RECOVERY && !ops->recover)) {
		pr_err("howdah_slow_start: '%.*s' is no usable plug-in (its name is at most %u lower-case letters, digits and underscores)\n",
		       SLOW_START_NAME_MAX + 1, ops->name, SLOW_START_NAME_MAX);
		return -EINVAL;
	}
	error = add(&family->reno, ops, &slow_start_reno);
	if (error)
		return error;
	error = add(&family->cubic, ops, &slow_start_cubic);
	if (error)
		tcp_unregister_congestion_control(&family->reno.tcp);
	return error;
}
EXPORT_SYMBOL_GPL(slow_start_register);

void slow_start_unregister(struct slow_start_family *family)
{
	tcp_unregister_congestion_control(&family->cubic.tcp);
	tcp_unregister_congestion_control(&family->reno.tcp);
}
EXPORT_SYMBOL_GPL(slow_start_unregister);

static int __init load(void)
{
	BUILD_BUG_ON(sizeof(struct slow_start_private) > ICSK_CA_PRIV_SIZE);
	BUILD_BUG_ON(sizeof("_cubic") + SLOW_START_NAME_MAX > TCP_CA_NAME_MAX);
	return 0;
}

static void __exit unload(void)
{
	/* Its users keep it loaded: nothing is left to do. */
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: the core of the slow-start algorithms");
