/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_LINUX_MUTEX_H
#define SHIM_LINUX_MUTEX_H

#include <linux/spinlock.h>

struct mutex {
	spinlock_t lock;
};

#define DEFINE_MUTEX(name)	struct mutex name = { { 0 } }
#define mutex_init(m)		spin_lock_init(&(m)->lock)
#define mutex_lock(m)		spin_lock(&(m)->lock)
#define mutex_unlock(m)		spin_unlock(&(m)->lock)

#endif
