// SPDX-License-Identifier: GPL-2.0-only
/* Opening, sending and closing: see sender.h. What arrives is in sender_ack.c. */
#include "sender.h"

#define BULK_PACKETS	20000	/* unsent data of an application that never runs dry */

const struct opening opening_default = {
	.mss_bytes = 1448,
	.cwnd = TCP_INIT_CWND,
	.ssthresh = TCP_INFINITE_SSTHRESH,
	.clamp = ~0U,
	.handshake_rtt_us = 100000,
	.sequence = 1,
	.window_bytes = 1 << 30,
	.late_ack_event = 1,
	.peer = 1,
	.slow_start_after_idle = 1,
};

static void take_algorithm(struct sender *sender, const struct tcp_congestion_ops *ops)
{
	sender->tcp.inet_conn.icsk_ca_ops = ops;
	ops->owner->users++;
}

static void enlarge(struct sender *sender)
{
	u64 room = sender->room ? 2 * sender->room : 256, number;
	struct packet *packets = calloc(room, sizeof(*packets));

	if (!packets)
		abort();
	for (number = sender->una; number < sender->next; number++)
		packets[number & (room - 1)] = *sender_packet(sender, number);
	free(sender->packets);
	sender->packets = packets;
	sender->room = room;
}

static void update_write_seq(struct sender *sender)
{
	u64 unsent = sender->opening.unsent_packets ? sender->unsent : BULK_PACKETS;

	sender->tcp.write_seq = sender->tcp.snd_nxt + (u32)(unsent * sender->tcp.mss_cache);
}

static const struct inet_connection_sock_af_ops over_ipv4 = { .net_header_len = 20 };
static const struct inet_connection_sock_af_ops over_ipv6 = { .net_header_len = 40 };

/* What TCP leaves in the IPv4 address of an accepted IPv6 socket is 127.0.0.6. */
static void describe_ipv6(struct sock *sk, const struct opening *opening)
{
	sk->sk_family = AF_INET6;
	ipv6_addr_set_v4mapped(sk->sk_daddr, &sk->sk_v6_daddr);
	if (opening->ipv6 == 2)
		return;
	sk->sk_v6_daddr.s6_addr32[0] = __cpu_to_be32(0x20010db8);
	sk->sk_v6_daddr.s6_addr32[2] = 0;
	sk->sk_v6_daddr.s6_addr32[3] = __cpu_to_be32(opening->peer);
	sk->sk_daddr = __cpu_to_be32(0x7f000006);
	inet_csk(sk)->icsk_af_ops = &over_ipv6;
}

static void describe_peer(struct sock *sk, const struct opening *opening)
{
	struct net *net = &shim_nets[opening->net & 1];

	net->net_cookie = 1 + (opening->net & 1);
	net->ipv4.sysctl_tcp_pacing_ss_ratio = 200;
	net->ipv4.sysctl_tcp_pacing_ca_ratio = 120;
	net->ipv4.sysctl_tcp_reordering = 3;
	net->ipv4.sysctl_tcp_min_tso_segs = 2;
	net->ipv4.sysctl_tcp_slow_start_after_idle = opening->slow_start_after_idle;
	sk->sk_net.net = net;
	sk->sk_family = AF_INET;
	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_daddr = __cpu_to_be32(0x0a000000 | (opening->peer & 0xff));
	inet_csk(sk)->icsk_af_ops = &over_ipv4;
	if (opening->ipv6)
		describe_ipv6(sk, opening);
	sk->sk_rcv_saddr = __cpu_to_be32(0x0a0000fe);
	sk->sk_pacing_rate = ~0UL;
	sk->sk_max_pacing_rate = ~0UL;
	sk->sk_pacing_shift = 10;
	sk->sk_gso_max_size = 65536;
	sk->sk_gso_max_segs = 1;
	sk->sk_sndbuf = 1 << 30;
}

