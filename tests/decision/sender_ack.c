// SPDX-License-Identifier: GPL-2.0-only
/* What arrives at a sender, in the order of tcp_ack() and tcp_fastretrans_alert(). */
#include "sender.h"

#define DUPLICATE_ACKS	3

/* What an ACK brought, as far as it is collected while packets are looked at. */
struct harvest {
	u32 acked;		/* packets that left the retransmission queue */
	u32 marked_lost;
	u64 newest_sent_us;	/* of the packets it delivered, 0: none gives an RTT */
	u32 prior_delivered;
	u64 prior_sent_us;
	bool advanced;
};

static void deliver(struct sender *sender, struct packet *packet, struct harvest *harvest)
{
	struct tcp_sock *tp = &sender->tcp;

	tp->delivered++;
	if (packet->flags & PACKET_LOST)
		tp->lost_out--;
	if (packet->flags & PACKET_RETRANSMITTED)
		tp->retrans_out--;
	packet->flags &= ~(PACKET_LOST | PACKET_RETRANSMITTED);
	if (!(packet->flags & PACKET_EVER_REPEATED))
		harvest->newest_sent_us = max(harvest->newest_sent_us, packet->sent_us);
	if (packet->sent_us >= harvest->prior_sent_us) {
		harvest->prior_sent_us = packet->sent_us;
		harvest->prior_delivered = packet->delivered;
	}
}

static void take_cumulative(struct sender *sender, u64 cumulative, struct harvest *harvest)
{
	struct tcp_sock *tp = &sender->tcp;

	for (; sender->una < cumulative; sender->una++) {
		struct packet *packet = sender_packet(sender, sender->una);

		if (packet->flags & PACKET_SACKED)
			tp->sacked_out--;
		else
			deliver(sender, packet, harvest);
		tp->packets_out--;
		harvest->acked++;
	}
}

static void take_sacked(struct sender *sender, const struct ack *ack, struct harvest *harvest)
{
	u64 number = max(ack->sacked_from, ack->cumulative);
	u64 end = min(ack->sacked_to, sender->next);

	for (; number < end; number++) {
		struct packet *packet = sender_packet(sender, number);

		if (packet->flags & PACKET_SACKED)
			continue;
		deliver(sender, packet, harvest);
		packet->flags |= PACKET_SACKED;
		sender->tcp.sacked_out++;
		sender->highest_sacked = max(sender->highest_sacked, number + 1);
	}
}

/* Jacobson's estimate with the kernel's scales: srtt_us is eight times the average. */
static void update_srtt(struct sender *sender, u32 rtt_us)
{
	struct tcp_sock *tp = &sender->tcp;
	s64 error;

	rtt_us = clamp_t(u32, rtt_us, 1, 1 << 27);
	if (!tp->srtt_us) {
		tp->srtt_us = rtt_us * 8;
		tp->mdev_us = rtt_us * 2;
	} else {
		error = (s64)rtt_us - tp->srtt_us / 8;
		tp->srtt_us = max_t(s64, tp->srtt_us + error, 1);
		error = error < 0 ? -error : error;
		tp->mdev_us = max_t(s64, tp->mdev_us + error - tp->mdev_us / 4, 0);
	}
	tp->rttvar_us = max_t(u32, tp->mdev_us, USEC_PER_SEC / 5);
	tp->rtt_min.s[0].v = min(tp->rtt_min.s[0].v, rtt_us);
	tp->inet_conn.icsk_rto = min_t(u64, usecs_to_jiffies(tp->srtt_us / 8 + tp->rttvar_us), 120 * HZ);
	sender->backoff = 0;
}

static void begin_reduction(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;

	tp->high_seq = tp->snd_nxt;
	tp->snd_cwnd_cnt = 0;
	tp->prior_cwnd = tp->snd_cwnd;
	tp->prr_delivered = 0;
	tp->prr_out = 0;
	tp->snd_ssthresh = hook_ssthresh(sender);
}

static u32 current_ssthresh(struct sender *sender)
{
	const struct tcp_sock *tp = &sender->tcp;

	if (tcp_in_cwnd_reduction(sender_sock(sender)))
		return tp->snd_ssthresh;
	return max(tp->snd_ssthresh, tp->snd_cwnd / 2 + tp->snd_cwnd / 4);
}

