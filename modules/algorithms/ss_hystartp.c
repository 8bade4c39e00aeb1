// SPDX-License-Identifier: GPL-2.0-only
/*
 * HyStart as in Algorithm 1 of S. Ha and I. Rhee, "Taming the Elephants: New TCP Slow
 * Start", section 4.2.
 *
 * Slow start ends at the first of two signs, once cwnd has low_window packets:
 * - ACK train: ACKs that follow each other within ack_delta_us have been arriving for
 *   half of the smallest RTT since the round began (section 4.2.1).
 * - Delay: the smallest RTT of a round's first ACKs is at least eta above that of the
 *   round before; eta is a 16th of the latter, within bounds (section 4.2.2).
 *
 * The paper counts in jiffies of 1 ms. Here clock_us is that tick: arrivals are
 * rounded down to ticks and RTTs up, as usecs_to_jiffies() does.
 *
 * Where the pseudo-code cannot be meant as printed: it tests cnt and counts
 * samplingCnt, taken as one counter; and a sign seen below low_window is remembered,
 * for otherwise slow start could not end any more. The pseudo-code takes the minimum
 * of the samples, the text of section 4.2.2 speaks of their average: it is the
 * minimum. The first round has no round before it, so it knows no delay.
 *
 * abc_limit=1 is the growth of the kernels the paper used, one packet an ACK whatever
 * it acknowledges (Linux 2.6.23 with tcp_abc=0); Linux counts packets since 3.15.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

#define TRAIN	1
#define DELAY	2
#define NO_RTT	SLOW_START_NO_RTT

slow_start_parameter(clock_us, 1000, 1, 100000,
		     "tick of the clock, us: 1000000/HZ reproduces jiffies, 1 is exact (default 1000)");
slow_start_parameter(detect, TRAIN | DELAY, 1, TRAIN | DELAY,
		     "signs heeded: 1 ACK train, 2 delay, 3 both (default 3)");
slow_start_parameter(low_window, 16, 2, 1000000,
		     "smallest window slow start ends with, packets (default 16)");
slow_start_parameter(samples, 8, 1, 255,
		     "ACKs of a round whose RTT is looked at (default 8)");
slow_start_parameter(ack_delta_us, 2000, 1, 1000000,
		     "largest spacing of ACKs in a train, us (default 2000)");
slow_start_parameter(eta_divisor, 16, 1, 1024,
		     "eta is the RTT of the round before divided by this (default 16)");
slow_start_parameter(eta_low_us, 2000, 1, 10000000,
		     "smallest eta, us (default 2000)");
slow_start_parameter(eta_high_us, 8000, 1, 10000000,
		     "largest eta, us; not below eta_low_us (default 8000)");

slow_start_parameter(abc_limit, 0, 0, 1000000,
		     "packets cwnd grows by at most for one ACK (L of RFC 3465), 0: no limit (default 0)");

/**
 * struct hystart - all times in ticks
 * @clock_us: a tick, as the parameter was when the connection began
 * @min_rtt: dMin
 * @last_rtt: lastRTT, of the round before, or NO_RTT
 * @rtt: curRTT, of this round, or NO_RTT
 * @round_start: when the round began
 * @last_ack: the newest ACK of the train
 * @quantity: what was found
 * @threshold: its limit
 * @sampled: ACKs of this round whose RTT was taken
 * @found: TRAIN, DELAY or 0
 * @done: slow start was ended for it
 */
struct hystart {
	u32 clock_us;
	u32 min_rtt;
	u32 last_rtt;
	u32 rtt;
	u32 round_start;
	u32 last_ack;
	u32 quantity;
	u32 threshold;
	u8 sampled;
	u8 found;
	bool done;
};

static u32 now(const struct sock *sk)
{
	const struct hystart *h = slow_start_state(sk);

	return div_u64(tcp_sk(sk)->tcp_mstamp, h->clock_us);
}

static u32 to_ticks(const struct hystart *h, u32 us)
{
	return us / h->clock_us + !!(us % h->clock_us);
}

static u32 to_us(const struct hystart *h, u32 ticks)
{
	return min_t(u64, (u64)ticks * h->clock_us, U32_MAX);
}

/*
 * Paper: cwnd <= ssthresh. At equality there is nothing to set, and during a recovery
 * cwnd is below ssthresh without being in slow start.
 */
static bool is_looking(const struct sock *sk)
{
	u8 state = inet_csk(sk)->icsk_ca_state;

	return tcp_in_slow_start(tcp_sk(sk)) && state != TCP_CA_CWR &&
	       state != TCP_CA_Recovery;
}

