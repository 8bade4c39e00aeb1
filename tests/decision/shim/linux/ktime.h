/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_LINUX_KTIME_H
#define SHIM_LINUX_KTIME_H

#include <linux/jiffies.h>

typedef s64 ktime_t;

static inline ktime_t ktime_get(void)
{
	return shim_now_us * NSEC_PER_USEC;
}

static inline u64 ktime_get_ns(void)
{
	return ktime_get();
}

static inline s64 ktime_to_us(ktime_t time)
{
	return time / NSEC_PER_USEC;
}

static inline s64 ktime_get_seconds(void)
{
	return shim_now_us / USEC_PER_SEC;
}

#endif
