/* SPDX-License-Identifier: GPL-2.0-only */
/* There is one thread: a lock taken twice, or freed untaken, is a warning. */
#ifndef SHIM_LINUX_SPINLOCK_H
#define SHIM_LINUX_SPINLOCK_H

#include <linux/kernel.h>

typedef struct { int held; } spinlock_t;

#define DEFINE_SPINLOCK(name)	spinlock_t name = { 0 }
#define __SPIN_LOCK_UNLOCKED(n)	{ 0 }

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->held = 0;
}

static inline void spin_lock(spinlock_t *lock)
{
	WARN_ON(lock->held);
	lock->held = 1;
}

static inline void spin_unlock(spinlock_t *lock)
{
	WARN_ON(!lock->held);
	lock->held = 0;
}

#define spin_lock_bh		spin_lock
#define spin_unlock_bh		spin_unlock
#define spin_lock_irq		spin_lock
#define spin_unlock_irq		spin_unlock
#define spin_lock_irqsave(lock, flags)	({ (flags) = 0; spin_lock(lock); })
#define spin_unlock_irqrestore(lock, flags) ({ (void)(flags); spin_unlock(lock); })
#define lockdep_assert_held(lock)	((void)WARN_ON(!(lock)->held))

#endif