static void next_round(struct sock *sk)
{
	struct hystart *h = slow_start_state(sk);

	if (h->found || !is_looking(sk))
		return;
	h->round_start = now(sk);
	h->last_ack = h->round_start;
	h->last_rtt = h->rtt;
	h->rtt = NO_RTT;
	h->sampled = 0;
}

static void forget(struct sock *sk)
{
	struct hystart *h = slow_start_state(sk);

	h->min_rtt = NO_RTT;
	h->found = 0;
	h->done = false;
	next_round(sk);
}

static void start(struct sock *sk)
{
	struct hystart *h = slow_start_state(sk);

	h->clock_us = clock_us;
	h->rtt = NO_RTT;
	h->last_rtt = NO_RTT;
	forget(sk);
}

static void find(struct hystart *h, u8 sign, u32 quantity, u32 threshold)
{
	if (h->found || !(detect & sign))
		return;
	h->found = sign;
	h->quantity = quantity;
	h->threshold = threshold;
}

static void look_at_train(struct sock *sk, struct hystart *h)
{
	u32 time = now(sk);

	if (h->min_rtt == NO_RTT || time - h->last_ack > to_ticks(h, ack_delta_us))
		return;
	h->last_ack = time;
	if (time - h->round_start >= h->min_rtt / 2)
		find(h, TRAIN, time - h->round_start, h->min_rtt / 2);
}

static u32 eta(const struct hystart *h)
{
	u32 part = h->last_rtt / eta_divisor + !!(h->last_rtt % eta_divisor);
	u32 low = to_ticks(h, eta_low_us);

	return clamp(part, low, max(low, to_ticks(h, eta_high_us)));
}

static void look_at_delay(struct hystart *h, u32 rtt)
{
	u64 limit;

	if (h->sampled < samples) {
		h->rtt = min(h->rtt, rtt);
		h->sampled++;
	}
	if (h->sampled < samples || h->last_rtt == NO_RTT)
		return;
	limit = (u64)h->last_rtt + eta(h);
	if (h->rtt >= limit)
		find(h, DELAY, h->rtt, limit);
}

/* The kernel's counters of HyStart, so that they can be compared with in-tree cubic's. */
static void leave(struct sock *sk, struct hystart *h)
{
	bool train = h->found == TRAIN;
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	h->done = true;
	if (train) {
		NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTTRAINDETECT);
		NET_ADD_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTTRAINCWND, cwnd);
	} else {
		NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTDELAYDETECT);
		NET_ADD_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTDELAYCWND, cwnd);
	}
	slow_start_exit(sk, train ? SLOW_START_ACK_TRAIN : SLOW_START_DELAY,
			to_us(h, h->quantity), to_us(h, h->threshold));
}

static void sample(struct sock *sk, const struct ack_sample *ack)
{
	struct hystart *h = slow_start_state(sk);
	u32 rtt = NO_RTT;

	if (ack->rtt_us >= 0) {
		rtt = max(to_ticks(h, ack->rtt_us), 1U);
		h->min_rtt = min(h->min_rtt, rtt);
	}
	if (h->done || !is_looking(sk))
		return;
	if (!h->found) {
		look_at_train(sk, h);
		if (rtt != NO_RTT)
			look_at_delay(h, rtt);
	}
	if (h->found && tcp_snd_cwnd(tcp_sk(sk)) >= low_window)
		leave(sk, h);
}

static u32 grow(struct sock *sk, u32 acked)
{
	u32 limit = READ_ONCE(abc_limit);
	u32 counted = limit ? min(acked, limit) : acked;
	u32 left = tcp_slow_start(tcp_sk(sk), counted);

	/* Congestion avoidance knows no limit: it gets all that did not count. */
	return tcp_in_slow_start(tcp_sk(sk)) ? 0 : left + acked - counted;
}

/* After a pause the first ACK begins a round, and is too late for the train of the last. */
static void restart(struct sock *sk, enum slow_start_restart why)
{
	if (why == SLOW_START_AFTER_RTO)
		forget(sk);
}

static const struct slow_start_ops hystartp = {
	.name		= "hystartp",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct hystart),
	.start		= start,
	.round		= next_round,
	.sample		= sample,
	.grow		= grow,
	.restart	= restart,
};

module_slow_start(hystartp);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: HyStart as in the paper's Algorithm 1");
