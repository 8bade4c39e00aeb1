// SPDX-License-Identifier: GPL-2.0-only
/*
 * Adaptive Start, "TCP Westwood with Adaptive Start" (sections II.B and IV): a slow
 * start whose threshold follows the eligible rate estimate of TCPW.
 *
 * With every ACK, Tk = srtt * (expected - achieved) / expected, where expected is
 * cwnd / RTTmin and achieved what was delivered in the last RTT. What was delivered in
 * the last Tk, but not less than since the ACK before, is a sample of the rate: close to
 * a packet pair on an idle path, close to the throughput on a congested one. A first-
 * order low-pass filter of time constant tau (Tustin's form) makes of the samples the
 * estimate ERE. While slow start adapts,
 *
 *	ssthresh = max(ssthresh, ERE * RTTmin)
 *
 * so that phases of exponential and of linear growth alternate. Three duplicate ACKs
 * end that: ssthresh = ERE * RTTmin, and cwnd at most that. After a timeout ssthresh is
 * the same and slow start adapts anew.
 *
 * The threshold must begin low (the paper has 32 packets): with an infinite one, this
 * rule never acts. The HyStart paper (section 5.1, on its Fig. 9) describes another one,
 * rule=2: in slow start, ssthresh = ERE * RTTmin whenever that is above cwnd. It lowers an
 * infinite threshold, and overshoots where the estimate stays below cwnd.
 *
 * Left out: TCPW's later refinements. The paper does not give tau, nor the filter of
 * the achieved rate, which has the same one here. A sample is at most twice the one
 * before, against compressed ACKs.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

#define SLOTS		32		/* of the history */
#define SHARES		24		/* of an RTT, for each slot */
#define MOST_RATE	BIT_ULL(35)	/* bytes a second, so that products fit 64 bits */
#define MOST_US		((u32)BIT(24))	/* of a time constant or an interval */

slow_start_parameter(init_ssthresh, 32, 0, 0x7fffffff,
		     "initial ssthresh in packets, at least 2, 0: infinite (default 32)");

slow_start_parameter(init_cwnd, 0, 0, 1000000,
		     "initial window in packets, 0: the kernel's");

slow_start_parameter(rule, 1, 1, 2,
		     "1: ssthresh follows the estimate upwards; 2: it is the estimate while that is above cwnd (default 1)");

slow_start_parameter(tau_us, 0, 0, 10000000,
		     "time constant of the filters in us, 0: the smoothed RTT");

/**
 * struct moment - what had been delivered when
 * @time_us: low half of tcp_mstamp
 * @delivered: tp->delivered, packets
 */
struct moment {
	u32 time_us;
	u32 delivered;
};

/**
 * struct astart - state of a connection
 * @history: ring of moments, at least an RTT / SHARES apart
 * @last: the ACK before
 * @estimate: ERE, bytes a second
 * @achieved: filtered achieved rate, bytes a second
 * @achieved_sample: the newest one before the filter
 * @sample: the newest sample of ERE
 * @newest: slot of the newest moment
 * @used: slots that hold one
 * @adapting: ssthresh follows
 * @told: cwnd has reached ssthresh for the first time
 * @round: the last one in which a change of ssthresh was traced
 */
struct astart {
	struct moment history[SLOTS];
	struct moment last;
	u64 estimate;
	u64 achieved;
	u64 achieved_sample;
	u64 sample;
	u8 newest;
	u8 used;
	u8 adapting;
	u8 told;
	u32 round;
};

static void start(struct sock *sk)
{
	u32 threshold = READ_ONCE(init_ssthresh), window = READ_ONCE(init_cwnd);
	struct astart *astart = slow_start_state(sk);

	astart->round = U32_MAX;
	astart->adapting = tcp_in_slow_start(tcp_sk(sk));
	if (slow_start(sk)->joined)
		return;
	astart->adapting = 1;
	if (window)
		slow_start_set_cwnd(sk, window);
	/* A threshold that is known already (a route's, a cached one) stands. */
	if (threshold && slow_start_is_initial(sk))
		tcp_sk(sk)->snd_ssthresh = max(threshold, 2U);
}

