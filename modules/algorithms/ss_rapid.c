// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rapid Start (Oku, draft-kazuho-ccwg-rapid-start-02, section 3).
 *
 * - The initial window is twice the kernel's, paced over the RTT of the handshake
 *   (3.1; "up to" twice).
 * - While the RTT of the round is at most min(min_rtt + 4 ms, 1.1 min_rtt), cwnd grows by
 *   two packets for each one acknowledged: times three in an RTT; else as in slow start
 *   (3.2).
 * - At the first congestion, cwnd is multiplied by s; then for each packet of that
 *   flight cwnd falls by a if it is delivered and by s if it is lost (3.3), but not below
 *   a third of the base's threshold. With b the base's factor, s = b + K (1 - b) and
 *   a = K (1 - b), so that cwnd ends at b times what was delivered. K is 2/3 in revision
 *   02 of the draft and 11/18 before.
 *
 * TCP's recovery lasts until the retransmissions are acknowledged, longer than the
 * draft's, which speaks of QUIC: packets beyond the flight that met the congestion do not
 * count. The first retransmission waits like any other packet. b is not a parameter: it
 * is what the base makes of the window, 1/2 for reno, 717/1024 for cubic. After the
 * first recovery or a timeout the base is alone. Left out: HyStart++ with it (section
 * 3.2 allows it), and stopping at the initial window times b (3.3, "MAY").
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

slow_start_parameter(initial_window, 0, 0, 1000000,
		     "initial window in packets, 0: twice the kernel's");

slow_start_parameter(delay_us, 4000, 0, 1000000,
		     "rise of the RTT in us up to which cwnd is tripled (default 4000)");

slow_start_parameter(delay_percent, 10, 0, 1000,
		     "the same in percent; the smaller one counts (default 10)");

slow_start_parameter(revision, 2, 1, 2,
		     "of the draft, for K of the recovery: 2 (2/3, the default) or 1 (11/18)");

enum phase {
	STARTING,
	RECOVERING,
	OVER,
};

/**
 * struct rapid - state of a connection
 * @phase: enum phase
 * @paced: the first flight is being paced
 * @initial_delivered: tp->delivered before it
 * @flight: cwnd before the first congestion, packets
 * @threshold: what the base makes of it
 * @k_over_18: K of the recovery, in parts of 18
 * @delivered: of that flight, since then
 * @lost: the same
 */
struct rapid {
	u16 phase;
	u16 paced;
	u32 initial_delivered;
	u32 flight;
	u32 threshold;
	u32 k_over_18;
	u32 delivered;
	u32 lost;
};

static void start(struct sock *sk)
{
	u32 handshake_rtt_us = tcp_sk(sk)->srtt_us >> 3;
	struct rapid *rapid = slow_start_state(sk);
	u32 window = READ_ONCE(initial_window);

	if (slow_start(sk)->joined || !slow_start_is_initial(sk)) {
		rapid->phase = OVER;
		return;
	}
	rapid->initial_delivered = tcp_sk(sk)->delivered;
	if (!window)
		window = 2 * tcp_snd_cwnd(tcp_sk(sk));
	slow_start_set_cwnd(sk, window);
	slow_start_note(sk, SLOW_START_JUMP, SLOW_START_JUMP_SIZE,
			tcp_snd_cwnd(tcp_sk(sk)), window);
	if (!handshake_rtt_us)
		return;
	rapid->paced = 1;
	slow_start_pace(sk, slow_start_rate(sk, window, handshake_rtt_us));
}

static void end_first_flight(struct sock *sk)
{
	struct rapid *rapid = slow_start_state(sk);

	if (!rapid->paced)
		return;
	rapid->paced = 0;
	slow_start_unpace(sk);
	slow_start_note(sk, SLOW_START_JUMP_END, SLOW_START_JUMP_SIZE,
			tcp_sk(sk)->data_segs_out, tcp_snd_cwnd(tcp_sk(sk)));
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct rapid *rapid = slow_start_state(sk);

	if (rapid->paced && tcp_sk(sk)->delivered != rapid->initial_delivered)
		end_first_flight(sk);
}