int sender_open(struct sender *sender, const char *algorithm, const struct opening *opening)
{
	const struct tcp_congestion_ops *ops = machine_algorithm(algorithm);
	struct tcp_sock *tp = &sender->tcp;
	static s64 cookies;

	if (!ops)
		return -ENOENT;
	memset(sender, 0, sizeof(*sender));
	sender->opening = *opening;
	sender->unsent = opening->unsent_packets;
	enlarge(sender);
	describe_peer(sender_sock(sender), opening);
	sender_sock(sender)->sk_cookie.counter = ++cookies;
	tp->mss_cache = clamp_t(u32, opening->mss_bytes, TCP_MIN_SND_MSS, 65535);
	tp->advmss = tp->mss_cache;
	tp->tcp_header_len = 32;
	tp->rx_opt.mss_clamp = tp->mss_cache;
	tp->rx_opt.sack_ok = 1;
	tp->snd_una = opening->sequence;
	tp->snd_nxt = tp->snd_una;
	tp->high_seq = tp->snd_una;
	tp->cwnd_usage_seq = tp->snd_una;
	tp->snd_wnd = opening->window_bytes;
	tp->max_window = tp->snd_wnd;
	tp->snd_cwnd = opening->cwnd ?: 1;
	tp->snd_ssthresh = opening->ssthresh;
	tp->snd_cwnd_clamp = opening->clamp;
	tp->reordering = 3;
	tp->app_limited = ~0U;
	tp->srtt_us = opening->handshake_rtt_us * 8;
	tp->rtt_min.s[0].v = opening->handshake_rtt_us ?: ~0U;
	tp->tcp_mstamp = shim_now_us;
	tp->delivered_mstamp = shim_now_us;
	tp->first_tx_mstamp = shim_now_us;
	tp->lsndtime = tcp_jiffies32;
	tp->snd_cwnd_stamp = tcp_jiffies32;
	tp->inet_conn.icsk_rto = HZ;
	update_write_seq(sender);
	take_algorithm(sender, ops);
	sender->is_open = true;
	hook_init(sender);
	tp->inet_conn.icsk_ca_initialized = 1;
	return 0;
}

int sender_switch(struct sender *sender, const char *algorithm)
{
	struct inet_connection_sock *icsk = &sender->tcp.inet_conn;
	const struct tcp_congestion_ops *ops = machine_algorithm(algorithm);

	if (!ops)
		return -ENOENT;
	if (ops == icsk->icsk_ca_ops)
		return 0;
	hook_release(sender);
	icsk->icsk_ca_ops->owner->users--;
	take_algorithm(sender, ops);
	memset(icsk->icsk_ca_priv, 0, sizeof(icsk->icsk_ca_priv));
	hook_init(sender);
	return 0;
}

void sender_close(struct sender *sender)
{
	if (!sender->is_open)
		return;
	hook_release(sender);
	hook_release(sender);
	sender->tcp.inet_conn.icsk_ca_ops->owner->users--;
	sender->is_open = false;
	free(sender->packets);
	sender->packets = NULL;
}

static u64 next_to_repeat(const struct sender *sender)
{
	u64 number = max(sender->repeat_from, sender->una);

	if (sender->tcp.lost_out <= sender->tcp.retrans_out)
		return sender->next;
	for (; number < sender->next; number++) {
		u8 flags = sender_packet(sender, number)->flags;

		if (flags & PACKET_LOST && !(flags & PACKET_RETRANSMITTED))
			break;
	}
	return number;
}

