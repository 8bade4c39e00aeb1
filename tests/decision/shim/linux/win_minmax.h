/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_LINUX_WIN_MINMAX_H
#define SHIM_LINUX_WIN_MINMAX_H

#include <linux/types.h>

/* The kernel keeps three samples in a window of time; one is enough here. */
struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

static inline u32 minmax_get(const struct minmax *m)
{
	return m->s[0].v;
}

#endif