static void enter_recovery(struct sender *sender, bool ece)
{
	struct tcp_sock *tp = &sender->tcp;

	tp->prior_ssthresh = 0;
	tp->undo_marker = tp->snd_una ?: 1;
	if (!tcp_in_cwnd_reduction(sender_sock(sender))) {
		if (!ece)
			tp->prior_ssthresh = current_ssthresh(sender);
		begin_reduction(sender);
	}
	hook_set_state(sender, TCP_CA_Recovery);
}

static void end_reduction(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;

	if (tp->inet_conn.icsk_ca_ops->cong_control)
		return;
	if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
	    (tp->inet_conn.icsk_ca_state == TCP_CA_CWR || tp->undo_marker)) {
		tp->snd_cwnd = tp->snd_ssthresh;
		tp->snd_cwnd_stamp = tcp_jiffies32;
	}
	hook_event(sender, CA_EVENT_COMPLETE_CWR);
}

static void mark_lost(struct sender *sender, u64 number, struct harvest *harvest)
{
	struct packet *packet = sender_packet(sender, number);

	if (packet->flags & (PACKET_SACKED | PACKET_LOST))
		return;
	packet->flags |= PACKET_LOST;
	sender->tcp.lost_out++;
	sender->tcp.lost++;
	sender->repeat_from = min(sender->repeat_from, number);
	if (harvest)
		harvest->marked_lost++;
}

/* A packet is lost once three behind it have arrived; a copy only a timer declares lost. */
static void find_losses(struct sender *sender, struct harvest *harvest)
{
	u64 number = max(sender->lost_before, sender->una);

	for (; number + DUPLICATE_ACKS < sender->highest_sacked; number++)
		mark_lost(sender, number, harvest);
	sender->lost_before = number;
}

static void keep_open(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;
	u8 state = tp->sacked_out || tp->lost_out ? TCP_CA_Disorder : TCP_CA_Open;

	if (tp->inet_conn.icsk_ca_state != state) {
		hook_set_state(sender, state);
		tp->high_seq = tp->snd_nxt;
	}
}

static void end_of_episode(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;

	if (tp->inet_conn.icsk_ca_state == TCP_CA_Open || before(tp->snd_una, tp->high_seq))
		return;
	switch (tp->inet_conn.icsk_ca_state) {
	case TCP_CA_CWR:
		if (tp->snd_una == tp->high_seq)
			break;
		end_reduction(sender);
		hook_set_state(sender, TCP_CA_Open);
		break;
	case TCP_CA_Recovery:
		hook_set_state(sender, TCP_CA_Open);
		end_reduction(sender);
		break;
	case TCP_CA_Loss:
		hook_set_state(sender, TCP_CA_Open);
		break;
	default:
		break;
	}
}

static void change_state(struct sender *sender, const struct ack *ack, struct harvest *harvest)
{
	struct tcp_sock *tp = &sender->tcp;
	u8 state;

	if (ack->ece)
		tp->prior_ssthresh = 0;
	end_of_episode(sender);
	find_losses(sender, harvest);
	state = tp->inet_conn.icsk_ca_state;
	if (state == TCP_CA_Recovery || state == TCP_CA_Loss)
		return;
	if (tp->lost_out)
		enter_recovery(sender, ack->ece);
	else if (ack->ece && state < TCP_CA_CWR)
		sender_local_congestion(sender);
	else if (state < TCP_CA_CWR)
		keep_open(sender);
}

/* Proportional rate reduction, RFC 6937, as in tcp_cwnd_reduction(). */
static void reduce(struct sender *sender, u32 delivered, const struct harvest *harvest)
{
	struct tcp_sock *tp = &sender->tcp;
	s64 missing = (s64)tp->snd_ssthresh - tcp_packets_in_flight(tp), may_send;

	if (!delivered || !tp->prior_cwnd)
		return;
	tp->prr_delivered += delivered;
	if (missing < 0) {
		may_send = (s64)div_u64((u64)tp->snd_ssthresh * tp->prr_delivered + tp->prior_cwnd - 1,
					tp->prior_cwnd) - tp->prr_out;
	} else {
		may_send = max_t(s64, (s64)tp->prr_delivered - tp->prr_out, delivered);
		if (harvest->advanced && !harvest->marked_lost)
			may_send++;
		may_send = min(may_send, missing);
	}
	may_send = max_t(s64, may_send, tp->prr_out ? 0 : 1);
	tp->snd_cwnd = max_t(s64, tcp_packets_in_flight(tp) + may_send, 1);
}

