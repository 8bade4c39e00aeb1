// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limited slow start (RFC 3742, section 2).
 *
 * Up to max_ssthresh packets cwnd grows by one packet for every packet acknowledged.
 * Above, it grows by 1/K with K = floor(cwnd / (max_ssthresh / 2)), so that a round
 * adds max_ssthresh/2 packets at most. The window W is reached after about
 * log2(max_ssthresh) + (W - max_ssthresh) / (max_ssthresh / 2) rounds from one packet.
 *
 * The RFC adds floor(MSS / K) bytes for each ACK; this counts packets, as Linux does:
 * one for every K acknowledged. K changes with cwnd alone, and cwnd only when nothing
 * is left over, so that no fraction is lost.
 *
 * Crossing max_ssthresh is told as a phase.
 */
#include "slow_start.h"
#include "slow_start_grow.h"
#include "slow_start_parameter.h"

slow_start_parameter(max_ssthresh, 100, 2, 1000000,
		     "packets above which growth is limited to half of it each round (default 100)");

static u32 grow(struct sock *sk, u32 acked)
{
	u32 most = READ_ONCE(max_ssthresh), threshold = tcp_sk(sk)->snd_ssthresh;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 before = tcp_snd_cwnd(tp);
	u32 divisor;
	u64 next;

	if (before <= most)
		acked = slow_start_grow(sk, 1, acked, min(most + 1, threshold));
	while (acked && tcp_in_slow_start(tp)) {
		divisor = div_u64(2ULL * tcp_snd_cwnd(tp), most);
		/* The window from which on the divisor is larger. */
		next = DIV_ROUND_UP_ULL((divisor + 1ULL) * most, 2);
		acked = slow_start_grow(sk, divisor, acked,
					min_t(u64, next, threshold));
	}
	if (before <= most && tcp_snd_cwnd(tp) > most)
		slow_start_note(sk, SLOW_START_PHASE, SLOW_START_INITIAL_SSTHRESH,
				tcp_snd_cwnd(tp), most);
	return acked;
}

static const struct slow_start_ops limited = {
	.name	= "limited",
	.owner	= THIS_MODULE,
	.grow	= grow,
};

module_slow_start(limited);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: limited slow start");
