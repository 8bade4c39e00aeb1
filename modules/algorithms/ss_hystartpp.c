// SPDX-License-Identifier: GPL-2.0-only
/*
 * HyStart++ (RFC 9406).
 *
 * When the smallest RTT of a round has grown by a threshold over that of the round
 * before, slow start becomes Conservative Slow Start (CSS, section 4.2): cwnd grows by
 * a fraction of what is acknowledged. If within css_rounds rounds the RTT falls below
 * what it was when CSS began, the growth of the RTT was a false alarm, and slow start
 * goes on; otherwise slow start ends with the last of those rounds. The round in
 * which CSS begins counts as one, though part of it has passed. Losses and ECN marks
 * end either at once, by the kernel.
 *
 * Only the first slow start of a connection, with ssthresh not set yet, is treated so
 * (section 4.3); later ones have an ssthresh to end at. For the ACK that begins CSS,
 * cwnd already grows by the fraction; the RFC lets it grow before it looks.
 *
 * Left out: nothing of the algorithm. Growth is capped at L segments an ACK, except
 * for a connection that paces (section 4.3); pacing itself is the kernel's business.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

slow_start_parameter(min_rtt_threshold_us, 4000, 1, 10000000,
		     "MIN_RTT_THRESH, smallest growth of the RTT heeded, us (default 4000)");
slow_start_parameter(max_rtt_threshold_us, 16000, 1, 10000000,
		     "MAX_RTT_THRESH, largest growth required, us; not below min_rtt_threshold_us (default 16000)");
slow_start_parameter(min_rtt_divisor, 8, 1, 1024,
		     "MIN_RTT_DIVISOR, the threshold is the RTT divided by this (default 8)");
slow_start_parameter(rtt_samples, 8, 1, 65535,
		     "N_RTT_SAMPLE, samples of a round before it is judged (default 8)");
slow_start_parameter(css_growth_divisor, 4, 2, 1024,
		     "CSS_GROWTH_DIVISOR, growth in CSS is divided by this (default 4)");
slow_start_parameter(css_rounds, 5, 1, 1000,
		     "CSS_ROUNDS, rounds of CSS before slow start ends (default 5)");
slow_start_parameter(ack_limit, 8, 0, 1000000,
		     "L, packets counted of one ACK if the connection does not pace; 0: all (default 8)");

/**
 * struct hystartpp - state of HyStart++
 * @last_rtt_us: of the last round that had samples, or SLOW_START_NO_RTT
 * @baseline_rtt_us: RTT of the round in which CSS began (cssBaselineMinRtt)
 * @rounds: rounds of CSS that have ended
 * @conservative: in CSS
 */
struct hystartpp {
	u32 last_rtt_us;
	u32 baseline_rtt_us;
	u32 rounds;
	bool conservative;
};

static void resume(struct sock *sk)
{
	struct hystartpp *h = slow_start_state(sk);

	h->conservative = false;
	h->rounds = 0;
	h->baseline_rtt_us = SLOW_START_NO_RTT;
}

static void start(struct sock *sk)
{
	struct hystartpp *h = slow_start_state(sk);

	h->last_rtt_us = SLOW_START_NO_RTT;
	resume(sk);
}

/* A round that begins with sending after a pause ends with the first ACK, without a sample. */
static void remember(struct sock *sk)
{
	const struct slow_start *ss = slow_start(sk);
	struct hystartpp *h = slow_start_state(sk);

	if (ss->last_round_samples)
		h->last_rtt_us = ss->last_round_min_rtt_us;
}

static void next_round(struct sock *sk)
{
	struct hystartpp *h = slow_start_state(sk);
	u32 limit = css_rounds;

	remember(sk);
	if (!h->conservative || !slow_start_is_initial(sk))
		return;
	h->rounds++;
	if (h->rounds < limit)
		return;
	slow_start_exit(sk, SLOW_START_CSS_ROUNDS, h->rounds, limit);
	resume(sk);
}

static u32 threshold_us(u32 rtt_us)
{
	u32 low = min_rtt_threshold_us;

	return clamp(rtt_us / min_rtt_divisor, low,
		     max(low, max_rtt_threshold_us));
}

static void look(struct sock *sk)
{
	const struct slow_start *ss = slow_start(sk);
	struct hystartpp *h = slow_start_state(sk);
	u64 limit_us;

	if (h->conservative) {
		if (ss->round_min_rtt_us >= h->baseline_rtt_us)
			return;
		slow_start_note(sk, SLOW_START_RESUME, SLOW_START_DELAY,
				ss->round_min_rtt_us, h->baseline_rtt_us);
		resume(sk);
		return;
	}
	if (h->last_rtt_us == SLOW_START_NO_RTT)
		return;
	limit_us = (u64)h->last_rtt_us + threshold_us(h->last_rtt_us);
	if (ss->round_min_rtt_us < limit_us)
		return;
	h->conservative = true;
	h->baseline_rtt_us = ss->round_min_rtt_us;
	slow_start_note(sk, SLOW_START_PHASE, SLOW_START_DELAY,
			ss->round_min_rtt_us, limit_us);
}

static void sample(struct sock *sk, const struct ack_sample *ack)
{
	if (ack->rtt_us >= 0 && slow_start_is_initial(sk) &&
	    slow_start(sk)->round_samples >= rtt_samples)
		look(sk);
}

static u32 grow(struct sock *sk, u32 acked)
{
	const struct hystartpp *h = slow_start_state(sk);

	if (!slow_start_is_initial(sk))
		return tcp_slow_start(tcp_sk(sk), acked);
	if (ack_limit && sk->sk_pacing_status == SK_PACING_NONE)
		acked = min(acked, ack_limit);
	if (h->conservative)
		tcp_cong_avoid_ai(tcp_sk(sk), css_growth_divisor, acked);
	else
		tcp_slow_start(tcp_sk(sk), acked);
	return 0;
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	remember(sk);
}

static const struct slow_start_ops hystartpp = {
	.name		= "hystartpp",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct hystartpp),
	.start		= start,
	.round		= next_round,
	.sample		= sample,
	.grow		= grow,
	.restart	= restart,
};

module_slow_start(hystartpp);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: HyStart++");
