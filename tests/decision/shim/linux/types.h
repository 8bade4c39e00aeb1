/* SPDX-License-Identifier: GPL-2.0-only */
/* Integer types, and the small macros that every kernel file has without asking. */
#ifndef SHIM_LINUX_TYPES_H
#define SHIM_LINUX_TYPES_H

#include_next <linux/types.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned int gfp_t;
typedef unsigned short umode_t;
typedef long ssize_t;

#define U8_MAX		UINT8_MAX
#define U16_MAX		UINT16_MAX
#define U32_MAX		UINT32_MAX
#define U64_MAX		UINT64_MAX
#define S32_MAX		INT32_MAX
#define S32_MIN		INT32_MIN
#define S64_MAX		INT64_MAX
#define S64_MIN		INT64_MIN

#define CONFIG_IPV6		1
#define IS_ENABLED(option)	(option)

#define __force
#define __init		__attribute__((unused))
#define __exit		__attribute__((unused))
#define __net_init	__attribute__((unused))
#define __net_exit	__attribute__((unused))
#define __read_mostly
#define __maybe_unused	__attribute__((unused))
#define __always_unused	__attribute__((unused))
#define __percpu
#define __rcu
#define __aligned(n)	__attribute__((aligned(n)))
#define __packed	__attribute__((packed))
#define fallthrough	__attribute__((fallthrough))
#define noinline	__attribute__((noinline))
#ifndef __always_inline
#define __always_inline	inline __attribute__((always_inline))
#endif
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define typeof		__typeof__

#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile typeof(x) *)&(x) = (value))
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define cmpxchg(p, old, new)						\
({									\
	typeof(*(p)) shim_old = (old);					\
	__atomic_compare_exchange_n(p, &shim_old, new, false,		\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);	\
	shim_old;							\
})
#define xchg(p, new)		__atomic_exchange_n(p, new, __ATOMIC_SEQ_CST)

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define BUILD_BUG_ON(wrong)	_Static_assert(!(wrong), #wrong)
#define container_of(p, type, member)					\
	((type *)((const char *)(p) - offsetof(type, member)))

#endif