static u32 srtt_us(const struct sock *sk)
{
	return clamp_t(u32, tcp_sk(sk)->srtt_us >> 3, 1, MOST_US);
}

static void remember(struct astart *astart, struct moment now)
{
	astart->newest = (astart->newest + 1) % SLOTS;
	astart->history[astart->newest] = now;
	astart->used = min(astart->used + 1, SLOTS);
}

/*
 * The rate in the last interval, which is not shorter than the time since the ACK
 * before. Where it begins between two moments, what was delivered between them is
 * shared out evenly; where the history is shorter, all of it is taken.
 *
 * It is divided by the interval, silence at its beginning included or not: where ACKs
 * come in clusters, as those of a flow that shares a queue with others do, the time
 * since the moment before the silence would be longer, and the rate too low.
 */
static u64 rate_in(const struct sock *sk, struct moment now, u32 interval_us)
{
	const struct astart *astart = slow_start_state(sk);
	struct moment later = now, found = astart->last;
	u32 mss = tcp_sk(sk)->mss_cache, between, inside_us, i;
	u64 bytes;

	for (i = 0; i < astart->used && now.time_us - found.time_us < interval_us; i++) {
		later = found;
		found = astart->history[(astart->newest + SLOTS - i) % SLOTS];
	}
	bytes = (u64)(now.delivered - later.delivered) * mss;
	between = later.delivered - found.delivered;
	if (now.time_us - found.time_us <= interval_us) {
		interval_us = max(now.time_us - found.time_us, 1U);
		bytes += (u64)between * mss;
	} else {
		inside_us = interval_us - (now.time_us - later.time_us);
		between = min_t(u32, between, BIT(20)); /* so that the product fits */
		bytes += div_u64((u64)between * mss * min(inside_us, MOST_US),
				 later.time_us - found.time_us);
	}
	bytes = min_t(u64, bytes, BIT_ULL(43));
	return min(div_u64(bytes * USEC_PER_SEC, interval_us), MOST_RATE);
}

/* Tustin's first-order low-pass: samples are joined by straight lines. */
static u64 filter(u64 value, u64 sample, u64 sample_before, u32 interval_us, u32 tau)
{
	u64 twice = 2ULL * tau, interval;

	/* An interval beyond 2 tau would make the weight of the past negative. */
	interval = min_t(u64, interval_us, twice);
	return div64_u64((twice - interval) * value +
			 interval * (sample + sample_before), twice + interval);
}

static u32 window_of(const struct sock *sk, u64 rate)
{
	u32 rtt_us = min(slow_start(sk)->min_rtt_us, MOST_US);
	u64 bytes = div_u64(rate * rtt_us, USEC_PER_SEC);

	return clamp_t(u64, div_u64(bytes, max(tcp_sk(sk)->mss_cache, 1U)), 2,
		       TCP_INFINITE_SSTHRESH - 1);
}

/* The interval of an ERE sample, us. */
static u32 sample_interval(const struct sock *sk)
{
	const struct astart *astart = slow_start_state(sk);
	u32 rtt_us = clamp(slow_start(sk)->min_rtt_us, 1U, MOST_US);
	u64 expected = slow_start_rate(sk, tcp_snd_cwnd(tcp_sk(sk)), rtt_us);

	/* So that the product below fits. */
	expected = clamp_t(u64, expected, 1, MOST_RATE);
	if (astart->achieved >= expected)
		return 0;
	return div64_u64(srtt_us(sk) * (expected - astart->achieved), expected);
}

static void estimate(struct sock *sk, struct moment now)
{
	struct astart *astart = slow_start_state(sk);
	u32 interval_us, tau = READ_ONCE(tau_us) ?: srtt_us(sk);
	u32 gap_us = now.time_us - astart->last.time_us;
	u64 sample;

	sample = rate_in(sk, now, max(srtt_us(sk), gap_us));
	astart->achieved = filter(astart->achieved, sample,
				  astart->achieved_sample, gap_us, tau);
	astart->achieved_sample = sample;

	interval_us = max(sample_interval(sk), gap_us);
	sample = rate_in(sk, now, interval_us);
	if (astart->sample)
		sample = min(sample, 2 * astart->sample);
	astart->estimate = filter(astart->estimate, sample, astart->sample,
				  gap_us, tau);
	astart->sample = sample;
}

