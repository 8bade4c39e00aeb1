// SPDX-License-Identifier: GPL-2.0-only
/*
 * Careful Resume (Convergence of Congestion Control from Retained State,
 * draft-ietf-tsvwg-careful-resume-22).
 *
 * Observing: each RTT of at least four initial windows in which there was always data
 * to send is saved for its remote address, with the smallest RTT. A new connection goes
 * through these phases:
 *
 * - Reconnaissance: it starts as any other. When the first flight has arrived without
 *   congestion, there is more to send, nobody else is jumping to this address, what was
 *   saved is not too old and the RTT is more than half and at most ten times the saved
 *   one, the next phase begins.
 * - Unvalidated: cwnd is at most half of what was saved, paced over the RTT. PipeSize is
 *   what is in flight at that time plus what is acknowledged. The phase ends when cwnd
 *   is in flight, one of its packets is acknowledged or an RTT has passed; cwnd becomes
 *   the flight, or PipeSize if that was not exceeded.
 * - Validating: slow start, until all of these packets are acknowledged.
 * - Safe retreat, after congestion in one of the last two: what was saved is forgotten,
 *   cwnd is half of PipeSize until recovery ends, ssthresh then PipeSize times beta.
 *
 * A timeout ends it all. Left out: a path that is seen to change during the unvalidated
 * phase (its RTT was checked when it began), hints from the receiver, saving beyond the
 * life of the module.
 */
#include "saved_path.h"
#include "slow_start.h"
#include "slow_start_parameter.h"
#include "slow_start_table.h"

slow_start_parameter(max_jump, 0, 0, 1000000,
		     "largest window to jump to in packets, 0: no limit but half of the saved one");

slow_start_parameter(lifetime_s, 300, 0, 86400,
		     "seconds for which saved parameters may be used (default 300)");

slow_start_parameter(beta_percent, 50, 50, 100,
		     "ssthresh after a retreat, percent of PipeSize (default 50)");

#define LEAST_SAVED	4	/* initial windows */
#define LONGEST_RTT	10	/* saved ones */

enum phase {
	NORMAL,
	RECONNAISSANCE,
	UNVALIDATED,
	VALIDATING,
	RETREAT,
};

/**
 * struct careful - state of a connection
 * @phase: enum phase
 * @initial: initial window, packets
 * @first_end: snd_nxt when the first data was acknowledged, if @acknowledged
 * @unvalidated: first sequence number of the unvalidated phase
 * @last: sequence number after its last
 * @entered_us: when it began
 * @flight: in flight then, packets
 * @delivered: tp->delivered then, and before when the connection began
 * @window: cwnd of the retreat, packets
 * @round_delivered: tp->delivered when the round began
 * @acknowledged: some data has been acknowledged
 * @claimed: the saved parameters are ours
 */
struct careful {
	u32 phase;
	u32 initial;
	u32 first_end;
	u32 unvalidated;
	u32 last;
	u32 entered_us;
	u32 flight;
	u32 delivered;
	u32 window;
	u32 round_delivered;
	bool acknowledged;
	bool claimed;
};

static unsigned int careful_table_id;

static struct saved_path_table *table(const struct sock *sk)
{
	return net_generic(sock_net(sk), careful_table_id);
}

static u32 pipe_size(const struct sock *sk)
{
	const struct careful *careful = slow_start_state(sk);

	return careful->flight + tcp_sk(sk)->delivered - careful->delivered;
}

static void leave(struct sock *sk, bool forget)
{
	struct careful *careful = slow_start_state(sk);

	if (careful->phase == UNVALIDATED)
		slow_start_unpace(sk);
	careful->phase = NORMAL;
	if (careful->claimed)
		saved_path_release(table(sk), sk, forget);
	careful->claimed = false;
}

static void start(struct sock *sk)
{
	struct careful *careful = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	careful->initial = tcp_snd_cwnd(tp);
	careful->delivered = tp->delivered;
	careful->round_delivered = tp->delivered;
	if (slow_start(sk)->joined)
		careful->initial = TCP_INIT_CWND;
	else if (slow_start_is_initial(sk))
		careful->phase = RECONNAISSANCE;
}

static void stop(struct sock *sk)
{
	leave(sk, false);
}

/* Packets to jump to, 0: nothing was saved for this path, or it is of no use. */
static u32 claim(struct sock *sk)
{
	unsigned long lifetime = (unsigned long)READ_ONCE(lifetime_s) * HZ;
	struct careful *careful = slow_start_state(sk);
	u32 bytes, rtt_us, jump, limit = READ_ONCE(max_jump);
	u32 min_rtt_us = slow_start(sk)->min_rtt_us;

	if (!saved_path_claim(table(sk), sk, lifetime, &bytes, &rtt_us))
		return 0;
	careful->claimed = true;
	if (min_rtt_us <= rtt_us / 2 || min_rtt_us > (u64)LONGEST_RTT * rtt_us)
		return 0;
	jump = bytes / 2 / tcp_sk(sk)->mss_cache;
	if (limit)
		jump = min(jump, limit);
	jump = min(jump, tcp_sk(sk)->snd_cwnd_clamp);
	return jump > tcp_snd_cwnd(tcp_sk(sk)) ? jump : 0;
}

static void enter_unvalidated(struct sock *sk)
{
	struct careful *careful = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 jump = claim(sk);

	if (!jump) {
		leave(sk, false);
		return;
	}
	careful->phase = UNVALIDATED;
	careful->unvalidated = tp->snd_nxt;
	careful->entered_us = slow_start_now_us(sk);
	careful->flight = tcp_packets_in_flight(tp);
	careful->delivered = tp->delivered;
	slow_start_note(sk, SLOW_START_JUMP, SLOW_START_CACHED, jump,
			tcp_snd_cwnd(tp));
	slow_start_set_cwnd(sk, jump);
	slow_start_pace(sk, slow_start_rate(sk, jump, tp->srtt_us >> 3));
}

