// SPDX-License-Identifier: GPL-2.0-only
/* Sending at a rate, from a congestion control that does not own the pacing rate. */
#include "core.h"

void slow_start_pace(struct sock *sk, u64 bytes_per_second)
{
	struct slow_start *ss = slow_start(sk);
	unsigned long rate;

	if (!ss->paced) {
		ss->paced = 1;
		ss->max_pacing_rate = sk->sk_max_pacing_rate;
		ss->pacing_ours = cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE,
					  SK_PACING_NEEDED) == SK_PACING_NONE;
	}
	rate = min_t(u64, max(bytes_per_second, 1ULL), ss->max_pacing_rate);
	WRITE_ONCE(sk->sk_max_pacing_rate, rate);
	WRITE_ONCE(sk->sk_pacing_rate, rate);
}
EXPORT_SYMBOL_GPL(slow_start_pace);

void slow_start_pace_first(struct sock *sk)
{
	struct slow_start *ss = slow_start(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ss->paced || ss->first_paced)
		return;
	ss->first_paced = 1;
	tp->data_segs_out += SLOW_START_UNPACED;
	/* The kernel halves the first gap after a pause, and the handshake was one. */
	tp->tcp_wstamp_ns = max(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
}
EXPORT_SYMBOL_GPL(slow_start_pace_first);

void slow_start_repace(struct sock *sk, u64 before_ns, u64 now_ns)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!slow_start(sk)->first_paced || tp->tcp_wstamp_ns <= tp->tcp_clock_cache)
		return;
	tp->tcp_wstamp_ns = tp->tcp_wstamp_ns - before_ns + now_ns;
	/* TCP does not set a timer that is set already. */
	if (hrtimer_is_queued(&tp->pacing_timer))
		hrtimer_start(&tp->pacing_timer, ns_to_ktime(tp->tcp_wstamp_ns),
			      HRTIMER_MODE_ABS_PINNED_SOFT);
}
EXPORT_SYMBOL_GPL(slow_start_repace);

void slow_start_unpace(struct sock *sk)
{
	struct slow_start *ss = slow_start(sk);

	if (!ss->paced)
		return;
	ss->paced = 0;
	if (ss->first_paced)
		tcp_sk(sk)->data_segs_out -= SLOW_START_UNPACED;
	ss->first_paced = 0;
	WRITE_ONCE(sk->sk_max_pacing_rate, ss->max_pacing_rate);
	if (ss->pacing_ours)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
}
EXPORT_SYMBOL_GPL(slow_start_unpace);

/*
 * What the kernel does after every ACK (tcp_update_pacing_rate()), except for a
 * congestion control with a cong_control of its own.
 */
void slow_start_update_pacing(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct net *net = sock_net(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u64 rate;

	/* srtt_us is eight times the smoothed RTT. */
	rate = (u64)tp->mss_cache * ((USEC_PER_SEC / 100) << 3);
	rate *= cwnd < tp->snd_ssthresh / 2 ?
			READ_ONCE(net->ipv4.sysctl_tcp_pacing_ss_ratio) :
			READ_ONCE(net->ipv4.sysctl_tcp_pacing_ca_ratio);
	rate *= max(cwnd, tp->packets_out);
	if (tp->srtt_us)
		rate = div_u64(rate, tp->srtt_us);
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}
