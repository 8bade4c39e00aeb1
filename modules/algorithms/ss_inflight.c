// SPDX-License-Identifier: GPL-2.0-only
/*
 * FreeBSD's inflight limiting (tcp_xmit_bandwidth_limit() of FreeBSD 4 to 8), which
 * the HyStart paper names as the reason why its FreeBSD senders left slow start early.
 *
 * Once a clock tick at most, when an ACK arrives, the bytes acknowledged since the
 * last time give a bandwidth, of which one sixteenth enters the average. What may be in
 * flight is
 *
 *	bandwidth * (smoothed RTT + smallest RTT) / 2 + stab / 10 segments
 *
 * and cwnd is held at that, in slow start and after it. RTTs are whole ticks, rounded
 * up. The average starts at nothing, and where a window of ACKs arrives in few ticks it
 * has few samples a round: slow start is cut short, the more the coarser the clock.
 *
 * FreeBSD limits what is sent and lets cwnd grow unseen; here cwnd itself is lowered,
 * so that after a rise of the limit cwnd grows to it as usual.
 *
 * Left out: FreeBSD's limit while a connection's smallest RTT is not known yet.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

#define MOST_RATE	BIT_ULL(37)	/* bytes a second, so that products fit 64 bits */
#define MOST_RTT	((u32)BIT(26))	/* us */

slow_start_parameter(stab, 20, 0, 10000, "added to the limit, tenths of a segment (default 20)");

slow_start_parameter(tick_us, 1000, 1, 1000000,
		     "clock tick in us (FreeBSD 7: 1000, older: 10000, 1: no coarser than TCP's own) (default 1000)");

slow_start_parameter(min_bytes, 6144, 0, 0x7fffffff,
		     "smallest limit in bytes, never below two segments (default 6144)");

slow_start_parameter(rtt_threshold_us, 10000, 0, 10000000,
		     "no limit while the smallest RTT is below, us (default 10000)");

/**
 * struct inflight - state of a connection
 * @rate: average bandwidth, bytes a second
 * @limit: packets, U32_MAX: none yet
 * @time: tick of the last sample
 * @una: snd_una then
 * @begun: @time and @una are set
 * @told: this slow start's first limitation was traced
 */
struct inflight {
	u64 rate;
	u32 limit;
	u32 time;
	u32 una;
	u8 begun;
	u8 told;
};

static void start(struct sock *sk)
{
	struct inflight *inflight = slow_start_state(sk);

	inflight->limit = U32_MAX;
}

static u32 in_ticks(u32 rtt_us, u32 tick)
{
	return min_t(u64, DIV_ROUND_UP_ULL(rtt_us, tick) * tick, MOST_RTT);
}

static void set_limit(struct sock *sk, u32 tick)
{
	struct inflight *inflight = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 mss = max(tp->mss_cache, 1U), rtt_us;
	u64 bytes;

	rtt_us = in_ticks(slow_start(sk)->min_rtt_us, tick) / 2 +
		 in_ticks(tp->srtt_us >> 3, tick) / 2;
	bytes = div_u64(inflight->rate * rtt_us, USEC_PER_SEC) +
		(u64)READ_ONCE(stab) * mss / 10;
	bytes = max3(bytes, (u64)READ_ONCE(min_bytes), 2ULL * mss);
	inflight->limit = min_t(u64, div_u64(bytes, mss), U32_MAX - 1);
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct inflight *inflight = slow_start_state(sk);
	u32 tick = READ_ONCE(tick_us), una = tcp_sk(sk)->snd_una, now, ticks;
	const struct slow_start *ss = slow_start(sk);
	u64 rate;

	now = div_u64(tcp_sk(sk)->tcp_mstamp, tick);
	ticks = now - inflight->time;
	if (inflight->begun && !ticks)
		return;
	rate = div64_u64((u64)(una - inflight->una) * USEC_PER_SEC,
			 max_t(u64, (u64)ticks * tick, 1));
	inflight->time = now;
	inflight->una = una;
	if (!inflight->begun) {
		inflight->begun = 1;
		return;
	}
	inflight->rate = (15 * inflight->rate + min(rate, MOST_RATE)) / 16;
	if (ss->min_rtt_us == SLOW_START_NO_RTT ||
	    ss->min_rtt_us < READ_ONCE(rtt_threshold_us))
		inflight->limit = U32_MAX;
	else
		set_limit(sk, tick);
}

static void limit(struct sock *sk)
{
	struct inflight *inflight = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (cwnd <= inflight->limit)
		return;
	if (tcp_in_slow_start(tp) && !inflight->told) {
		inflight->told = 1;
		slow_start_note(sk, SLOW_START_PHASE, SLOW_START_INFLIGHT_LIMIT,
				inflight->limit, cwnd);
	}
	slow_start_set_cwnd(sk, inflight->limit);
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct inflight *inflight = slow_start_state(sk);

	if (why != SLOW_START_TX_START)
		inflight->told = 0;
}

static const struct slow_start_ops inflight = {
	.name		= "inflight",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct inflight),
	.start		= start,
	.sample		= sample,
	.limit		= limit,
	.restart	= restart,
};

module_slow_start(inflight);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: FreeBSD's inflight limiting");
