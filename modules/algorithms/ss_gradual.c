// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gradual (conservative) slow start: exponential first, slower as the RTT shows that a
 * queue builds up. The slides of the Transoceanic project give the idea without a
 * formula; this one is the project's.
 *
 * Once a round the smallest RTT of its first eight samples (of all, where there are
 * fewer) is compared with the smallest of the connection, base. Growth is divided by
 *
 *	1 while the RTT is within base * (1 + 1/queue_divisor),
 *	2 up to twice that rise, 4 up to four times that rise, ... max_divisor beyond,
 *
 * so that a round multiplies cwnd by 1 + 1/divisor. The divisor follows the queue both
 * ways. Slow start ends by loss, or after exit_rounds rounds in a row at max_divisor.
 *
 * A change of the divisor is told as a phase (slower) or a resumption (faster).
 */
#include <linux/log2.h>
#include "slow_start.h"
#include "slow_start_grow.h"
#include "slow_start_parameter.h"

#define SAMPLES	8	/* of a round, as in RFC 9406 */

slow_start_parameter(queue_divisor, 16, 1, 1024,
		     "a rise of the RTT by base / queue_divisor halves growth");

slow_start_parameter(max_divisor, 8, 1, 1024,
		     "growth is divided by no more; rounded down to a power of two");

slow_start_parameter(exit_rounds, 3, 0, 65535,
		     "rounds in a row at max_divisor that end slow start, 0: only a loss does");

struct gradual {
	u32 divisor;
	u16 rounds;	/* in a row at the largest divisor */
	u8 judged;	/* this round */
};

static void reset(struct gradual *gradual)
{
	gradual->divisor = 1;
	gradual->rounds = 0;
	gradual->judged = 0;
}

static void start(struct sock *sk)
{
	reset(slow_start_state(sk));
}

static u32 most_divisor(void)
{
	return rounddown_pow_of_two(READ_ONCE(max_divisor));
}

/* The RTT up to which growth is divided by no more than a divisor. */
static u32 rtt_for(const struct sock *sk, u32 divisor)
{
	u64 base_us = slow_start(sk)->min_rtt_us;
	u64 rise_us = max_t(u64, base_us / READ_ONCE(queue_divisor), 1);

	return min_t(u64, base_us + rise_us * divisor, U32_MAX);
}

static void judge(struct sock *sk, u32 rtt_us)
{
	struct gradual *gradual = slow_start_state(sk);
	u32 most = most_divisor(), before = gradual->divisor, divisor = 1;

	gradual->judged = 1;
	if (rtt_us == SLOW_START_NO_RTT || !tcp_in_slow_start(tcp_sk(sk)))
		return;
	while (divisor < most && rtt_us > rtt_for(sk, divisor))
		divisor *= 2;
	gradual->divisor = divisor;
	if (divisor > before)
		slow_start_note(sk, SLOW_START_PHASE, SLOW_START_DELAY, rtt_us,
				rtt_for(sk, divisor / 2));
	else if (divisor < before)
		slow_start_note(sk, SLOW_START_RESUME, SLOW_START_DELAY, rtt_us,
				rtt_for(sk, divisor));
	if (divisor < most || most == 1) {
		gradual->rounds = 0;
		return;
	}
	if (gradual->rounds < U16_MAX)
		gradual->rounds++;
}

/* A round at the largest divisor counts when it is over. */
static void next_round(struct sock *sk)
{
	struct gradual *gradual = slow_start_state(sk);
	const struct slow_start *ss = slow_start(sk);
	u32 rounds = READ_ONCE(exit_rounds);

	if (!gradual->judged)
		judge(sk, ss->last_round_min_rtt_us);
	gradual->judged = 0;
	if (rounds && gradual->rounds >= rounds && tcp_in_slow_start(tcp_sk(sk)))
		slow_start_exit(sk, SLOW_START_DELAY, ss->last_round_min_rtt_us,
				rtt_for(sk, most_divisor() / 2));
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	const struct gradual *gradual = slow_start_state(sk);
	const struct slow_start *ss = slow_start(sk);

	if (!gradual->judged && ss->round_samples >= SAMPLES)
		judge(sk, ss->round_min_rtt_us);
}

static u32 grow(struct sock *sk, u32 acked)
{
	const struct gradual *gradual = slow_start_state(sk);

	return slow_start_grow(sk, gradual->divisor, acked,
			       tcp_sk(sk)->snd_ssthresh);
}

/* What a queue looked like before says nothing about the next slow start. */
static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct gradual *gradual = slow_start_state(sk);

	if (why == SLOW_START_TX_START)
		gradual->judged = 0;
	else
		reset(gradual);
}

static const struct slow_start_ops gradual = {
	.name		= "gradual",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct gradual),
	.start		= start,
	.round		= next_round,
	.sample		= sample,
	.grow		= grow,
	.restart	= restart,
};

module_slow_start(gradual);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: gradual slow start");
