/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages, warnings, rounding and reading of numbers. */
#ifndef SHIM_LINUX_KERNEL_H
#define SHIM_LINUX_KERNEL_H

#include <linux/types.h>
#include <linux/minmax.h>

#ifndef pr_fmt
#define pr_fmt(text)	text
#endif

/* Messages are counted and kept: a parameter that is clamped must say so. */
__attribute__((format(printf, 2, 3)))
void shim_print(char level, const char *format, ...);
/* A warning of the kernel; every test fails that sees one. */
void shim_warn(const char *file, int line, const char *condition);

#define pr_err(...)		shim_print('e', __VA_ARGS__)
#define pr_warn(...)		shim_print('w', __VA_ARGS__)
#define pr_warn_once		pr_warn
#define pr_warn_ratelimited	pr_warn
#define pr_notice(...)		shim_print('n', __VA_ARGS__)
#define pr_info(...)		shim_print('i', __VA_ARGS__)
#define pr_debug(...)		shim_print('d', __VA_ARGS__)

#define WARN_ON(wrong)							\
({									\
	bool shim_wrong = !!(wrong);					\
	if (shim_wrong)							\
		shim_warn(__FILE__, __LINE__, #wrong);			\
	shim_wrong;							\
})
#define WARN_ON_ONCE(wrong)	WARN_ON(wrong)
#define WARN(wrong, ...)	WARN_ON(wrong)
#define WARN_ONCE(wrong, ...)	WARN_ON(wrong)
#define BUG_ON(wrong)		((void)WARN_ON(wrong))

#define round_up(n, to)		((((n) - 1) | ((typeof(n))(to) - 1)) + 1)
#define round_down(n, to)	((n) & ~((typeof(n))(to) - 1))
#define roundup(n, to)		((((n) + (to) - 1) / (to)) * (to))
#define DIV_ROUND_UP(n, by)	(((n) + (by) - 1) / (by))
#define DIV_ROUND_CLOSEST(n, by) (((n) + (by) / 2) / (by))
#define DIV_ROUND_UP_ULL(n, by)	((u64)DIV_ROUND_UP((unsigned long long)(n), by))

int kstrtouint(const char *text, unsigned int base, unsigned int *number);
int kstrtoint(const char *text, unsigned int base, int *number);
int kstrtoull(const char *text, unsigned int base, unsigned long long *number);
int kstrtobool(const char *text, bool *value);
#define kstrtou32	kstrtouint
#define scnprintf	snprintf
#define PAGE_SIZE	4096
#define shim_string(text)	#text
#define __stringify(text)	shim_string(text)

#endif
