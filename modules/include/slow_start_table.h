/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plug-ins that remember something of connections that have ended: a table for each
 * network namespace, freed with it or when the module is unloaded.
 */
#ifndef HOWDAH_SLOW_START_TABLE_H
#define HOWDAH_SLOW_START_TABLE_H

#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "slow_start.h"

/**
 * module_slow_start_table() - module_slow_start() for a plug-in with tables
 * @variable: its struct slow_start_ops, called like the plug-in
 * @type: of the table
 * @begin: function that makes a table of zeroes ready
 *
 * The plug-in has a static unsigned int called like it, with _table_id behind it, by
 * which net_generic() finds the table of a namespace.
 */
#define module_slow_start_table(variable, type, begin)			\
static struct slow_start_family variable##_family;			\
static int __net_init variable##_start_table(struct net *net)		\
{									\
	begin(net_generic(net, variable##_table_id));			\
	return 0;							\
}									\
static struct pernet_operations variable##_tables = {			\
	.init	= variable##_start_table,				\
	.id	= &variable##_table_id,					\
	.size	= sizeof(type),						\
};									\
static int __init variable##_load(void)					\
{									\
	int error = register_pernet_subsys(&variable##_tables);		\
									\
	if (error)							\
		return error;						\
	error = slow_start_register(&(variable), &variable##_family);	\
	if (error)							\
		unregister_pernet_subsys(&variable##_tables);		\
	return error;							\
}									\
static void __exit variable##_unload(void)				\
{									\
	slow_start_unregister(&variable##_family);			\
	unregister_pernet_subsys(&variable##_tables);			\
}									\
module_init(variable##_load);						\
module_exit(variable##_unload);						\
MODULE_ALIAS("tcp_" #variable "_reno");					\
MODULE_ALIAS("tcp_" #variable "_cubic")

#endif