static void leave_unvalidated(struct sock *sk)
{
	struct careful *careful = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 flight = tcp_packets_in_flight(tp), pipe = pipe_size(sk);

	slow_start_note(sk, SLOW_START_JUMP_END, SLOW_START_CACHED, flight, pipe);
	if (flight < careful->initial || flight <= pipe) {
		slow_start_set_cwnd(sk, max(pipe, careful->initial));
		leave(sk, false);
		return;
	}
	slow_start_unpace(sk);
	slow_start_set_cwnd(sk, flight);
	careful->phase = VALIDATING;
	careful->last = tp->snd_nxt;
}

static void transmit(struct sock *sk)
{
	const struct careful *careful = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (careful->phase == UNVALIDATED &&
	    tcp_packets_in_flight(tp) >= tcp_snd_cwnd(tp))
		leave_unvalidated(sk);
}

/* The first flight has arrived, and more waits than the window takes. */
static bool is_confirmed(struct sock *sk)
{
	struct careful *careful = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!careful->acknowledged) {
		if (tp->delivered == careful->delivered)
			return false;
		careful->acknowledged = true;
		careful->first_end = tp->snd_nxt;
	}
	return !before(tp->snd_una, careful->first_end) &&
	       tp->write_seq - tp->snd_una > (u64)tcp_snd_cwnd(tp) * tp->mss_cache &&
	       tcp_in_slow_start(tp) &&
	       slow_start(sk)->min_rtt_us != SLOW_START_NO_RTT;
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct careful *careful = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	switch (careful->phase) {
	case RECONNAISSANCE:
		if (is_confirmed(sk))
			enter_unvalidated(sk);
		break;
	case UNVALIDATED:
		if (after(tp->snd_una, careful->unvalidated) ||
		    slow_start_now_us(sk) - careful->entered_us > tp->srtt_us >> 3)
			leave_unvalidated(sk);
		break;
	case VALIDATING:
		if (before(tp->snd_una, careful->last))
			break;
		slow_start_note(sk, SLOW_START_PHASE, SLOW_START_CACHED,
				pipe_size(sk), tcp_snd_cwnd(tp));
		leave(sk, false);
		break;
	}
}

static u32 grow(struct sock *sk, u32 acked)
{
	const struct careful *careful = slow_start_state(sk);

	if (careful->phase == UNVALIDATED || careful->phase == RETREAT)
		return 0;
	return tcp_slow_start(tcp_sk(sk), acked);
}

static u32 threshold(struct sock *sk)
{
	const struct careful *careful = slow_start_state(sk);

	if (careful->phase != UNVALIDATED && careful->phase != VALIDATING)
		return 0;
	return max(pipe_size(sk) / 2, 2U);
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	struct careful *careful = slow_start_state(sk);
	bool jumped = careful->phase == UNVALIDATED || careful->phase == VALIDATING;

	leave(sk, jumped);
	if (!jumped || why == SLOW_START_RTO)
		return;
	careful->phase = RETREAT;
	careful->window = tcp_sk(sk)->snd_ssthresh;
	slow_start_note(sk, SLOW_START_RETREAT, SLOW_START_CACHED, careful->window,
			pipe_size(sk));
}

static void recover(struct sock *sk, const struct rate_sample *rate)
{
	const struct careful *careful = slow_start_state(sk);

	if (careful->phase == RETREAT)
		slow_start_hold(sk, careful->window);
	else
		slow_start_reduce(sk, rate);
}

static void recovered(struct sock *sk)
{
	struct careful *careful = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (careful->phase == RETREAT) {
		careful->phase = NORMAL;
		tp->snd_ssthresh = max_t(u64, div_u64((u64)pipe_size(sk) *
						      READ_ONCE(beta_percent), 100), 2);
		slow_start_set_cwnd(sk, careful->window);
	} else if (!slow_start_is_initial(sk)) {
		slow_start_set_cwnd(sk, tp->snd_ssthresh);
	}
}

/* Nothing was lost after all; what was saved stays forgotten. */
static void undo(struct sock *sk)
{
	leave(sk, false);
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	const struct careful *careful = slow_start_state(sk);

	if (why == SLOW_START_AFTER_RTO)
		leave(sk, careful->phase == UNVALIDATED || careful->phase == VALIDATING);
}

static void observe(struct sock *sk)
{
	struct careful *careful = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 packets = tp->delivered - careful->round_delivered;

	careful->round_delivered = tp->delivered;
	if (careful->phase != NORMAL || inet_csk(sk)->icsk_ca_state != TCP_CA_Open ||
	    tp->write_seq == tp->snd_nxt || packets < LEAST_SAVED * careful->initial ||
	    slow_start(sk)->min_rtt_us == SLOW_START_NO_RTT)
		return;
	saved_path_store(table(sk), sk,
			 min_t(u64, (u64)packets * tp->mss_cache, U32_MAX),
			 slow_start(sk)->min_rtt_us);
}

static const struct slow_start_ops careful = {
	.name		= "careful",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct careful),
	.flags		= SLOW_START_OWN_RECOVERY,
	.start		= start,
	.stop		= stop,
	.round		= observe,
	.sample		= sample,
	.transmit	= transmit,
	.grow		= grow,
	.ssthresh	= threshold,
	.congestion	= congestion,
	.recover	= recover,
	.recovered	= recovered,
	.undo		= undo,
	.restart	= restart,
};

module_slow_start_table(careful, struct saved_path_table, saved_path_table_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: Careful Resume");
