/* SPDX-License-Identifier: GPL-2.0-only */
/* As the kernel's: arguments are evaluated once. */
#ifndef SHIM_LINUX_MINMAX_H
#define SHIM_LINUX_MINMAX_H

#include <linux/types.h>

#define min_t(type, a, b)						\
({ type shim_a = (a); type shim_b = (b); shim_a < shim_b ? shim_a : shim_b; })
#define max_t(type, a, b)						\
({ type shim_a = (a); type shim_b = (b); shim_a > shim_b ? shim_a : shim_b; })
#define min(a, b)							\
({									\
	typeof(a) shim_x = (a); typeof(b) shim_y = (b);			\
	shim_x < shim_y ? shim_x : shim_y;				\
})
#define max(a, b)							\
({									\
	typeof(a) shim_x = (a); typeof(b) shim_y = (b);			\
	shim_x > shim_y ? shim_x : shim_y;				\
})
#define min3(a, b, c)		min(min(a, b), c)
#define max3(a, b, c)		max(max(a, b), c)
#define clamp(value, low, high)	min(max(value, low), high)
#define clamp_t(type, value, low, high)					\
	min_t(type, max_t(type, value, low), high)
#define clamp_val(value, low, high)					\
	clamp_t(typeof(value), value, low, high)
#define swap(a, b)							\
do { typeof(a) shim_s = (a); (a) = (b); (b) = shim_s; } while (0)

#endif
