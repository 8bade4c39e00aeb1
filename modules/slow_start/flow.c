// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a connection: what TCP asks of a congestion control, split between a
 * plug-in (slow start) and a base (everything after it). For one ACK the kernel
 * calls in_ack_event, pkts_acked, set_state where the state changes, and
 * cong_avoid, in this order; newer kernels, Debian's 6.12 among them, call
 * in_ack_event after pkts_acked.
 */
#include <linux/slab.h>
#include "core.h"

static const struct slow_start_ops plain;

/*
 * The plug-in, or one that does nothing where its state could not be allocated, and
 * before the start: on the passive side the ACK of the handshake comes first.
 */
static const struct slow_start_ops *plug_in(const struct sock *sk)
{
	if (unlikely(!slow_start(sk)->state))
		return &plain;
	return slow_start_algorithm(sk)->ops;
}

static void begin_round(struct sock *sk)
{
	struct slow_start *ss = slow_start(sk);

	/* A round cut short by a pause may have no sample: the one before it stands. */
	if (ss->round_samples) {
		ss->last_round_min_rtt_us = ss->round_min_rtt_us;
		ss->last_round_samples = ss->round_samples;
	}
	ss->round_min_rtt_us = SLOW_START_NO_RTT;
	ss->round_samples = 0;
	ss->round_start_us = slow_start_now_us(sk);
	ss->round_end = tcp_sk(sk)->snd_nxt;
}

static void allocate_state(struct sock *sk)
{
	const struct slow_start_algorithm *algorithm = slow_start_algorithm(sk);
	struct slow_start_private *private = slow_start_private(sk);
	u32 used = round_up(algorithm->base->state_bytes, 8);

	if (used + algorithm->ops->state_bytes <= sizeof(private->room)) {
		private->common.state = (u8 *)private->room + used;
		return;
	}
	private->common.state = kzalloc(algorithm->ops->state_bytes,
					GFP_ATOMIC | __GFP_NOWARN);
	private->common.plain = !private->common.state;
}

static bool is_allocated(const struct sock *sk)
{
	const struct slow_start_private *private = slow_start_private(sk);
	const u8 *state = private->common.state;

	return state && (state < (const u8 *)private ||
			 state >= (const u8 *)(private + 1));
}

/* TCP may release a connection twice, or one that was never initialised. */
static void release(struct sock *sk)
{
	struct slow_start *ss = slow_start(sk);

	if (ss->state && plug_in(sk)->stop)
		plug_in(sk)->stop(sk);
	slow_start_unpace(sk);
	if (is_allocated(sk))
		kfree(ss->state);
	ss->state = NULL;
	ss->plain = 1;
}

/* Reaching a threshold that was there before is an exit nobody else reports. */
static void report_threshold(struct sock *sk)
{
	struct slow_start *ss = slow_start(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_slow_start(tp)) {
		ss->left = 0;
	} else if (!ss->left) {
		ss->left = 1;
		if (plug_in(sk)->flags & SLOW_START_OWN_EXIT)
			return;
		slow_start_note(sk, SLOW_START_EXIT, SLOW_START_INITIAL_SSTHRESH,
				tcp_snd_cwnd(tp), tp->snd_ssthresh);
	}
}

static void start(struct sock *sk)
{
	struct slow_start *ss = slow_start(sk);

	/* Zeroed by TCP, unless it initialises a connection a second time. */
	release(sk);
	memset(slow_start_private(sk), 0, sizeof(struct slow_start_private));
	ss->min_rtt_us = SLOW_START_NO_RTT;
	ss->last_rtt_us = SLOW_START_NO_RTT;
	ss->last_round_min_rtt_us = SLOW_START_NO_RTT;
	begin_round(sk);
	/* The SYN of a fast open has carried data, and nothing but the start follows it. */
	ss->joined = tcp_sk(sk)->data_segs_out > tcp_sk(sk)->syn_data;
	ss->left = !tcp_in_slow_start(tcp_sk(sk));
	if (slow_start_algorithm(sk)->base->init)
		slow_start_algorithm(sk)->base->init(sk);
	allocate_state(sk);
	if (plug_in(sk)->start)
		plug_in(sk)->start(sk);
	/* A plug-in may have set a threshold that the first window reaches. */
	report_threshold(sk);
}

