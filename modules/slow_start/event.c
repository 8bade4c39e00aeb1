// SPDX-License-Identifier: GPL-2.0-only
/* Telling of exits: the tracepoint howdah:slow_start. */
#include "core.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

void slow_start_trace(struct sock *sk, enum slow_start_event event,
		      enum slow_start_reason reason, u32 cwnd, u32 quantity,
		      u32 threshold)
{
	trace_slow_start(sk, event, reason, cwnd, quantity, threshold);
}

void slow_start_note(struct sock *sk, enum slow_start_event event,
		     enum slow_start_reason reason, u32 quantity, u32 threshold)
{
	slow_start_trace(sk, event, reason, tcp_snd_cwnd(tcp_sk(sk)), quantity,
			 threshold);
}
EXPORT_SYMBOL_GPL(slow_start_note);

void slow_start_roll_back(struct sock *sk, u32 packets,
			  enum slow_start_reason reason, u32 quantity,
			  u32 threshold)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 before = tcp_snd_cwnd(tp);

	slow_start_set_cwnd(sk, min(packets, before));
	tp->snd_ssthresh = tcp_snd_cwnd(tp);
	slow_start(sk)->left = 1;
	slow_start_trace(sk, SLOW_START_EXIT, reason, before, quantity, threshold);
	if (tcp_snd_cwnd(tp) < before)
		slow_start_note(sk, SLOW_START_ROLL_BACK, reason, quantity,
				threshold);
}
EXPORT_SYMBOL_GPL(slow_start_roll_back);

void slow_start_exit(struct sock *sk, enum slow_start_reason reason,
		     u32 quantity, u32 threshold)
{
	slow_start_roll_back(sk, tcp_snd_cwnd(tcp_sk(sk)), reason, quantity,
			     threshold);
}
EXPORT_SYMBOL_GPL(slow_start_exit);
