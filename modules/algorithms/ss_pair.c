// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slow start with a threshold from closely spaced ACKs: Hoe, "Improving the Start-up
 * Behavior of a Congestion Control Scheme for TCP" (SIGCOMM 1996), as described in
 * section III.C of the paper on Adaptive Start.
 *
 * Packets that leave back to back come out of the bottleneck at its rate, and their
 * ACKs come back so. Of the ACKs of the first window, the three in a row that arrived
 * closest together give a rate, the slope of a least-squares line through what they
 * acknowledge over time. ssthresh becomes that rate times the RTT of the first segment,
 * once; slow start goes on until there. A window of too few ACKs decides nothing, and
 * the next one is asked. With skip the first ACKs of a window do not count: a token
 * bucket that was idle lets two packets pass at once, where a link lets one.
 *
 * With volley, Swift-Start (Partridge and others, BBN TR-8339, 2002; here after the
 * paper on Jump Start): the first window is so many segments, and after it cwnd itself
 * becomes rate times RTT, sent at that rate for one RTT. Slow start is over then.
 *
 * Left out: Swift-Start's fraction of the estimate for safety, and its estimates
 * during the whole connection.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

#define POINTS		3
#define FAR		BIT(24)		/* us, and bytes: no pair is that far apart */

slow_start_parameter(volley, 0, 0, 64,
		     "first window in segments after which cwnd is set (Swift-Start), 0: only ssthresh is");

slow_start_parameter(average, 0, 0, 1,
		     "0: the closest three ACKs decide, 1: the mean of all sets of three");

slow_start_parameter(min_span_us, 1, 1, 1000000,
		     "three ACKs closer than this were compressed, us (default 1)");

slow_start_parameter(skip, 0, 0, 64,
		     "ACKs at the beginning of a window that do not count (default 0)");

slow_start_parameter(max_ssthresh, 0, 0, 1000000,
		     "largest estimate in packets, 0: none");

slow_start_parameter(paced, 1, 0, 1, "pace the window after a volley over one RTT (default 1)");

slow_start_parameter(pace_first, 0, 0, 1,
		     "1: that window is paced from its first segment, also within the connection's first ten (default 0)");

slow_start_parameter(clock_us, 0, 0, 1000000,
		     "ACKs are timed by a clock that ticks so often, us, 0: the kernel's microseconds (default 0)");

/**
 * struct pair - state of a connection
 * @time_us: arrival of the last POINTS ACKs, oldest first
 * @acked: snd_una at each
 * @points: how many there are, at most POINTS
 * @rtt_us: RTT of the first segment, 0: there was none yet
 * @end: snd_nxt when the window's first ACK arrived, it ends there
 * @una: the newest snd_una
 * @span_us: of the closest three
 * @samples: sets of three ACKs seen
 * @rate: bytes a second of the closest three, or the sum over all sets
 * @volley: segments of the first window, 0: no Swift-Start
 * @skipped: ACKs of the window that did not count
 * @jump_end: snd_nxt when cwnd was set
 * @begun: an ACK of the window has arrived
 * @done: estimated, or there is nothing to estimate
 * @jumping: the first window after the volley is on its way
 */
struct pair {
	u64 rate;
	u32 time_us[POINTS];
	u32 acked[POINTS];
	u32 rtt_us;
	u32 end;
	u32 una;
	u32 span_us;
	u32 jump_end;
	u16 samples;
	u8 points;
	u8 volley;
	u8 skipped;
	u8 begun : 1,
	   done : 1,
	   jumping : 1;
};

static void start(struct sock *sk)
{
	struct pair *pair = slow_start_state(sk);

	/* A threshold that is known, or a window that is no longer the first. */
	pair->done = slow_start(sk)->joined || !tcp_in_slow_start(tcp_sk(sk));
	if (pair->done)
		return;
	pair->volley = READ_ONCE(volley);
	if (pair->volley)
		slow_start_set_cwnd(sk, pair->volley);
}

/* Slope through three points in bytes a second, 0 where they have none. */
static u64 slope(const struct pair *pair)
{
	u64 x1 = pair->time_us[1] - pair->time_us[0];
	u64 x2 = pair->time_us[2] - pair->time_us[0];
	u64 y1 = pair->acked[1] - pair->acked[0];
	u64 y2 = pair->acked[2] - pair->acked[0];
	s64 covariance;
	u64 variance;

	if (x2 < READ_ONCE(min_span_us) || x2 >= FAR || y2 >= FAR)
		return 0;
	covariance = 3 * (x1 * y1 + x2 * y2) - (x1 + x2) * (y1 + y2);
	variance = 3 * (x1 * x1 + x2 * x2) - (x1 + x2) * (x1 + x2);
	if (covariance <= 0 || !variance)
		return 0;
	/* Bytes a millisecond do not overflow: both factors are below 2^50 and 2^10. */
	return div64_u64(covariance * USEC_PER_MSEC, variance) * MSEC_PER_SEC;
}

/*
 * A time by a clock as coarse as those of the papers' senders (a tick of 1, 4 or 10 ms).
 * Three ACKs of one tick have no slope, like those closer than min_span_us.
 */