static void ack_event(struct sock *sk, u32 flags)
{
	const struct slow_start_ops *ops = plug_in(sk);

	if (ops->ack)
		ops->ack(sk, flags);
}

static void acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct slow_start_algorithm *algorithm = slow_start_algorithm(sk);
	const struct slow_start_ops *ops = plug_in(sk);
	struct slow_start *ss = slow_start(sk);
	u32 rtt_us;

	ss->advanced = sample->pkts_acked > 0;
	if (after(tcp_sk(sk)->snd_una, ss->round_end)) {
		ss->round++;
		begin_round(sk);
		if (ops->round)
			ops->round(sk);
	}
	if (sample->rtt_us >= 0) {
		/* Below a microsecond is still not zero. */
		rtt_us = max(sample->rtt_us, 1);
		ss->last_rtt_us = rtt_us;
		ss->min_rtt_us = min(ss->min_rtt_us, rtt_us);
		ss->round_min_rtt_us = min(ss->round_min_rtt_us, rtt_us);
		if (ss->round_samples < U16_MAX)
			ss->round_samples++;
		if (algorithm->base->sample)
			algorithm->base->sample(sk, rtt_us);
	}
	if (ops->sample)
		ops->sample(sk, sample);
}

static void grow(struct sock *sk, u32 acked_packets)
{
	const struct slow_start_ops *ops = plug_in(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_slow_start(tp)) {
		acked_packets = slow_start_counted(acked_packets);
		slow_start(sk)->left = 0;
		if (ops->grow)
			acked_packets = ops->grow(sk, acked_packets);
		else
			acked_packets = tcp_slow_start(tp, acked_packets);
		report_threshold(sk);
		if (!acked_packets)
			return;
	}
	slow_start_algorithm(sk)->base->avoid(sk, acked_packets);
}

static void avoid(struct sock *sk, u32 ack, u32 acked_packets)
{
	const struct slow_start_ops *ops = plug_in(sk);

	if (tcp_is_cwnd_limited(sk))
		grow(sk, acked_packets);
	if (ops->limit)
		ops->limit(sk);
}

/* TCP leaves the episode to us, whether or not there is a plug-in's state. */
static void recover(struct sock *sk, const struct rate_sample *rate)
{
	const struct slow_start_ops *ops = plug_in(sk);

	if (ops->recover)
		ops->recover(sk, rate);
	else
		slow_start_reduce(sk, rate);
}

/*
 * With cong_control, TCP does not tell of the end of a recovery. One that was undone
 * has got its window back.
 */
static void recovered(struct sock *sk, u8 before)
{
	const struct slow_start_ops *ops = plug_in(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (before == TCP_CA_Recovery && !tp->undo_marker)
		return;
	if (ops->recovered)
		ops->recovered(sk);
	else if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		slow_start_set_cwnd(sk, tp->snd_ssthresh);
}

/* As tcp_may_raise_cwnd(): SACKs alone do not, unless packets are being reordered. */
static bool may_grow(const struct sock *sk, u32 acked_packets)
{
	u32 usual = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_reordering);

	return acked_packets &&
	       (slow_start(sk)->advanced || tcp_sk(sk)->reordering > usual);
}

/* The kernel's own order of things (tcp_cong_control()), without PRR. */
void slow_start_control(struct sock *sk, u32 acked_packets,
			const struct rate_sample *rate)
{
	u8 state = inet_csk(sk)->icsk_ca_state;

	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		recover(sk, rate);
	else if (may_grow(sk, acked_packets))
		avoid(sk, tcp_sk(sk)->snd_una, acked_packets);
	slow_start_update_pacing(sk);
}

static u32 threshold(struct sock *sk)
{
	const struct slow_start_ops *ops = plug_in(sk);
	struct slow_start *ss = slow_start(sk);
	u32 base, own;

	/* The reason is known when the state changes, right after this. */
	ss->leaving = 1;
	ss->leaving_slow_start = tcp_in_slow_start(tcp_sk(sk));
	ss->leaving_cwnd = tcp_snd_cwnd(tcp_sk(sk));
	/* The base keeps its own account of the episode in any case. */
	base = slow_start_algorithm(sk)->base->ssthresh(sk);
	own = ops->ssthresh ? ops->ssthresh(sk) : 0;
	return own ? max(own, 2U) : base;
}

