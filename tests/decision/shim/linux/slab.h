/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is counted, and that can be made to run out. */
#ifndef SHIM_LINUX_SLAB_H
#define SHIM_LINUX_SLAB_H

#include <linux/types.h>

#define GFP_ATOMIC	1U
#define GFP_KERNEL	2U
#define __GFP_NOWARN	4U
#define __GFP_ZERO	8U

void *shim_allocate(size_t bytes, gfp_t flags);
void shim_free(const void *memory);

#define kmalloc(bytes, flags)		shim_allocate(bytes, flags)
#define kzalloc(bytes, flags)		shim_allocate(bytes, (flags) | __GFP_ZERO)
#define kcalloc(n, bytes, flags)	kzalloc((n) * (bytes), flags)
#define kmalloc_array(n, bytes, flags)	kmalloc((n) * (bytes), flags)
#define kvcalloc			kcalloc
#define kvzalloc			kzalloc
#define kvmalloc			kmalloc
#define kvfree				kfree
#define vzalloc(bytes)			kzalloc(bytes, GFP_KERNEL)
#define vfree				kfree
#define kfree(memory)			shim_free(memory)
#define kfree_sensitive			kfree
/* There is one thread, outside of every read-side section. */
#define kfree_rcu(memory, member)	shim_free(memory)

#endif
