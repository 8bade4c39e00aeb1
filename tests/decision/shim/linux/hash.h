/* SPDX-License-Identifier: GPL-2.0-only */
/* Hashes that spread; their values are not the kernel's, and nothing may depend on them. */
#ifndef SHIM_LINUX_HASH_H
#define SHIM_LINUX_HASH_H

#include <linux/types.h>

static inline u32 shim_mix(u64 value)
{
	value ^= value >> 31;
	value *= 0x9e3779b97f4a7c15ULL;
	value ^= value >> 29;
	return value >> 16;
}

#define hash_32(value, bits)	(shim_mix(value) >> (32 - (bits)))
#define hash_64(value, bits)	(shim_mix(value) >> (32 - (bits)))
#define hash_long		hash_64
#define hash_ptr(p, bits)	hash_64((unsigned long)(p), bits)

static inline u32 jhash(const void *key, u32 length, u32 seed)
{
	const u8 *byte = key;
	u64 hash = seed + 1;

	for (; length--; byte++)
		hash = shim_mix(hash << 8 | *byte);
	return hash;
}

static inline u32 jhash2(const u32 *key, u32 words, u32 seed)
{
	return jhash(key, words * 4, seed);
}

#define jhash_1word(a, seed)	shim_mix((u64)(a) << 32 | (seed))
#define jhash_2words(a, b, seed) shim_mix(((u64)(a) << 32 | (b)) ^ (seed))
#define jhash_3words(a, b, c, seed) jhash_2words(jhash_1word(a, b), c, seed)

/* No randomness: a test that fails must fail again. */
static inline u32 get_random_u32(void)
{
	return 0x5eed;
}

static inline u32 get_random_u32_below(u32 ceiling)
{
	return 0x5eed % ceiling;
}

#define net_get_random_once(buffer, size)	memset(buffer, 0x5e, size)

#endif
