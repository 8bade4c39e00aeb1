/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the slow-start core share. */
#ifndef HOWDAH_SLOW_START_CORE_H
#define HOWDAH_SLOW_START_CORE_H

#include "slow_start.h"

/**
 * struct slow_start_base - congestion avoidance and the answer to congestion
 * @name: suffix of the algorithm's name
 * @state_bytes: of struct slow_start_private.room, the plug-in has the rest
 * @init: a connection is established
 * @sample: an ACK with an RTT, in microseconds, at least 1
 * @avoid: grow cwnd for @acked packets, cwnd is at least ssthresh
 * @ssthresh: threshold after congestion, in packets
 * @lost: a retransmission timer fired
 * @tx_start: about to send with nothing in flight
 */
struct slow_start_base {
	const char *name;
	u32 state_bytes;
	void (*init)(struct sock *sk);
	void (*sample)(struct sock *sk, u32 rtt_us);
	void (*avoid)(struct sock *sk, u32 acked);
	u32 (*ssthresh)(struct sock *sk);
	void (*lost)(struct sock *sk);
	void (*tx_start)(struct sock *sk);
};

extern const struct slow_start_base slow_start_reno;
extern const struct slow_start_base slow_start_cubic;

/* All of icsk_ca_priv. */
struct slow_start_private {
	struct slow_start common;
	u64 room[(ICSK_CA_PRIV_SIZE - sizeof(struct slow_start)) / 8];
};

static inline struct slow_start_private *slow_start_private(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

static inline void *slow_start_base_state(const struct sock *sk)
{
	return slow_start_private(sk)->room;
}

static inline const struct slow_start_algorithm *
slow_start_algorithm(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops,
			    const struct slow_start_algorithm, tcp);
}

/* An accepted IPv6 socket has 127.0.0.6 for its IPv4 addresses; 0 says what is meant. */
static inline __be32 slow_start_ipv4(const struct sock *sk, __be32 address)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		return 0;
#endif
	return address;
}

extern const struct tcp_congestion_ops slow_start_hooks;

void slow_start_trace(struct sock *sk, enum slow_start_event event,
		      enum slow_start_reason reason, u32 cwnd, u32 quantity,
		      u32 threshold);
void slow_start_update_pacing(struct sock *sk);
u32 slow_start_counted(u32 acked);
u32 slow_start_first_acks(void);
u32 slow_start_transmit(struct sock *sk);
bool slow_start_was_idle(const struct sock *sk);
void slow_start_cut_idle(struct sock *sk);
void slow_start_control(struct sock *sk, u32 acked,
			const struct rate_sample *rate);

#endif
