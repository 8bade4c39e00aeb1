/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A module is a variable of its file that puts itself into a list; a parameter likewise.
 * shim_load() and shim_set_parameter() are what insmod and sysfs do.
 */
#ifndef SHIM_LINUX_MODULE_H
#define SHIM_LINUX_MODULE_H

#include <linux/kernel.h>
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/slab.h>

#ifndef KBUILD_MODNAME
#define KBUILD_MODNAME	"howdah_slow_start"
#endif

struct kernel_param;

struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *value, const struct kernel_param *parameter);
	int (*get)(char *buffer, const struct kernel_param *parameter);
	void (*free)(void *arg);
};

struct kernel_param {
	const char *name;
	const struct kernel_param_ops *ops;
	void *arg;
	umode_t permissions;
	const char *shim_text;
	struct kernel_param *shim_next;
};

struct module {
	const char *name;
	int (*init)(void);
	void (*exit)(void);
	struct kernel_param *parameters;
	bool loaded;
	int users;	/* sockets whose congestion control it owns */
	struct module *next;
};

void shim_add_module(struct module *module);
void shim_add_parameter(struct module *module, struct kernel_param *parameter);
void shim_describe_parameter(struct module *module, const char *name, const char *text);

static struct module shim_module __attribute__((unused)) = { .name = KBUILD_MODNAME };

#define THIS_MODULE	(&shim_module)

#define module_init(function)						\
__attribute__((constructor)) static void shim_register_init(void)	\
{									\
	shim_module.init = function;					\
	shim_add_module(&shim_module);					\
}									\
_Static_assert(1, "")
#define module_exit(function)						\
__attribute__((constructor)) static void shim_register_exit(void)	\
{									\
	shim_module.exit = function;					\
}									\
_Static_assert(1, "")

#define module_param_cb(name_, ops_, arg_, permissions_)		\
static struct kernel_param shim_parameter_##name_ = {			\
	.name = #name_, .ops = ops_, .arg = arg_,			\
	.permissions = permissions_,					\
};									\
__attribute__((constructor)) static void shim_register_##name_(void)	\
{									\
	shim_add_parameter(&shim_module, &shim_parameter_##name_);	\
}									\
_Static_assert(1, "")
#define module_param_named(name_, variable, type, permissions_)		\
	module_param_cb(name_, &param_ops_##type, &(variable), permissions_)
#define module_param(variable, type, permissions_)			\
	module_param_named(variable, variable, type, permissions_)

#define MODULE_PARM_DESC(name_, text)					\
__attribute__((constructor)) static void shim_describe_##name_(void)	\
{									\
	shim_describe_parameter(&shim_module, #name_, text);		\
}									\
_Static_assert(1, "")
#define __MODULE_PARM_TYPE(name, type)	_Static_assert(sizeof(type) > 1, "")
#define MODULE_LICENSE(text)		_Static_assert(sizeof(text) > 1, "")
#define MODULE_DESCRIPTION(text)	_Static_assert(sizeof(text) > 1, "")
#define MODULE_AUTHOR(text)		_Static_assert(sizeof(text) > 1, "")
#define MODULE_ALIAS(text)		_Static_assert(sizeof(text) > 1, "")
#define MODULE_VERSION(text)		_Static_assert(sizeof(text) > 1, "")
#define MODULE_SOFTDEP(text)		_Static_assert(sizeof(text) > 1, "")
#define EXPORT_SYMBOL(name)		_Static_assert(1, "")
#define EXPORT_SYMBOL_GPL(name)		_Static_assert(1, "")

#define SHIM_DECLARE_PARAMETER(type)					\
	extern const struct kernel_param_ops param_ops_##type;		\
	int param_set_##type(const char *value, const struct kernel_param *kp);	\
	int param_get_##type(char *buffer, const struct kernel_param *kp)
SHIM_DECLARE_PARAMETER(byte);
SHIM_DECLARE_PARAMETER(ushort);
SHIM_DECLARE_PARAMETER(int);
SHIM_DECLARE_PARAMETER(uint);
SHIM_DECLARE_PARAMETER(ulong);
SHIM_DECLARE_PARAMETER(ullong);
SHIM_DECLARE_PARAMETER(bool);

int param_set_uint_minmax(const char *value, const struct kernel_param *kp,
			  unsigned int low, unsigned int high);

#endif