static u32 undo(struct sock *sk)
{
	const struct slow_start_ops *ops = plug_in(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = max(tcp_snd_cwnd(tp), tp->prior_cwnd);

	/* Called with the old threshold still to be restored. */
	slow_start_note(sk, SLOW_START_RESUME, SLOW_START_SPURIOUS, cwnd, 0);
	if (ops->undo)
		ops->undo(sk);
	return cwnd;
}

static enum slow_start_reason reason_of(u8 state, struct sock *sk, u32 *quantity)
{
	switch (state) {
	case TCP_CA_Recovery:
		*quantity = tcp_sk(sk)->lost_out;
		return SLOW_START_LOSS;
	case TCP_CA_Loss:
		*quantity = jiffies_to_usecs(inet_csk(sk)->icsk_rto);
		return SLOW_START_RTO;
	default:
		*quantity = 0;
		return SLOW_START_CONGESTION_SIGNAL;
	}
}

static void state_changes(struct sock *sk, u8 state)
{
	const struct slow_start_ops *ops = plug_in(sk);
	u8 before = inet_csk(sk)->icsk_ca_state;
	struct slow_start *ss = slow_start(sk);
	enum slow_start_reason reason;
	u32 quantity;

	if (ss->leaving && state >= TCP_CA_CWR) {
		ss->leaving = 0;
		reason = reason_of(state, sk, &quantity);
		if (ss->leaving_slow_start && !ss->left) {
			ss->left = 1;
			slow_start_trace(sk, SLOW_START_EXIT, reason,
					 ss->leaving_cwnd, quantity, 0);
		}
		if (ops->congestion)
			ops->congestion(sk, reason, ss->leaving_slow_start);
	}
	if (inet_csk(sk)->icsk_ca_ops->cong_control && state < TCP_CA_CWR &&
	    (before == TCP_CA_CWR || before == TCP_CA_Recovery))
		recovered(sk, before);
	if (state == TCP_CA_Loss) {
		if (slow_start_algorithm(sk)->base->lost)
			slow_start_algorithm(sk)->base->lost(sk);
		begin_round(sk);
		if (ops->restart)
			ops->restart(sk, SLOW_START_AFTER_RTO);
	}
}

static void tx_start(struct sock *sk)
{
	const struct slow_start_algorithm *algorithm = slow_start_algorithm(sk);
	const struct slow_start_ops *ops = plug_in(sk);

	if (slow_start_was_idle(sk)) {
		if (ops->restart)
			ops->restart(sk, SLOW_START_IDLE);
		slow_start_cut_idle(sk);
	}
	if (algorithm->base->tx_start)
		algorithm->base->tx_start(sk);
	begin_round(sk);
	if (ops->restart)
		ops->restart(sk, SLOW_START_TX_START);
}

static void window_event(struct sock *sk, enum tcp_ca_event event)
{
	const struct slow_start_ops *ops = plug_in(sk);

	switch (event) {
	case CA_EVENT_TX_START:
		tx_start(sk);
		break;
	case CA_EVENT_CWND_RESTART:
		if (ops->restart)
			ops->restart(sk, SLOW_START_IDLE);
		break;
	case CA_EVENT_COMPLETE_CWR:
		/* TCP tells it of a recovery that it has just undone, too. */
		if (ops->recovered && (tcp_sk(sk)->undo_marker ||
				       inet_csk(sk)->icsk_ca_state == TCP_CA_CWR))
			ops->recovered(sk);
		break;
	default:
		break;
	}
}

/*
 * TCP asks for the least segments of a packet whenever it is about to send: the only
 * place where a congestion control can see what is queued.
 */
u32 slow_start_transmit(struct sock *sk)
{
	const struct slow_start_ops *ops = plug_in(sk);

	if (ops->transmit)
		ops->transmit(sk);
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

const struct tcp_congestion_ops slow_start_hooks = {
	.init		= start,
	.release	= release,
	.ssthresh	= threshold,
	.cong_avoid	= avoid,
	.undo_cwnd	= undo,
	.set_state	= state_changes,
	.cwnd_event	= window_event,
#ifdef HAVE_CWND_EVENT_TX_START
	.cwnd_event_tx_start = tx_start,
#endif
	.pkts_acked	= acked,
	.in_ack_event	= ack_event,
	.flags		= TCP_CONG_NON_RESTRICTED,
};
