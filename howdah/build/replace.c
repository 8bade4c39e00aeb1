// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked into a profile's own congestion control. The kernel refuses to register a second
 * "cubic", so a built-in one is unregistered first; it comes back when the module goes.
 *
 * Connections that use the built-in one keep it: its code stays where it is.
 */
#define HOWDAH_REPLACES
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/sockptr.h>
#include <net/inet_connection_sock.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include "replace.h"

/**
 * struct replacement - a built-in congestion control that is out of use
 * @list: all of this module
 * @own: what the module registered
 * @builtin: what had the name before
 */
struct replacement {
	struct list_head list;
	struct tcp_congestion_ops *own;
	struct tcp_congestion_ops *builtin;
};

static LIST_HEAD(replacements);
static DEFINE_MUTEX(replacements_lock);

/*
 * What is registered by a name that is known to be taken, or NULL. There is no function
 * to ask for it, but a socket that has chosen it points to it.
 */
static struct tcp_congestion_ops *registered(const char *name)
{
	const struct tcp_congestion_ops *found = NULL;
	struct socket *sock;

	if (sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP,
			     &sock))
		return NULL;
	if (!sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION,
				   KERNEL_SOCKPTR((void *)name), strlen(name)))
		found = inet_csk(sock->sk)->icsk_ca_ops;
	sock_release(sock);
	if (found && strcmp(found->name, name))
		found = NULL;
	return (struct tcp_congestion_ops *)found;
}

/**
 * howdah_register_congestion_control() - register, in place of a built-in one if need be
 * @ops: the module's own
 *
 * Return: as tcp_register_congestion_control(); -EEXIST where another module has the name.
 */
int howdah_register_congestion_control(struct tcp_congestion_ops *ops)
{
	int error = tcp_register_congestion_control(ops);
	struct tcp_congestion_ops *builtin;
	struct replacement *replacement;

	if (error != -EEXIST)
		return error;
	builtin = registered(ops->name);
	if (!builtin || builtin->owner) {
		pr_err("%s is registered by another module\n", ops->name);
		return error;
	}
	replacement = kmalloc(sizeof(*replacement), GFP_KERNEL);
	if (!replacement)
		return -ENOMEM;
	tcp_unregister_congestion_control(builtin);
	error = tcp_register_congestion_control(ops);
	if (error) {
		WARN_ON(tcp_register_congestion_control(builtin));
		kfree(replacement);
		return error;
	}
	replacement->own = ops;
	replacement->builtin = builtin;
	mutex_lock(&replacements_lock);
	list_add(&replacement->list, &replacements);
	mutex_unlock(&replacements_lock);
	pr_info("%s takes the place of the kernel's own\n", ops->name);
	return 0;
}

/**
 * howdah_unregister_congestion_control() - unregister, and give the built-in one its name back
 * @ops: the module's own
 */
void howdah_unregister_congestion_control(struct tcp_congestion_ops *ops)
{
	struct replacement *replacement, *next;

	tcp_unregister_congestion_control(ops);
	mutex_lock(&replacements_lock);
	list_for_each_entry_safe(replacement, next, &replacements, list) {
		if (replacement->own != ops)
			continue;
		list_del(&replacement->list);
		WARN_ON(tcp_register_congestion_control(replacement->builtin));
		kfree(replacement);
	}
	mutex_unlock(&replacements_lock);
}
