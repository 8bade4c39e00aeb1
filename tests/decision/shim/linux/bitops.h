/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_LINUX_BITOPS_H
#define SHIM_LINUX_BITOPS_H

#include <linux/types.h>

/* Number of the highest bit that is set, from 1; 0 for 0. */
static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline int fls(unsigned int x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline unsigned int hweight32(u32 x)
{
	return __builtin_popcount(x);
}

static inline unsigned int ilog2(u64 x)
{
	return fls64(x) - 1;
}

static inline bool is_power_of_2(u64 x)
{
	return x && !(x & (x - 1));
}

static inline u64 rounddown_pow_of_two(u64 x)
{
	return 1ULL << ilog2(x);
}

static inline u64 roundup_pow_of_two(u64 x)
{
	return x <= 1 ? 1 : 1ULL << fls64(x - 1);
}

#endif
