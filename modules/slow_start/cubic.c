// SPDX-License-Identifier: GPL-2.0-only
/*
 * CUBIC after slow start (RFC 9438), in the integer arithmetic of the kernel's
 * tcp_cubic with its default parameters, so that "standard_cubic" and in-tree cubic
 * without HyStart agree ACK for ACK. tcp_cubic exports nothing, hence this copy in
 * behaviour. Time is in jiffies where tcp_cubic has it in jiffies.
 *
 * W(t) = C (t - K)^3 + origin, with time in 1/1024 s.
 */
#include "core.h"

#define TIME_SHIFT	10	/* 1/1024 s */
#define BETA		717	/* window after congestion, of 1024 */
#define C_SCALED	410U	/* C = 0.4, of 1024 */
/* Windows of Reno that loses the same share: 3 (1 - beta) / (1 + beta), of 8, inverse. */
#define RENO_SCALE	(8 * (1024 + BETA) / 3 / (1024 - BETA))
#define SLOWEST		100	/* ACKed packets a packet, at the plateau */

/**
 * struct cubic - state of CUBIC
 * @reno_acked: packets acknowledged that the Reno estimate has not used
 * @ack_per_packet: ACKed packets for which cwnd grows by one
 * @last_max: window before the last congestion
 * @last_cwnd: cwnd when @ack_per_packet was computed
 * @last_time: jiffies then
 * @origin: window of the plateau
 * @k: time from the epoch to the plateau, 1/1024 s
 * @min_rtt_us: 0 until there is a sample
 * @epoch: jiffies when growth began after the last congestion, 0 before
 * @reno_cwnd: what Reno would have
 */
struct cubic {
	u32 reno_acked;
	u32 ack_per_packet;
	u32 last_max;
	u32 last_cwnd;
	u32 last_time;
	u32 origin;
	u32 k;
	u32 min_rtt_us;
	u32 epoch;
	u32 reno_cwnd;
};

static void reset(struct sock *sk)
{
	memset(slow_start_base_state(sk), 0, sizeof(struct cubic));
}

/*
 * Cube root: a first value from the six highest bits (tcp_cubic's table, scaled by 64)
 * and one Newton step. Exact to about 0.2 %, and equal to tcp_cubic's.
 */
static u32 cube_root(u64 a)
{
	static const u8 first[64] = {
		  0,  54,  54,  54, 118, 118, 118, 118, 123, 129, 134, 138, 143,
		147, 151, 156, 157, 161, 164, 168, 170, 173, 176, 179, 181, 185,
		187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213,
		215, 217, 219, 221, 222, 224, 225, 227, 229, 231, 232, 234, 236,
		237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
	};
	u32 thirds, x, bits = fls64(a);

	if (bits < 7)
		return ((u32)first[a] + 35) >> 6;
	thirds = ((bits * 84) >> 8) - 1;
	x = (((u32)first[a >> (thirds * 3)] + 10) << thirds) >> 6;
	x = 2 * x + (u32)div64_u64(a, (u64)x * (x - 1));
	return (x * 341) >> 10;
}

static void begin_epoch(struct cubic *ca, u32 cwnd, u32 acked)
{
	ca->epoch = tcp_jiffies32;
	ca->reno_acked = acked;
	ca->reno_cwnd = cwnd;
	ca->origin = max(ca->last_max, cwnd);
	ca->k = 0;
	if (ca->last_max > cwnd)
		ca->k = cube_root(div_u64(1ULL << (10 + 3 * TIME_SHIFT), C_SCALED) *
				  (ca->last_max - cwnd));
}

/* The curve's window one RTT from now. */
static u32 target_window(const struct cubic *ca)
{
	u64 time, distance;
	u32 change;

	time = (s32)(tcp_jiffies32 - ca->epoch);
	time += usecs_to_jiffies(ca->min_rtt_us);
	time = div_u64(time << TIME_SHIFT, HZ);
	distance = time < ca->k ? ca->k - time : time - ca->k;
	change = (C_SCALED * distance * distance * distance) >>
		 (10 + 3 * TIME_SHIFT);
	return time < ca->k ? ca->origin - change : ca->origin + change;
}

