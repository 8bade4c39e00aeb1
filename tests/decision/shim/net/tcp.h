/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The TCP socket and the functions that congestion controls call, with the names
 * and types of Linux 6.12. Only fields that the tests keep up to date are here:
 * code that reads another does not compile.
 */
#ifndef SHIM_NET_TCP_H
#define SHIM_NET_TCP_H

#include <linux/win_minmax.h>
#include <net/sock.h>
#include <asm/byteorder.h>

#define ICSK_CA_PRIV_SIZE	104
#define TCP_CA_NAME_MAX		16
#define TCP_INFINITE_SSTHRESH	0x7fffffff
#define TCP_INIT_CWND		10
#define TCP_MIN_SND_MSS		48
#define TCP_CONG_NON_RESTRICTED	1
#define TCP_CONG_NEEDS_ECN	2
#define TCP_RTO_MIN		((unsigned int)(HZ / 5))
#define tcp_jiffies32		((u32)jiffies)
#define ntohs			__be16_to_cpu
#define htonl			__cpu_to_be32

enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

#define TCPF_CA_CWR		(1 << TCP_CA_CWR)
#define TCPF_CA_Recovery	(1 << TCP_CA_Recovery)
#define TCP_ESTABLISHED		1

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag,
			     const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	struct tcp_congestion_ops *next;
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct inet_sock {
	struct sock sk;
	__be32 inet_saddr;
	__be16 inet_sport;
	__u8 tos;
};

#define INET_ECN_MASK	3

#define inet_daddr	sk.sk_daddr
#define inet_dport	sk.sk_dport
#define inet_num	sk.sk_num

struct inet_connection_sock_af_ops {
	u16 net_header_len;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	const struct inet_connection_sock_af_ops *icsk_af_ops;
	u8 icsk_ca_state;
	u8 icsk_ca_initialized;
	u8 icsk_retransmits;
	u32 icsk_rto;	/* jiffies */
	u64 canary_before;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
	u64 canary_behind;
};

/* No timer is ever set: the path of a test paces by itself (path.c). */
struct hrtimer { u8 queued; };
#define HRTIMER_MODE_ABS_PINNED_SOFT	0
#define ns_to_ktime(ns)			((s64)(ns))
#define hrtimer_is_queued(timer)	((timer)->queued)
#define hrtimer_start(timer, time, mode)	((void)(timer), (void)(time), (void)(mode))

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_una, snd_nxt, write_seq, snd_wnd, max_window;
	u32 mss_cache;
	u16 advmss, tcp_header_len;
	struct { u16 mss_clamp; u8 snd_wscale, rcv_wscale, wscale_ok, sack_ok; } rx_opt;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_cwnd_used, snd_cwnd_stamp;
	u32 snd_ssthresh, prior_cwnd, prior_ssthresh;
	u32 prr_delivered, prr_out, high_seq, undo_marker;
	u32 packets_out, sacked_out, lost_out, retrans_out;
	u32 max_packets_out, cwnd_usage_seq;
	u8 is_cwnd_limited : 1, is_sack_reneg : 1, syn_data : 1;
	u8 ecn_flags;
	u32 delivered, delivered_ce, lost, app_limited;
	u32 segs_out, data_segs_out, segs_in, data_segs_in;
	u64 bytes_acked, bytes_sent, bytes_retrans, bytes_received;
	u32 total_retrans;
	u32 srtt_us, mdev_us, mdev_max_us, rttvar_us;
	struct minmax rtt_min;
	u64 tcp_mstamp, first_tx_mstamp, delivered_mstamp;
	u64 tcp_wstamp_ns, tcp_clock_cache;
	struct hrtimer pacing_timer;
	u32 rate_delivered, rate_interval_us;
	u32 lsndtime, rcv_tstamp;
	u32 reordering;
};

/* In kernel the socket is the first member of each. */
#define tcp_sk(s)	((struct tcp_sock *)(s))
#define inet_csk(s)	((struct inet_connection_sock *)(s))
#define inet_sk(s)	((struct inet_sock *)(s))

static inline void *inet_csk_ca(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_priv;
}

static inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

#define after(a, b)	before(b, a)

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 packets)
{
	WARN_ON_ONCE((int)packets <= 0);
	tp->snd_cwnd = packets;
}

static inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp)
{
	return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}

static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	return (TCPF_CA_CWR | TCPF_CA_Recovery) &
	       (1 << inet_csk(sk)->icsk_ca_state);
}

static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_cwnd_reduction(sk))
		return tp->snd_ssthresh;
	return max(tp->snd_ssthresh, tp->snd_cwnd / 2 + tp->snd_cwnd / 4);
}

static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->is_cwnd_limited)
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static inline u32 tcp_min_rtt(const struct tcp_sock *tp)
{
	return minmax_get(&tp->rtt_min);
}

static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier)
{
	return later > earlier ? later - earlier : 0;
}

static inline u32 tcp_wnd_end(const struct tcp_sock *tp)
{
	return tp->snd_una + tp->snd_wnd;
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 window, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
void tcp_enter_cwr(struct sock *sk);
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops);

#endif