/* After the socket was idle for longer than the RTO: tcp_slow_start_after_idle_check(). */
static void look_for_idleness(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;
	s32 idle = tcp_jiffies32 - tp->lsndtime, rto = tp->inet_conn.icsk_rto;
	u32 cwnd, least;

	if (tp->packets_out || !sender->opening.slow_start_after_idle ||
	    tp->inet_conn.icsk_ca_ops->cong_control || idle <= rto)
		return;
	cwnd = tp->snd_cwnd;
	least = min_t(u32, TCP_INIT_CWND, cwnd);
	hook_event(sender, CA_EVENT_CWND_RESTART);
	if (!tcp_in_cwnd_reduction(sender_sock(sender)))
		tp->snd_ssthresh = max(tp->snd_ssthresh, tp->snd_cwnd / 2 + tp->snd_cwnd / 4);
	while ((idle -= rto) > 0 && cwnd > least)
		cwnd /= 2;
	tp->snd_cwnd = max(cwnd, least);
	tp->snd_cwnd_stamp = tcp_jiffies32;
	tp->snd_cwnd_used = 0;
}

void sender_prepare(struct sender *sender)
{
	look_for_idleness(sender);
	sender->tcp.tcp_mstamp = shim_now_us;
	if (sender->unsent || !sender->opening.unsent_packets || sender->tcp.lost_out)
		hook_min_tso_segs(sender);
}

u32 sender_allowed(const struct sender *sender)
{
	const struct tcp_sock *tp = &sender->tcp;
	u32 flight = tcp_packets_in_flight(tp), repeats, room, offered;

	if (flight >= tp->snd_cwnd)
		return 0;
	room = tp->snd_cwnd - flight;
	repeats = tp->lost_out - min(tp->lost_out, tp->retrans_out);
	offered = tp->snd_wnd / tp->mss_cache;
	offered = offered > tp->packets_out ? offered - tp->packets_out : 0;
	if (sender->opening.unsent_packets)
		offered = min_t(u64, offered, sender->unsent);
	return min(room, repeats + offered);
}

static void repeat(struct sender *sender, u64 number)
{
	struct packet *packet = sender_packet(sender, number);
	struct tcp_sock *tp = &sender->tcp;

	packet->flags |= PACKET_RETRANSMITTED | PACKET_EVER_REPEATED;
	packet->sent_us = shim_now_us;
	packet->delivered = tp->delivered;
	tp->retrans_out++;
	tp->total_retrans++;
	tp->bytes_retrans += tp->mss_cache;
	tp->prr_out++;
	sender->repeat_from = number + 1;
}

static void send_new(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;

	if (sender->next - sender->una >= sender->room)
		enlarge(sender);
	if (!tp->packets_out) {
		tp->first_tx_mstamp = shim_now_us;
		tp->delivered_mstamp = shim_now_us;
	}
	*sender_packet(sender, sender->next) = (struct packet){
		.sent_us = shim_now_us,
		.delivered = tp->delivered,
	};
	sender->next++;
	tp->snd_nxt += tp->mss_cache;
	tp->packets_out++;
	if (tcp_in_cwnd_reduction(sender_sock(sender)))
		tp->prr_out++;
	if (sender->unsent)
		sender->unsent--;
}

u64 sender_transmit(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;
	u64 number = next_to_repeat(sender);

	if (!tcp_packets_in_flight(tp))
		hook_event(sender, CA_EVENT_TX_START);
	tp->lsndtime = tcp_jiffies32;
	tp->data_segs_out++;
	tp->segs_out++;
	tp->bytes_sent += tp->mss_cache;
	if (number < sender->next)
		repeat(sender, number);
	else
		send_new(sender);
	update_write_seq(sender);
	return number;
}

/* tcp_cwnd_validate() */
void sender_flushed(struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;
	bool limited = tcp_packets_in_flight(tp) >= tp->snd_cwnd;

	if (!before(tp->snd_una, tp->cwnd_usage_seq) || limited ||
	    (!tp->is_cwnd_limited && tp->packets_out > tp->max_packets_out)) {
		tp->is_cwnd_limited = limited;
		tp->max_packets_out = tp->packets_out;
		tp->cwnd_usage_seq = tp->snd_nxt;
	}
	if (tcp_is_cwnd_limited(sender_sock(sender)))
		tp->snd_cwnd_stamp = tcp_jiffies32;
}
