/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters of a plug-in that refuse what makes no sense. (The kernel's own
 * param_set_uint_minmax() is too young for 5.10.)
 */
#ifndef HOWDAH_SLOW_START_PARAMETER_H
#define HOWDAH_SLOW_START_PARAMETER_H

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

/**
 * struct slow_start_range - where a parameter is kept, and what it may be
 * @value: what the plug-in reads
 * @least: smallest value accepted
 * @most: largest value accepted
 */
struct slow_start_range {
	unsigned int *value;
	unsigned int least;
	unsigned int most;
};

/* -EINVAL or -ERANGE for what is no number, -ERANGE outside the range. */
static inline int slow_start_parameter_set(const char *text,
					   const struct kernel_param *kp)
{
	const struct slow_start_range *range = kp->arg;
	unsigned int value;
	int error;

	if (!text)
		return -EINVAL;
	error = kstrtouint(text, 0, &value);
	if (!error && (value < range->least || value > range->most))
		error = -ERANGE;
	if (error) {
		pr_err("%s: parameter %s is a number from %u to %u\n",
		       KBUILD_MODNAME, kp->name, range->least, range->most);
		return error;
	}
	*range->value = value;
	return 0;
}

static inline int slow_start_parameter_get(char *text,
					   const struct kernel_param *kp)
{
	const struct slow_start_range *range = kp->arg;

	return scnprintf(text, PAGE_SIZE, "%u\n", *range->value);
}

static const struct kernel_param_ops slow_start_parameter_ops = {
	.set = slow_start_parameter_set,
	.get = slow_start_parameter_get,
};

/**
 * slow_start_parameter() - a module parameter that is a number within a range
 * @name: of the parameter, and of the unsigned int a plug-in reads
 * @initial: its value if it is not set
 * @least_: smallest value, a constant
 * @most_: largest value, a constant
 * @text: what it is, with its unit and default
 */
#define slow_start_parameter(name, initial, least_, most_, text)		\
	slow_start_parameter_named(name, name, initial, least_, most_, text)

/* The same where the variable cannot be called like the parameter. */
#define slow_start_parameter_named(name, variable, initial, least_, most_, text) \
static unsigned int variable = (initial);					\
static const struct slow_start_range variable##_parameter = {		\
	.value	= &(variable),							\
	.least	= (least_),							\
	.most	= (most_),							\
};										\
module_param_cb(name, &slow_start_parameter_ops, (void *)&variable##_parameter, 0644); \
__MODULE_PARM_TYPE(name, "uint");						\
MODULE_PARM_DESC(name, text)

#endif
