/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A TCP sender that calls a congestion control as Linux 6.12 does. Packets are numbered
 * from 0; all of them have tp->mss_cache bytes. There is no path here: who drives the
 * sender says what arrives (path.c, runner.c, fuzz.c).
 */
#ifndef DECISION_SENDER_H
#define DECISION_SENDER_H

#include "machine.h"

/* struct ack.rtt_us: measure it from the packets, as TCP does. */
#define MEASURE_RTT	S64_MIN

/* struct packet.flags */
#define PACKET_SACKED		1
#define PACKET_LOST		2
#define PACKET_RETRANSMITTED	4	/* and the copy is under way */
#define PACKET_EVER_REPEATED	8	/* gives no RTT sample (Karn) */
#define PACKET_RECEIVED		16	/* the path's own mark */

struct packet {
	u64 sent_us;
	u32 delivered;	/* tp->delivered when it was sent */
	u8 flags;
};

/**
 * struct opening - what a connection begins with
 * @mss_bytes: payload of a packet
 * @cwnd: initial window before the algorithm's init, packets
 * @ssthresh: packets; TCP_INFINITE_SSTHRESH
 * @clamp: largest window, packets
 * @handshake_rtt_us: 0 where none was measured
 * @sequence: of the first byte
 * @window_bytes: what the receiver offers
 * @unsent_packets: how much of the data is there to be sent, 0: there is always more
 * @late_ack_event: in_ack_event after pkts_acked, as in 6.12, not before, as in 6.1
 * @net: 0 or 1, the name space
 * @peer: last byte of the peer's address
 * @slow_start_after_idle: the sysctl
 * @ipv6: 1: over IPv6, 2: an IPv6 socket with an IPv4 peer
 */
struct opening {
	u32 mss_bytes, cwnd, ssthresh, clamp, handshake_rtt_us, sequence;
	u32 window_bytes, unsent_packets;
	u32 late_ack_event, net, peer, slow_start_after_idle, ipv6;
};

extern const struct opening opening_default;

struct sender {
	struct tcp_sock tcp;	/* first: a struct sock is inside */
	struct opening opening;
	struct packet *packets;	/* a ring of room entries, a power of two */
	u64 room;
	u64 una, next;		/* packets acknowledged, packets sent */
	u64 highest_sacked;	/* one behind it */
	u64 lost_before;	/* below it packets were examined for loss */
	u64 repeat_from;	/* below it lost packets were sent again */
	u64 unsent;
	u32 backoff;
	u32 announced_cwnd;	/* state of the rule on shrinking windows */
	u32 last_event;
	u64 acks, hooks;
	bool is_open;
};

/**
 * struct ack - an acknowledgment
 * @cumulative: packets below it have arrived
 * @sacked_from: with @sacked_to: these packets have arrived as well, now
 * @rtt_us: MEASURE_RTT, or the sample the algorithm gets; -1 is none
 * @ece: with an ECN echo
 */
struct ack {
	u64 cumulative, sacked_from, sacked_to;
	s64 rtt_us;
	bool ece;
};

/* All times are shim_now_us, which the caller moves. */
int sender_open(struct sender *sender, const char *algorithm, const struct opening *opening);
int sender_switch(struct sender *sender, const char *algorithm);
/* connect(AF_UNSPEC) and the end: release, twice. */
void sender_close(struct sender *sender);
/* What TCP does first when it is about to send; then sender_allowed() holds. */
void sender_prepare(struct sender *sender);
/* Packets that window, receiver and application let go now; retransmissions first. */
u32 sender_allowed(const struct sender *sender);
/* Send one. Returns its number. */
u64 sender_transmit(struct sender *sender);
/* After a burst: was cwnd the limit? */
void sender_flushed(struct sender *sender);
void sender_ack(struct sender *sender, const struct ack *ack);
void sender_lose(struct sender *sender, u32 packets);
void sender_timeout(struct sender *sender);
void sender_local_congestion(struct sender *sender);
void sender_probe_loss(struct sender *sender);
/* The episode was spurious. @at_end: found when all of it is acknowledged, not before. */
void sender_undo(struct sender *sender, bool at_end);

static inline struct packet *sender_packet(const struct sender *sender, u64 number)
{
	return &sender->packets[number & (sender->room - 1)];
}

static inline struct sock *sender_sock(struct sender *sender)
{
	return (struct sock *)&sender->tcp;
}

/* hook.c: calls with a look at what they did. */
void hook_init(struct sender *sender);
void hook_release(struct sender *sender);
u32 hook_ssthresh(struct sender *sender);
void hook_min_tso_segs(struct sender *sender);
u32 hook_undo_cwnd(struct sender *sender);
void hook_set_state(struct sender *sender, u8 state);
void hook_event(struct sender *sender, enum tcp_ca_event event);
void hook_ack_event(struct sender *sender, u32 flags);
void hook_pkts_acked(struct sender *sender, const struct ack_sample *sample);
void hook_cong_avoid(struct sender *sender, u32 acked);
void hook_cong_control(struct sender *sender, int flag, const struct rate_sample *rate);

#endif