/* No queue is building up: the RTT of this round, or of the last one, is small. */
static bool is_clear(const struct sock *sk)
{
	const struct slow_start *ss = slow_start(sk);
	u32 floor_us = ss->round_min_rtt_us;
	u64 most_us;

	if (floor_us == SLOW_START_NO_RTT)
		floor_us = ss->last_round_min_rtt_us;
	if (floor_us == SLOW_START_NO_RTT)
		return false;
	most_us = min_t(u64, READ_ONCE(delay_us),
			div_u64((u64)ss->min_rtt_us * READ_ONCE(delay_percent), 100));
	return floor_us <= ss->min_rtt_us + most_us;
}

static u32 grow(struct sock *sk, u32 acked)
{
	const struct rapid *rapid = slow_start_state(sk);

	if (rapid->phase == STARTING && is_clear(sk))
		return tcp_slow_start(tcp_sk(sk), 2 * acked) / 2;
	return tcp_slow_start(tcp_sk(sk), acked);
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	struct rapid *rapid = slow_start_state(sk);

	end_first_flight(sk);
	if (rapid->phase != STARTING) {
		rapid->phase = OVER;
		return;
	}
	if (why == SLOW_START_RTO || !in_slow_start) {
		rapid->phase = OVER;
		return;
	}
	rapid->phase = RECOVERING;
	rapid->flight = slow_start(sk)->leaving_cwnd;
	rapid->threshold = min(tcp_sk(sk)->snd_ssthresh, rapid->flight);
	rapid->k_over_18 = READ_ONCE(revision) == 1 ? 11 : 12;
	rapid->delivered = 0;
	rapid->lost = 0;
}

/*
 * flight * s - delivered * a - lost * s, where s and a have the denominator 18 * flight:
 * up to 2^20 packets nothing overflows.
 */
static u32 window(const struct rapid *rapid)
{
	u64 acked_part = (u64)rapid->k_over_18 * (rapid->flight - rapid->threshold);
	u64 silence_part = 18ULL * rapid->threshold + acked_part;
	u64 whole = (rapid->flight - rapid->lost) * silence_part;
	u64 gone = rapid->delivered * acked_part;
	u32 floor = max(rapid->threshold / 3, 2U);

	if (whole <= gone)
		return floor;
	return max_t(u64, div64_u64(whole - gone, 18ULL * rapid->flight), floor);
}

static void recover(struct sock *sk, const struct rate_sample *rate)
{
	struct rapid *rapid = slow_start_state(sk);
	u32 left;

	if (rapid->phase != RECOVERING) {
		slow_start_reduce(sk, rate);
		return;
	}
	left = rapid->flight - rapid->delivered - rapid->lost;
	rapid->delivered += min(rate->acked_sacked, left);
	left = rapid->flight - rapid->delivered - rapid->lost;
	rapid->lost += min_t(u32, max(rate->losses, 0), left);
	slow_start_set_cwnd(sk, window(rapid));
}

static void recovered(struct sock *sk)
{
	struct rapid *rapid = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (rapid->phase == RECOVERING) {
		rapid->phase = OVER;
		tp->snd_ssthresh = window(rapid);
		slow_start_set_cwnd(sk, tp->snd_ssthresh);
		slow_start_note(sk, SLOW_START_DRAIN_END, SLOW_START_INFLIGHT_LIMIT,
				tp->snd_ssthresh, rapid->flight);
	} else if (!slow_start_is_initial(sk)) {
		slow_start_set_cwnd(sk, tp->snd_ssthresh);
	}
}

/* Nothing was lost after all: the start goes on. */
static void undo(struct sock *sk)
{
	struct rapid *rapid = slow_start_state(sk);

	if (rapid->phase == RECOVERING)
		rapid->phase = STARTING;
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct rapid *rapid = slow_start_state(sk);

	if (why != SLOW_START_AFTER_RTO)
		return;
	end_first_flight(sk);
	rapid->phase = OVER;
}

static const struct slow_start_ops rapid = {
	.name		= "rapid",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct rapid),
	.flags		= SLOW_START_OWN_RECOVERY,
	.start		= start,
	.sample		= sample,
	.grow		= grow,
	.congestion	= congestion,
	.recover	= recover,
	.recovered	= recovered,
	.undo		= undo,
	.restart	= restart,
};

module_slow_start(rapid);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: Rapid Start");