static u32 kilobits(u64 bytes_per_second)
{
	return min_t(u64, div_u64(bytes_per_second * 8, 1000), U32_MAX);
}

/* Whether the estimate is to be the threshold. */
static bool takes(const struct sock *sk, u32 packets)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (READ_ONCE(rule) == 2)
		return tcp_in_slow_start(tp) && packets > tcp_snd_cwnd(tp) &&
		       packets != tp->snd_ssthresh;
	return packets > tp->snd_ssthresh;
}

static void move_threshold(struct sock *sk)
{
	struct astart *astart = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 packets, before = tp->snd_ssthresh;
	u8 state = inet_csk(sk)->icsk_ca_state;

	/* In recovery the threshold is the aim of the reduction. */
	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		return;
	packets = window_of(sk, astart->estimate);
	if (!takes(sk, packets))
		return;
	tp->snd_ssthresh = packets;
	/* It may rise with every ACK: one record a round tells enough. */
	if (astart->round == slow_start(sk)->round)
		return;
	astart->round = slow_start(sk)->round;
	slow_start_note(sk, SLOW_START_ESTIMATE, SLOW_START_RATE_ESTIMATE,
			kilobits(astart->estimate), before);
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct astart *astart = slow_start_state(sk);
	struct moment now = {
		.time_us = slow_start_now_us(sk),
		.delivered = tcp_sk(sk)->delivered,
	};

	if (slow_start(sk)->min_rtt_us == SLOW_START_NO_RTT)
		return;
	if (!astart->used) {
		remember(astart, now);
		astart->last = now;
		return;
	}
	if (now.delivered == astart->last.delivered)
		return;
	/* ACKs that arrive at the same time are one. */
	if (now.time_us != astart->last.time_us) {
		u32 share_us = srtt_us(sk) / SHARES;

		estimate(sk, now);
		/* Both ends of a silence. */
		if (now.time_us - astart->last.time_us >= share_us &&
		    astart->last.time_us != astart->history[astart->newest].time_us)
			remember(astart, astart->last);
		if (now.time_us - astart->history[astart->newest].time_us >= share_us)
			remember(astart, now);
		astart->last = now;
	}
	if (astart->adapting)
		move_threshold(sk);
}

/* The first phase of linear growth is the exit, all later ones lie behind it. */
static void limit(struct sock *sk)
{
	struct astart *astart = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (astart->told || tcp_in_slow_start(tp))
		return;
	astart->told = 1;
	slow_start_note(sk, SLOW_START_EXIT, SLOW_START_RATE_ESTIMATE,
			kilobits(astart->estimate), tp->snd_ssthresh);
}

static u32 threshold(struct sock *sk)
{
	const struct astart *astart = slow_start_state(sk);

	/* Without an estimate the base's. */
	if (!astart->estimate)
		return 0;
	return min(window_of(sk, astart->estimate), tcp_snd_cwnd(tcp_sk(sk)));
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	struct astart *astart = slow_start_state(sk);

	astart->adapting = why == SLOW_START_RTO;
	astart->told = 1;
	if (why == SLOW_START_RTO && astart->estimate)
		tcp_sk(sk)->snd_ssthresh = window_of(sk, astart->estimate);
}

/* A pause is no interval between ACKs: the history begins anew, the estimate stays. */
static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct astart *astart = slow_start_state(sk);

	astart->used = 0;
	if (why != SLOW_START_AFTER_RTO)
		return;
	astart->adapting = 1;
	astart->told = 0;
}

static const struct slow_start_ops astart = {
	.name		= "astart",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct astart),
	.flags		= SLOW_START_OWN_EXIT,
	.start		= start,
	.sample		= sample,
	.limit		= limit,
	.ssthresh	= threshold,
	.congestion	= congestion,
	.restart	= restart,
};

module_slow_start(astart);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: Adaptive Start");
