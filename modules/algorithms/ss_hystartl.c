// SPDX-License-Identifier: GPL-2.0-only
/*
 * HyStart as in Linux' tcp_cubic, before any congestion avoidance. After the paper
 * (see ss_hystartp.c), with what Linux made of it: times are microseconds, the delay
 * is compared with the smallest RTT of the connection, and the train's limit takes
 * into account that segments are sent in bunches and may be paced.
 *
 * With its defaults it decides as the tcp_cubic of Linux 6.12 on every ACK
 * (hystart_update()), including what is peculiar there: the second after congestion
 * avoidance began brings no RTT samples, nothing is looked for again until a timeout,
 * and the smallest RTT is forgotten at a timeout. The counters TCPHystart* of the
 * kernel are counted too. Parameters that tcp_cubic does not have choose the
 * behaviour of earlier kernels; docs/algorithms/hystartl.md lists them by version.
 *
 * Left out: tcp_cubic's initial_ssthresh, which it heeds only without HyStart.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

#define TRAIN	1
#define DELAY	2
#define NO_RTT	SLOW_START_NO_RTT

/* round_rule: when a new round is noticed. */
#define ROUND_GROWING	0	/* by an ACK that lets cwnd grow */
#define ROUND_LARGE	1	/* by a sample, from low_window on */
#define ROUND_ANY	2	/* by any sample */

slow_start_parameter(detect, TRAIN | DELAY, 1, TRAIN | DELAY,
		     "signs heeded: 1 ACK train, 2 delay, 3 both (default 3)");
slow_start_parameter(low_window, 16, 2, 1000000,
		     "smallest window slow start ends with, packets (default 16)");
slow_start_parameter(ack_delta_us, 2000, 1, 1000000,
		     "largest spacing of ACKs in a train, us (default 2000)");
slow_start_parameter(samples, 8, 1, 255,
		     "RTT samples of a round before its delay is judged (default 8)");
slow_start_parameter(delay_shift, 3, 0, 31,
		     "delay allowed: smallest RTT shifted right by this (default 3)");
slow_start_parameter(delay_low_us, 4000, 1, 10000000,
		     "smallest delay allowed, us (default 4000)");
slow_start_parameter(delay_high_us, 16000, 1, 10000000,
		     "largest delay allowed, us; not below delay_low_us (default 16000)");
slow_start_parameter(whole_round, 1, 0, 1,
		     "1: delay of a round is the minimum of all its samples, 0: of the first ones (default 1)");
slow_start_parameter(train_allowance, 1, 0, 1,
		     "1: trains are allowed up to 1 ms more for segmentation offload, 0: not (default 1)");
slow_start_parameter(train_paced, 1, 0, 1,
		     "1: a train may last the whole smallest RTT if the sender paces, 0: half of it always (default 1)");
slow_start_parameter(round_rule, ROUND_ANY, ROUND_GROWING, ROUND_ANY,
		     "a round begins with 0: an ACK that lets cwnd grow, 1: a sample from low_window on, 2: any sample (default 2)");
slow_start_parameter(clock_us, 1, 1, 100000,
		     "tick of the clock of ACKs, us; RTTs are counted in eighths of it (default 1)");

/**
 * struct hystart - times in microseconds
 * @min_rtt_us: smallest RTT since the start or a timeout; 0 before the first sample
 * @rtt_us: smallest RTT of the round, or NO_RTT
 * @round_start_us: when the round began
 * @last_ack_us: the newest ACK of the train
 * @round_end: snd_nxt when the round began
 * @epoch: jiffies when congestion avoidance began after the last congestion, or 0
 * @sampled: samples of the round, at most the parameter samples
 * @found: slow start was ended
 * @grew: this ACK was already seen to end slow start, or not to
 */
struct hystart {
	u32 min_rtt_us;
	u32 rtt_us;
	u32 round_start_us;
	u32 last_ack_us;
	u32 round_end;
	u32 epoch;
	u8 sampled;
	bool found;
	bool grew;
};

static u32 now_us(const struct sock *sk)
{
	u64 time = tcp_sk(sk)->tcp_mstamp;
	u32 rest;

	if (clock_us > 1) {
		div_u64_rem(time, clock_us, &rest);
		time -= rest;
	}
	return time;
}

static u32 counted_rtt_us(const struct ack_sample *ack)
{
	u32 rtt_us = max(ack->rtt_us, 1), eighth = clock_us / 8;

	if (eighth > 1)
		rtt_us -= rtt_us % eighth;
	return max(rtt_us, 1U);
}

static void begin_round(struct sock *sk)
{
	struct hystart *h = slow_start_state(sk);

	h->round_start_us = now_us(sk);
	h->last_ack_us = h->round_start_us;
	h->round_end = tcp_sk(sk)->snd_nxt;
	h->rtt_us = NO_RTT;
	h->sampled = 0;
}

static void start(struct sock *sk)
{
	struct hystart *h = slow_start_state(sk);

	h->min_rtt_us = 0;
	h->epoch = 0;
	h->found = false;
	begin_round(sk);
}