static void update_pacing_rate(struct sender *sender)
{
	const struct tcp_sock *tp = &sender->tcp;
	struct sock *sk = sender_sock(sender);
	unsigned __int128 rate = (unsigned __int128)tp->mss_cache * 8 * USEC_PER_SEC;

	rate = rate * max(tp->snd_cwnd, tp->packets_out) / max(tp->srtt_us, 1U);
	rate = rate * (tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120) / 100;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

static void control(struct sender *sender, const struct harvest *harvest, u32 delivered)
{
	struct tcp_sock *tp = &sender->tcp;
	struct rate_sample rate = {
		.prior_delivered = harvest->prior_delivered,
		.prior_mstamp = tp->delivered_mstamp,
		.delivered = tp->delivered - harvest->prior_delivered,
		.interval_us = harvest->prior_sent_us ? (long)(shim_now_us - harvest->prior_sent_us) : -1,
		.rtt_us = harvest->newest_sent_us ? (long)(shim_now_us - harvest->newest_sent_us) : -1,
		.losses = harvest->marked_lost,
		.acked_sacked = delivered,
	};

	if (delivered)
		tp->delivered_mstamp = shim_now_us;
	if (tp->inet_conn.icsk_ca_ops->cong_control) {
		hook_cong_control(sender, 0, &rate);
		return;
	}
	if (tcp_in_cwnd_reduction(sender_sock(sender)))
		reduce(sender, delivered, harvest);
	else if (harvest->advanced)
		hook_cong_avoid(sender, delivered);
	update_pacing_rate(sender);
}

static void sample(struct sender *sender, const struct ack *ack, const struct harvest *harvest)
{
	struct tcp_sock *tp = &sender->tcp;
	struct ack_sample sample = { .pkts_acked = harvest->acked, .rtt_us = -1 };

	if (ack->rtt_us != MEASURE_RTT)
		sample.rtt_us = clamp_t(s64, ack->rtt_us, -1, S32_MAX);
	else if (harvest->newest_sent_us)
		sample.rtt_us = shim_now_us - harvest->newest_sent_us;
	if (sample.rtt_us >= 0)
		update_srtt(sender, sample.rtt_us);
	sample.in_flight = tp->mss_cache * (tp->delivered - harvest->prior_delivered);
	hook_pkts_acked(sender, &sample);
}

void sender_ack(struct sender *sender, const struct ack *ack)
{
	struct tcp_sock *tp = &sender->tcp;
	struct harvest harvest = { .prior_delivered = tp->delivered };
	u64 cumulative = clamp(ack->cumulative, sender->una, sender->next);
	u32 flags, packets_before = tp->packets_out, delivered = tp->delivered;

	sender->acks++;
	tp->tcp_mstamp = shim_now_us;
	tp->rcv_tstamp = tcp_jiffies32;
	tp->segs_in++;
	harvest.advanced = cumulative > sender->una;
	tp->bytes_acked += (cumulative - sender->una) * tp->mss_cache;
	tp->snd_una += (u32)(cumulative - sender->una) * tp->mss_cache;
	if (harvest.advanced)
		tp->inet_conn.icsk_retransmits = 0;
	flags = harvest.advanced && ack->sacked_to <= ack->sacked_from && !ack->ece ?
			CA_ACK_WIN_UPDATE : CA_ACK_SLOWPATH | (ack->ece ? CA_ACK_ECE : 0);
	if (!sender->opening.late_ack_event || !packets_before)
		hook_ack_event(sender, flags);
	if (!packets_before)
		return;
	take_sacked(sender, &(struct ack){ .cumulative = sender->una, .sacked_from = ack->sacked_from,
					   .sacked_to = ack->sacked_to }, &harvest);
	take_cumulative(sender, cumulative, &harvest);
	sample(sender, ack, &harvest);
	if (sender->opening.late_ack_event)
		hook_ack_event(sender, flags);
	change_state(sender, ack, &harvest);
	control(sender, &harvest, tp->delivered - delivered);
}

/* Packets from the oldest on are found lost, by whatever means (RACK, NewReno). */
void sender_lose(struct sender *sender, u32 packets)
{
	struct tcp_sock *tp = &sender->tcp;
	u64 number = sender->una;

	for (; packets && number < sender->next; number++) {
		u8 flags = sender_packet(sender, number)->flags;

		if (flags & (PACKET_SACKED | PACKET_LOST))
			continue;
		mark_lost(sender, number, NULL);
		packets--;
	}
	if (tp->lost_out && tp->inet_conn.icsk_ca_state < TCP_CA_Recovery)
		enter_recovery(sender, false);
}

/* The retransmission timer fires: tcp_enter_loss(). */
void sender_timeout(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;
	struct inet_connection_sock *icsk = &tp->inet_conn;
	u64 number;

	if (!tp->packets_out)
		return;
	tp->tcp_mstamp = shim_now_us;
	for (number = sender->una; number < sender->next; number++) {
		sender_packet(sender, number)->flags &= ~PACKET_RETRANSMITTED;
		mark_lost(sender, number, NULL);
	}
	tp->retrans_out = 0;
	sender->repeat_from = sender->una;
	if (icsk->icsk_ca_state <= TCP_CA_Disorder || !after(tp->high_seq, tp->snd_una) ||
	    (icsk->icsk_ca_state == TCP_CA_Loss && !icsk->icsk_retransmits)) {
		tp->prior_ssthresh = current_ssthresh(sender);
		tp->prior_cwnd = tp->snd_cwnd;
		tp->snd_ssthresh = hook_ssthresh(sender);
		hook_event(sender, CA_EVENT_LOSS);
		tp->undo_marker = tp->snd_una ?: 1;
	}
	tp->snd_cwnd = tcp_packets_in_flight(tp) + 1;
	tp->snd_cwnd_cnt = 0;
	tp->snd_cwnd_stamp = tcp_jiffies32;
	hook_set_state(sender, TCP_CA_Loss);
	tp->high_seq = tp->snd_nxt;
	icsk->icsk_retransmits++;
	icsk->icsk_rto = min_t(u32, icsk->icsk_rto * 2, 120 * HZ);
	sender->backoff++;
}

/* ECN, or a drop in the sender's own queue: tcp_enter_cwr(). */
void sender_local_congestion(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;

	tp->prior_ssthresh = 0;
	if (tp->inet_conn.icsk_ca_state >= TCP_CA_CWR)
		return;
	tp->undo_marker = 0;
	begin_reduction(sender);
	hook_set_state(sender, TCP_CA_CWR);
}

/* A tail loss probe repaired a loss: cwnd is reduced at once, tcp_process_tlp_ack(). */
void sender_probe_loss(struct sender *sender)
{
	if (sender->tcp.inet_conn.icsk_ca_state >= TCP_CA_CWR)
		return;
	begin_reduction(sender);
	hook_set_state(sender, TCP_CA_CWR);
	end_reduction(sender);
	keep_open(sender);
}

void sender_undo(struct sender *sender, bool at_end)
{
	struct tcp_sock *tp = &sender->tcp;
	u8 state = tp->inet_conn.icsk_ca_state;
	u64 number;

	if (!tp->undo_marker || (state != TCP_CA_Recovery && state != TCP_CA_Loss))
		return;
	if (tp->prior_ssthresh) {
		tp->snd_cwnd = hook_undo_cwnd(sender);
		tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_ssthresh);
	}
	tp->undo_marker = 0;
	if (state == TCP_CA_Loss) {
		for (number = sender->una; number < sender->next; number++)
			sender_packet(sender, number)->flags &= ~PACKET_LOST;
		tp->lost_out = 0;
		tp->inet_conn.icsk_retransmits = 0;
	}
	hook_set_state(sender, TCP_CA_Open);
	/* Found at the end of a recovery, it ends like one: without a change of cwnd. */
	if (at_end && state == TCP_CA_Recovery)
		end_reduction(sender);
}