static void follow_curve(struct cubic *ca, u32 cwnd, u32 acked)
{
	u32 target, first = slow_start_first_acks();

	ca->last_cwnd = cwnd;
	ca->last_time = tcp_jiffies32;
	if (!ca->epoch)
		begin_epoch(ca, cwnd, acked);
	target = target_window(ca);
	if (target > cwnd)
		ca->ack_per_packet = cwnd / (target - cwnd);
	else
		ca->ack_per_packet = SLOWEST * cwnd;
	/*
	 * No congestion yet, so the plateau is a guess: at least 5 % an RTT. Old
	 * kernels had 2 %, whatever the curve said (cnt = 50, Linux 2.6.24).
	 */
	if (!ca->last_max)
		ca->ack_per_packet = first ?: min(ca->ack_per_packet, 20U);
}

/* Never slower than Reno with the same reduction would be. */
static void follow_reno(struct cubic *ca, u32 cwnd)
{
	u32 acks = (cwnd * RENO_SCALE) >> 3;

	while (ca->reno_acked > acks) {
		ca->reno_acked -= acks;
		ca->reno_cwnd++;
	}
	if (ca->reno_cwnd > cwnd)
		ca->ack_per_packet = min(ca->ack_per_packet,
					 cwnd / (ca->reno_cwnd - cwnd));
}

static void avoid(struct sock *sk, u32 acked)
{
	struct cubic *ca = slow_start_base_state(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	ca->reno_acked += acked;
	/* The curve is computed at most once a jiffy, and 32 times a second if cwnd stands. */
	if (ca->last_cwnd != cwnd ||
	    (s32)(tcp_jiffies32 - ca->last_time) > HZ / 32) {
		if (!ca->epoch || tcp_jiffies32 != ca->last_time)
			follow_curve(ca, cwnd, acked);
		follow_reno(ca, cwnd);
		/* At most half as many again in an RTT. */
		ca->ack_per_packet = max(ca->ack_per_packet, 2U);
	}
	tcp_cong_avoid_ai(tcp_sk(sk), ca->ack_per_packet, acked);
}

static u32 threshold(struct sock *sk)
{
	struct cubic *ca = slow_start_base_state(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	ca->epoch = 0;
	/* Fast convergence: a window smaller than the last leaves room for others. */
	if (cwnd < ca->last_max)
		ca->last_max = (cwnd * (1024 + BETA)) / (2 * 1024);
	else
		ca->last_max = cwnd;
	return max((cwnd * BETA) / 1024, 2U);
}

static void sample(struct sock *sk, u32 rtt_us)
{
	struct cubic *ca = slow_start_base_state(sk);

	/* For a second after congestion the queue distorts every sample. */
	if (ca->epoch && (s32)(tcp_jiffies32 - ca->epoch) < HZ)
		return;
	if (!ca->min_rtt_us || ca->min_rtt_us > rtt_us)
		ca->min_rtt_us = rtt_us;
}

/* The curve does not go on while there was nothing to send. */
static void tx_start(struct sock *sk)
{
	struct cubic *ca = slow_start_base_state(sk);
	u32 now = tcp_jiffies32;
	s32 idle = now - tcp_sk(sk)->lsndtime;

	if (ca->epoch && idle > 0) {
		ca->epoch += idle;
		if (after(ca->epoch, now))
			ca->epoch = now;
	}
}

const struct slow_start_base slow_start_cubic = {
	.name		= "cubic",
	.state_bytes	= sizeof(struct cubic),
	.init		= reset,
	.sample		= sample,
	.avoid		= avoid,
	.ssthresh	= threshold,
	.lost		= reset,
	.tx_start	= tx_start,
};