static u64 ticked(u64 time_us)
{
	u32 tick_us = READ_ONCE(clock_us);

	/* Of the whole 64 bits: a wrap would not fall on a tick. */
	return tick_us ? div_u64(time_us, tick_us) * tick_us : time_us;
}

static u32 rtt_by_clock(const struct sock *sk)
{
	u64 now = tcp_sk(sk)->tcp_mstamp;
	u32 rtt_us = slow_start(sk)->last_rtt_us;

	return max_t(u64, ticked(now) - ticked(now - rtt_us), 1);
}

static void add_point(struct sock *sk)
{
	struct pair *pair = slow_start_state(sk);
	u32 i, span_us;
	u64 rate;

	if (pair->points == POINTS)
		for (i = 1; i < POINTS; i++) {
			pair->time_us[i - 1] = pair->time_us[i];
			pair->acked[i - 1] = pair->acked[i];
		}
	else
		pair->points++;
	pair->time_us[pair->points - 1] = ticked(tcp_sk(sk)->tcp_mstamp);
	pair->acked[pair->points - 1] = tcp_sk(sk)->snd_una;
	if (pair->points < POINTS)
		return;
	rate = slope(pair);
	if (!rate || pair->samples == U16_MAX)
		return;
	span_us = pair->time_us[POINTS - 1] - pair->time_us[0];
	if (READ_ONCE(average))
		pair->rate += rate;
	else if (!pair->samples || span_us < pair->span_us)
		pair->rate = rate;
	if (!pair->samples || span_us < pair->span_us)
		pair->span_us = span_us;
	pair->samples++;
}

static void jump(struct sock *sk, u32 packets, u64 rate, u32 kbits)
{
	struct pair *pair = slow_start_state(sk);

	slow_start_set_cwnd(sk, packets);
	pair->jumping = 1;
	pair->jump_end = tcp_sk(sk)->snd_nxt;
	if (READ_ONCE(paced))
		slow_start_pace(sk, rate);
	if (READ_ONCE(paced) && READ_ONCE(pace_first))
		slow_start_pace_first(sk);
	slow_start_note(sk, SLOW_START_JUMP, SLOW_START_PACKET_PAIR, kbits,
			pair->samples);
	slow_start_exit(sk, SLOW_START_PACKET_PAIR, kbits, pair->samples);
}

static void estimate(struct sock *sk)
{
	struct pair *pair = slow_start_state(sk);
	u32 limit = READ_ONCE(max_ssthresh), packets, kbits;
	struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = pair->rate, bytes;

	if (READ_ONCE(average))
		rate = div_u64(rate, pair->samples);
	pair->done = 1;
	/* A rate is at most 2^48 bytes a second; beyond 2^36 none is believed. */
	rate = min_t(u64, rate, BIT_ULL(36));
	bytes = div_u64(rate * min_t(u32, pair->rtt_us, BIT(27)), USEC_PER_SEC);
	packets = clamp_t(u64, div_u64(bytes, max(tp->mss_cache, 1U)), 2,
			  limit ? max(limit, 2U) : TCP_INFINITE_SSTHRESH - 1);
	kbits = min_t(u64, div_u64(rate * 8, 1000), U32_MAX);
	tp->snd_ssthresh = packets;
	slow_start_note(sk, SLOW_START_ESTIMATE, SLOW_START_PACKET_PAIR, kbits,
			pair->samples);
	if (pair->volley)
		jump(sk, packets, rate, kbits);
}

static void next_window(struct sock *sk)
{
	struct pair *pair = slow_start_state(sk);

	pair->begun = 0;
	pair->points = 0;
	pair->skipped = 0;
	pair->samples = 0;
	pair->rate = 0;
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct pair *pair = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (pair->jumping && after(tp->snd_una, pair->jump_end)) {
		pair->jumping = 0;
		slow_start_unpace(sk);
	}
	if (pair->done || (pair->begun && tp->snd_una == pair->una))
		return;
	pair->una = tp->snd_una;
	if (!pair->rtt_us && sample->rtt_us >= 0)
		pair->rtt_us = rtt_by_clock(sk);
	if (!pair->begun) {
		pair->begun = 1;
		pair->end = tp->snd_nxt;
	}
	if (pair->skipped < READ_ONCE(skip))
		pair->skipped++;
	else
		add_point(sk);
	if (before(tp->snd_una, pair->end))
		return;
	if (pair->samples && pair->rtt_us)
		estimate(sk);
	else
		next_window(sk);
}

/* What is known after a loss or a pause is not what the first window would say. */
static void give_up(struct sock *sk)
{
	struct pair *pair = slow_start_state(sk);

	pair->done = 1;
	pair->jumping = 0;
	slow_start_unpace(sk);
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	give_up(sk);
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct pair *pair = slow_start_state(sk);

	if (why != SLOW_START_TX_START)
		give_up(sk);
	else if (!pair->done)
		next_window(sk);
}

static const struct slow_start_ops pair = {
	.name		= "pair",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct pair),
	.start		= start,
	.sample		= sample,
	.congestion	= congestion,
	.restart	= restart,
};

module_slow_start(pair);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: ssthresh or cwnd from a packet pair");
