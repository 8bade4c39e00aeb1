/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_LINUX_ATOMIC_H
#define SHIM_LINUX_ATOMIC_H

#include <linux/types.h>

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
typedef atomic64_t atomic_long_t;
typedef struct { atomic_t refs; } refcount_t;

#define ATOMIC_INIT(n)		{ (n) }
#define atomic_read(a)		((a)->counter)
#define atomic_set(a, n)	((a)->counter = (n))
#define atomic_inc(a)		((void)(a)->counter++)
#define atomic_dec(a)		((void)(a)->counter--)
#define atomic_add(n, a)	((void)((a)->counter += (n)))
#define atomic_sub(n, a)	((void)((a)->counter -= (n)))
#define atomic_inc_return(a)	(++(a)->counter)
#define atomic_dec_return(a)	(--(a)->counter)
#define atomic_dec_and_test(a)	(!--(a)->counter)
#define atomic_add_return(n, a)	((a)->counter += (n))
#define atomic_cmpxchg(a, old, new)	cmpxchg(&(a)->counter, old, new)
#define atomic64_read(a)	((a)->counter)
#define atomic64_set(a, n)	((a)->counter = (n))
#define atomic64_inc(a)		((void)(a)->counter++)
#define atomic64_inc_return(a)	(++(a)->counter)
#define refcount_set(r, n)	((r)->refs.counter = (n))
#define refcount_inc(r)		((void)(r)->refs.counter++)
#define refcount_dec_and_test(r) (!--(r)->refs.counter)

#endif
