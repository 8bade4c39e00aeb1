// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gradual (conservative) slow start: exponential first, slower as the RTT shows that a
 * queue builds up. The slides of the Transoceanic project give the idea without a
 * formula; this one is the project's.
 *
 * The smallest of every eight RTT samples is compared with the smallest of the
 * connection, base. Growth is divided by
 *
 *	1 while the RTT is within base * (1 + 1/queue_divisor),
 *	2 up to twice that rise, 4 up to four times that rise, ... max_divisor beyond,
 *
 * so that a round multiplies cwnd by up to 1 + 1/divisor. The divisor follows the queue
 * both ways. Slow start ends by loss, or when exit_rounds rounds in a row have ended at
 * max_divisor. One look a round, at its first samples, comes too late: these met the
 * queue as it was when the round before began.
 *
 * A change of the divisor is told as a phase (slower) or a resumption (faster).
 */
#include <linux/log2.h>
#include "slow_start.h"
#include "slow_start_grow.h"
#include "slow_start_parameter.h"

#define SAMPLES	8	/* looked at together, as in RFC 9406 */

slow_start_parameter(queue_divisor, 16, 1, 1024,
		     "a rise of the RTT by base / queue_divisor halves growth (default 16)");

slow_start_parameter(max_divisor, 8, 1, 1024,
		     "growth is divided by no more; rounded down to a power of two (default 8)");

slow_start_parameter(exit_rounds, 1, 0, 65535,
		     "rounds in a row that end at max_divisor before slow start ends, 0: only a loss does (default 1)");

struct gradual {
	u32 divisor;
	u32 least_us;	/* RTT of the samples being collected */
	u16 rounds;	/* in a row that ended at the largest divisor */
	u8 samples;
};

static void collect_anew(struct gradual *gradual)
{
	gradual->least_us = SLOW_START_NO_RTT;
	gradual->samples = 0;
}

static void reset(struct gradual *gradual)
{
	gradual->divisor = 1;
	gradual->rounds = 0;
	collect_anew(gradual);
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

	while (divisor < most && rtt_us > rtt_for(sk, divisor))
		divisor *= 2;
	gradual->divisor = divisor;
	if (divisor > before)
		slow_start_note(sk, SLOW_START_PHASE, SLOW_START_DELAY, rtt_us,
				rtt_for(sk, divisor / 2));
	else if (divisor < before)
		slow_start_note(sk, SLOW_START_RESUME, SLOW_START_DELAY, rtt_us,
				rtt_for(sk, divisor));
}

/* During a recovery cwnd is below ssthresh without being in slow start. */
static bool is_growing(const struct sock *sk)
{
	u8 state = inet_csk(sk)->icsk_ca_state;

	return tcp_in_slow_start(tcp_sk(sk)) && state != TCP_CA_CWR &&
	       state != TCP_CA_Recovery;
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct gradual *gradual = slow_start_state(sk);

	if (sample->rtt_us < 0 || !is_growing(sk))
		return;
	gradual->least_us = min(gradual->least_us, slow_start(sk)->last_rtt_us);
	if (++gradual->samples < SAMPLES)
		return;
	judge(sk, gradual->least_us);
	collect_anew(gradual);
}

static void next_round(struct sock *sk)
{
	struct gradual *gradual = slow_start_state(sk);
	u32 most = most_divisor(), enough = READ_ONCE(exit_rounds);

	if (gradual->divisor < most || most == 1 || !is_growing(sk))
		gradual->rounds = 0;
	else if (gradual->rounds < U16_MAX)
		gradual->rounds++;
	if (!enough || gradual->rounds < enough)
		return;
	gradual->rounds = 0;
	slow_start_exit(sk, SLOW_START_DELAY, slow_start(sk)->last_rtt_us,
			rtt_for(sk, most / 2));
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
	if (why == SLOW_START_TX_START)
		collect_anew(slow_start_state(sk));
	else
		reset(slow_start_state(sk));
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
