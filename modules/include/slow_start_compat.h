/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels from 5.10 on. The Kbuild looks for each in the
 * kernel's headers: distributions carry changes back, so that a version says little.
 */
#ifndef HOWDAH_SLOW_START_COMPAT_H
#define HOWDAH_SLOW_START_COMPAT_H

#include <linux/version.h>
#include <net/tcp.h>

#ifndef HAVE_TCP_SND_CWND
static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 val)
{
	WARN_ON_ONCE((int)val <= 0);
	tp->snd_cwnd = val;
}
#endif

#endif
