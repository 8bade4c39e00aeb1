// SPDX-License-Identifier: GPL-2.0-only
/* Tells of each call it gets: the event's quantity is the place in enum call. */
#include "slow_start.h"

enum call { START, STOP, ACK, ROUND, SAMPLE, CONGESTION, RECOVERED, UNDO, RESTART };

static void say(struct sock *sk, enum call call, u32 detail)
{
	slow_start_note(sk, SLOW_START_PHASE, SLOW_START_NONE, call, detail);
}

static void start(struct sock *sk)
{
	say(sk, START, 0);
}

static void stop(struct sock *sk)
{
	say(sk, STOP, 0);
}

static void ack(struct sock *sk, u32 flags)
{
	say(sk, ACK, flags);
}

static void round_ended(struct sock *sk)
{
	say(sk, ROUND, slow_start(sk)->last_round_samples);
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	say(sk, SAMPLE, sample->pkts_acked);
}

static void congestion(struct sock *sk, enum slow_start_reason why, bool in_slow_start)
{
	say(sk, CONGESTION, why);
}

static void recovered(struct sock *sk)
{
	say(sk, RECOVERED, 0);
}

static void undo(struct sock *sk)
{
	say(sk, UNDO, 0);
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	say(sk, RESTART, why);
}

/* More than fits into the socket. */
static const struct slow_start_ops probe = {
	.name		= "probe",
	.owner		= THIS_MODULE,
	.state_bytes	= 200,
	.start		= start,
	.stop		= stop,
	.ack		= ack,
	.round		= round_ended,
	.sample		= sample,
	.congestion	= congestion,
	.recovered	= recovered,
	.undo		= undo,
	.restart	= restart,
};

module_slow_start(probe);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: tells of each call");
