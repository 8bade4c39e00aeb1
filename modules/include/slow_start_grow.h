/* SPDX-License-Identifier: GPL-2.0-only */
/* Growth slower than standard slow start. */
#ifndef HOWDAH_SLOW_START_GROW_H
#define HOWDAH_SLOW_START_GROW_H

#include "slow_start.h"

/**
 * slow_start_grow() - grow cwnd by one packet for every @divisor acknowledged
 * @sk: the connection
 * @divisor: at least 1
 * @acked: packets acknowledged
 * @limit: cwnd does not grow beyond, packets; not below cwnd
 *
 * What is short of a whole packet stays in snd_cwnd_cnt, counted in acknowledged
 * packets: it is exact as long as the divisor changes with cwnd alone.
 *
 * Return: packets that are left because cwnd has reached @limit; none at the clamp,
 * beyond which nothing grows
 */
static inline u32 slow_start_grow(struct sock *sk, u32 divisor, u32 acked, u32 limit)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u64 credit, steps;

	if (cwnd >= tp->snd_cwnd_clamp)
		return 0;
	limit = min(limit, tp->snd_cwnd_clamp);
	if (cwnd >= limit)
		return acked;
	/* A larger divisor may have been in force before. */
	credit = (u64)min(tp->snd_cwnd_cnt, divisor - 1) + acked;
	steps = min_t(u64, div_u64(credit, divisor), limit - cwnd);
	credit -= steps * divisor;
	slow_start_set_cwnd(sk, cwnd + steps);
	if (tcp_snd_cwnd(tp) < limit) {
		tp->snd_cwnd_cnt = credit;
		return 0;
	}
	tp->snd_cwnd_cnt = 0;
	return cwnd + steps < tp->snd_cwnd_clamp ? min_t(u64, credit, acked) : 0;
}

#endif
