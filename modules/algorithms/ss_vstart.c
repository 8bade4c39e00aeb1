// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slow start of TCP Vegas (Brakmo, O'Malley, Peterson, "TCP Vegas: New Techniques
 * for Congestion Detection and Avoidance", 1994, section 3.3), as "Taming the Elephants"
 * (VStart) and "TCP Westwood Adaptive Start" (section III.D) measured it.
 *
 * cwnd doubles in every other round and is held in between. At the end of a held
 * round, cwnd (RTT - base) / base estimates the packets that wait in the bottleneck;
 * more than gamma of them end slow start. Base is the smallest RTT of the connection.
 *
 * The RTT is the mean over the packets acknowledged in the round. Those were sent in
 * the round before, two for each ACK, and queued for it: this makes slow start end
 * early, at a few times the square root of the BDP. (rtt_of_round chooses the smallest
 * or the last sample instead; the smallest shows no queue before the path is full.)
 * An ACK counts for each packet it acknowledges, for the lone packet whose ACK a
 * receiver delays by 40 ms would outweigh the queue in a mean over ACKs.
 *
 * ns-2 rounds the estimate to whole packets before it compares (whole_packets): one
 * and a half packets end slow start there, not the first above one.
 *
 * Left out: Vegas' congestion avoidance and its retransmission rules; the bases follow.
 * Linux' tcp_vegas grows in every round and takes the smallest RTT.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

#define RTT_MEAN	0
#define RTT_SMALLEST	1
#define RTT_LAST	2

#define EXIT_KEEP	0	/* with cwnd as it is */
#define EXIT_TARGET	1	/* with what the path holds without a queue, and one */
#define EXIT_EIGHTH	2	/* with an eighth less, as Vegas does */

slow_start_parameter(gamma, 1, 0, 1000000,
		     "packets waiting in the network that do not end slow start (default 1)");
slow_start_parameter(rtt_of_round, RTT_MEAN, RTT_MEAN, RTT_LAST,
		     "RTT of a round: 0 mean of its samples, 1 smallest, 2 last (default 0)");
slow_start_parameter(exit_window, EXIT_KEEP, EXIT_KEEP, EXIT_EIGHTH,
		     "cwnd at the end: 0 as it is, 1 cwnd base/RTT + 1, 2 an eighth less (default 0)");

slow_start_parameter(whole_packets, 0, 0, 1,
		     "1: round the packets waiting before they are compared, as ns-2 does (default 0)");

/**
 * struct vstart - state of Vegas slow start
 * @sum_us: RTTs of the packets acknowledged in this round
 * @packets: how many those are
 * @last_us: the newest of their RTTs
 * @hold: cwnd does not grow in this round
 * @first: nothing sent after the start, or a pause, was acknowledged yet
 */
struct vstart {
	u64 sum_us;
	u32 packets;
	u32 last_us;
	bool hold;
	bool first;
};

static void start(struct sock *sk)
{
	struct vstart *v = slow_start_state(sk);

	v->sum_us = 0;
	v->packets = 0;
	v->hold = true;
	v->first = true;
}

/* The core's own account already is that of the next round. */
static u32 rtt_us(const struct sock *sk)
{
	const struct slow_start *ss = slow_start(sk);
	const struct vstart *v = slow_start_state(sk);

	switch (rtt_of_round) {
	case RTT_SMALLEST:
		return ss->last_round_min_rtt_us;
	case RTT_LAST:
		return v->last_us;
	default:
		return div_u64(v->sum_us, v->packets);
	}
}

/* Packets waiting in the network, thousandths. */
static u32 queued(u32 cwnd, u32 rtt, u32 base)
{
	u32 rest;
	u64 whole = div_u64_rem((u64)cwnd * (rtt - base), base, &rest);

	return min_t(u64, whole * 1000 + div_u64((u64)rest * 1000, base),
		     U32_MAX);
}

static void leave(struct sock *sk, u32 queue, u32 rtt, u32 base)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), target = cwnd;

	if (exit_window == EXIT_TARGET)
		target = div_u64((u64)cwnd * base, rtt) + 1;
	else if (exit_window == EXIT_EIGHTH)
		target = cwnd - cwnd / 8;
	slow_start_roll_back(sk, max(target, 2U), SLOW_START_QUEUE_ESTIMATE,
			     queue, gamma * 1000);
}

static void look(struct sock *sk)
{
	const struct slow_start *ss = slow_start(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;
	const struct vstart *v = slow_start_state(sk);
	u32 rtt, queue;

	if (!v->packets || !tcp_in_slow_start(tcp_sk(sk)) ||
	    state == TCP_CA_CWR || state == TCP_CA_Recovery)
		return;
	rtt = max(rtt_us(sk), ss->min_rtt_us);
	queue = queued(tcp_snd_cwnd(tcp_sk(sk)), rtt, ss->min_rtt_us);
	if (whole_packets)
		queue = (min_t(u32, queue, S32_MAX) + 500) / 1000 * 1000;
	if (queue > gamma * 1000)
		leave(sk, queue, rtt, ss->min_rtt_us);
}

static void next_round(struct sock *sk)
{
	struct vstart *v = slow_start_state(sk);

	/* The first round is one ACK long: the one that ends it acknowledges its data. */
	if (!v->first) {
		if (v->hold)
			look(sk);
		v->hold = !v->hold;
	}
	v->first = false;
	v->sum_us = 0;
	v->packets = 0;
}

static void sample(struct sock *sk, const struct ack_sample *ack)
{
	struct vstart *v = slow_start_state(sk);
	u32 packets = max_t(u32, ack->pkts_acked, 1);

	if (ack->rtt_us < 0)
		return;
	v->last_us = slow_start(sk)->last_rtt_us;
	/* A round that never ended would wrap after 2^31 packets. */
	if (v->packets > S32_MAX - packets)
		return;
	v->packets += packets;
	v->sum_us += (u64)packets * v->last_us;
}

static u32 grow(struct sock *sk, u32 acked)
{
	const struct vstart *v = slow_start_state(sk);

	return v->hold ? 0 : tcp_slow_start(tcp_sk(sk), acked);
}

/* Everything is acknowledged before a pause: a round ends there, unnoticed. */
static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct vstart *v = slow_start_state(sk);

	if (why != SLOW_START_TX_START) {
		start(sk);
		return;
	}
	next_round(sk);
	v->first = true;
}

static const struct slow_start_ops vstart = {
	.name		= "vstart",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct vstart),
	.start		= start,
	.round		= next_round,
	.sample		= sample,
	.grow		= grow,
	.restart	= restart,
};

module_slow_start(vstart);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: Vegas slow start");
