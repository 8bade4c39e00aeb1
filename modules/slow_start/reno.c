// SPDX-License-Identifier: GPL-2.0-only
/* NewReno after slow start: one packet a window, half of it on congestion (RFC 5681). */
#include "core.h"

static void avoid(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), slow_start_counted(acked));
}

static u32 threshold(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U);
}

const struct slow_start_base slow_start_reno = {
	.name		= "reno",
	.avoid		= avoid,
	.ssthresh	= threshold,
};
