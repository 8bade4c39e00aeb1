/* SPDX-License-Identifier: GPL-2.0-only */
/* Time is the test's: shim_now_us. jiffies are close to their wrap, as after boot. */
#ifndef SHIM_LINUX_JIFFIES_H
#define SHIM_LINUX_JIFFIES_H

#include <linux/types.h>

#ifndef HZ
#define HZ		100	/* as the guest's */
#endif
#define USEC_PER_SEC	1000000L
#define USEC_PER_MSEC	1000L
#define MSEC_PER_SEC	1000L
#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L

extern u64 shim_now_us;

#define INITIAL_JIFFIES	((unsigned long)(unsigned int)(-300 * HZ))
#define jiffies		(INITIAL_JIFFIES + shim_now_us / (USEC_PER_SEC / HZ))
#define time_after(a, b)	((long)((b) - (a)) < 0)
#define time_before(a, b)	time_after(b, a)
#define time_after_eq(a, b)	((long)((a) - (b)) >= 0)
#define time_before_eq(a, b)	time_after_eq(b, a)
#define time_after32(a, b)	((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b)	time_after32(b, a)

static inline unsigned long usecs_to_jiffies(unsigned int us)
{
	return ((u64)us * HZ + USEC_PER_SEC - 1) / USEC_PER_SEC;
}

static inline unsigned long msecs_to_jiffies(unsigned int ms)
{
	return ((u64)ms * HZ + MSEC_PER_SEC - 1) / MSEC_PER_SEC;
}

static inline unsigned int jiffies_to_usecs(unsigned long count)
{
	return count * (USEC_PER_SEC / HZ);
}

static inline unsigned int jiffies_to_msecs(unsigned long count)
{
	return count * (MSEC_PER_SEC / HZ);
}

#endif
