// SPDX-License-Identifier: GPL-2.0-only
/*
 * What TCP no longer does for a plug-in with a recovery of its own, since it has a
 * cong_control: Proportional Rate Reduction (RFC 9937) in the episodes the plug-in has no
 * opinion on, and a smaller window after idle.
 */
#include <net/dst.h>
#include "core.h"

/* More is in flight than the threshold: send that share of what is delivered. */
static s64 in_proportion(const struct tcp_sock *tp)
{
	u64 sent_share = (u64)tp->snd_ssthresh * tp->prr_delivered;

	return (s64)div_u64(sent_share + tp->prior_cwnd - 1, tp->prior_cwnd) -
	       tp->prr_out;
}

/* Less is: back to the threshold, one packet beyond what is delivered at most. */
static s64 up_to_threshold(const struct sock *sk, u32 flight,
			   const struct rate_sample *rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	s64 allowed = max_t(s64, (s64)tp->prr_delivered - tp->prr_out,
			    rate->acked_sacked);

	if (slow_start(sk)->advanced && !rate->losses)
		allowed++;
	return min_t(s64, allowed, tp->snd_ssthresh - flight);
}

/*
 * Equal to tcp_cwnd_reduction() of Linux 6.12, which modules cannot call. The counters
 * prr_out and prior_cwnd are kept by TCP, prr_delivered by whoever reduces.
 */
void slow_start_reduce(struct sock *sk, const struct rate_sample *rate)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 flight = tcp_packets_in_flight(tp);
	s64 allowed;

	if (!rate->acked_sacked || !tp->prior_cwnd)
		return;
	tp->prr_delivered += rate->acked_sacked;
	if (flight > tp->snd_ssthresh)
		allowed = in_proportion(tp);
	else
		allowed = up_to_threshold(sk, flight, rate);
	/* The first retransmission is never held back. */
	allowed = max_t(s64, allowed, tp->prr_out ? 0 : 1);
	slow_start_set_cwnd(sk, flight + allowed);
}
EXPORT_SYMBOL_GPL(slow_start_reduce);

bool slow_start_was_idle(const struct sock *sk)
{
	u32 idle = tcp_jiffies32 - tcp_sk(sk)->lsndtime;

	return inet_csk(sk)->icsk_ca_ops->cong_control &&
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle) &&
	       (s32)idle > (s32)inet_csk(sk)->icsk_rto;
}

/*
 * Equal to tcp_cwnd_restart(): half for each RTO of idle time, but not below the
 * initial window; ssthresh remembers three quarters.
 */
void slow_start_cut_idle(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 initial = (dst ? dst_metric(dst, RTAX_INITCWND) : 0) ?: TCP_INIT_CWND;
	u32 periods = (tcp_jiffies32 - tp->lsndtime - 1) / inet_csk(sk)->icsk_rto;
	u32 cwnd = tcp_snd_cwnd(tp);

	tp->snd_ssthresh = tcp_current_ssthresh(sk);
	slow_start_set_cwnd(sk, max(cwnd >> min(periods, 31U), min(initial, cwnd)));
}

void slow_start_hold(struct sock *sk, u32 packets)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tp->prr_out)
		packets = max(packets, tcp_packets_in_flight(tp) + 1);
	slow_start_set_cwnd(sk, packets);
}
EXPORT_SYMBOL_GPL(slow_start_hold);