/* Time in which segments are gathered before and after the network, at most 1 ms. */
static u32 allowance_us(const struct sock *sk)
{
	unsigned long rate = READ_ONCE(sk->sk_pacing_rate);

	if (!train_allowance || !rate)
		return 0;
	return min_t(u64, USEC_PER_MSEC,
		     div64_u64((u64)sk->sk_gso_max_size * 4 * USEC_PER_SEC, rate));
}

static void leave(struct sock *sk, enum slow_start_reason reason, u32 quantity,
		  u32 threshold)
{
	struct hystart *h = slow_start_state(sk);

	/* Both signs may come with one ACK; the first is the reason. */
	if (!h->found)
		slow_start_exit(sk, reason, quantity, threshold);
	h->found = true;
}

static void look_at_train(struct sock *sk, struct hystart *h)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), now = now_us(sk);
	u32 length_us = now - h->round_start_us, limit_us;

	if ((s32)(now - h->last_ack_us) > (s32)ack_delta_us)
		return;
	h->last_ack_us = now;
	limit_us = h->min_rtt_us + allowance_us(sk);
	/* Pacing at twice the rate spreads a window over half an RTT. */
	if (!train_paced || sk->sk_pacing_status == SK_PACING_NONE)
		limit_us /= 2;
	if (length_us <= limit_us)
		return;
	NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTTRAINDETECT);
	NET_ADD_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTTRAINCWND, cwnd);
	leave(sk, SLOW_START_ACK_TRAIN, length_us, limit_us);
}

static void look_at_delay(struct sock *sk, struct hystart *h, u32 rtt_us)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), limit_us;

	if (whole_round || h->sampled < samples)
		h->rtt_us = min(h->rtt_us, rtt_us);
	if (h->sampled < samples) {
		h->sampled++;
		return;
	}
	limit_us = h->min_rtt_us + clamp(h->min_rtt_us >> delay_shift,
					 delay_low_us,
					 max(delay_low_us, delay_high_us));
	if (h->rtt_us <= limit_us)
		return;
	NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTDELAYDETECT);
	NET_ADD_STATS(sock_net(sk), LINUX_MIB_TCPHYSTARTDELAYCWND, cwnd);
	leave(sk, SLOW_START_DELAY, h->rtt_us, limit_us);
}

static bool is_round_over(const struct sock *sk)
{
	const struct hystart *h = slow_start_state(sk);

	return after(tcp_sk(sk)->snd_una, h->round_end);
}

static void look(struct sock *sk, struct hystart *h, u32 rtt_us)
{
	if (round_rule == ROUND_ANY && is_round_over(sk))
		begin_round(sk);
	if (tcp_snd_cwnd(tcp_sk(sk)) < low_window)
		return;
	if (round_rule == ROUND_LARGE && is_round_over(sk))
		begin_round(sk);
	if (detect & TRAIN)
		look_at_train(sk, h);
	if (detect & DELAY)
		look_at_delay(sk, h, rtt_us);
}

static void sample(struct sock *sk, const struct ack_sample *ack)
{
	struct hystart *h = slow_start_state(sk);
	u32 rtt_us;

	if (ack->rtt_us < 0 ||
	    (h->epoch && (s32)(tcp_jiffies32 - h->epoch) < HZ))
		return;
	rtt_us = counted_rtt_us(ack);
	if (!h->min_rtt_us || h->min_rtt_us > rtt_us)
		h->min_rtt_us = rtt_us;
	if (!h->found && tcp_in_slow_start(tcp_sk(sk)))
		look(sk, h, rtt_us);
}

static void begin_epoch(struct hystart *h)
{
	if (!h->epoch)
		h->epoch = tcp_jiffies32;
}

static u32 grow(struct sock *sk, u32 acked)
{
	struct hystart *h = slow_start_state(sk);
	u32 left;

	if (round_rule == ROUND_GROWING && is_round_over(sk))
		begin_round(sk);
	left = tcp_slow_start(tcp_sk(sk), acked);
	if (left)
		begin_epoch(h);
	h->grew = true;
	return left;
}

/* CUBIC's epoch, whatever the base: it begins with the first ACK that is not slow start's. */
static void limit(struct sock *sk)
{
	struct hystart *h = slow_start_state(sk);

	if (!h->grew && !tcp_in_slow_start(tcp_sk(sk)) && tcp_is_cwnd_limited(sk))
		begin_epoch(h);
	h->grew = false;
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	struct hystart *h = slow_start_state(sk);

	h->epoch = 0;
}

/* CUBIC's epoch does not go on while there is nothing to send. */
static void move_epoch(struct sock *sk)
{
	struct hystart *h = slow_start_state(sk);
	u32 now = tcp_jiffies32;
	s32 idle = now - tcp_sk(sk)->lsndtime;

	if (!h->epoch || idle <= 0)
		return;
	h->epoch += idle;
	if (after(h->epoch, now))
		h->epoch = now;
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	if (why == SLOW_START_AFTER_RTO)
		start(sk);
	else if (why == SLOW_START_TX_START)
		move_epoch(sk);
}

static const struct slow_start_ops hystartl = {
	.name		= "hystartl",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct hystart),
	.start		= start,
	.sample		= sample,
	.grow		= grow,
	.limit		= limit,
	.congestion	= congestion,
	.restart	= restart,
};

module_slow_start(hystartl);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: HyStart as in Linux");
