/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * howdah:slow_start, one record an event. Integers only: __assign_str() changed
 * between kernels, and a record must be readable when the module is gone.
 * Addresses are those of IPv4, in network order; 0 for IPv6.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM howdah

#if !defined(HOWDAH_SLOW_START_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HOWDAH_SLOW_START_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/tcp.h>

TRACE_EVENT(slow_start,

	TP_PROTO(const struct sock *sk, u32 event, u32 reason, u32 cwnd,
		 u32 quantity, u32 threshold),

	TP_ARGS(sk, event, reason, cwnd, quantity, threshold),

	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u64, mstamp_us)
		__field(u32, saddr)
		__field(u32, daddr)
		__field(u32, cwnd)
		__field(u32, ssthresh)
		__field(u32, quantity)
		__field(u32, threshold)
		__field(u32, round)
		__field(u32, min_rtt_us)
		__field(u16, sport)
		__field(u16, dport)
		__field(u16, event)
		__field(u16, reason)
	),

	TP_fast_assign(
		const struct inet_sock *inet = inet_sk(sk);

		__entry->cookie = atomic64_read(&sk->sk_cookie);
		__entry->mstamp_us = tcp_sk(sk)->tcp_mstamp;
		__entry->saddr = (__force u32)slow_start_ipv4(sk, inet->inet_saddr);
		__entry->daddr = (__force u32)slow_start_ipv4(sk, inet->inet_daddr);
		__entry->cwnd = cwnd;
		__entry->ssthresh = tcp_sk(sk)->snd_ssthresh;
		__entry->quantity = quantity;
		__entry->threshold = threshold;
		__entry->round = slow_start(sk)->round;
		__entry->min_rtt_us = slow_start(sk)->min_rtt_us;
		__entry->sport = ntohs(inet->inet_sport);
		__entry->dport = ntohs(inet->inet_dport);
		__entry->event = event;
		__entry->reason = reason;
	),

	TP_printk("sport=%u dport=%u event=%u reason=%u cwnd=%u ssthresh=%u quantity=%u threshold=%u round=%u min_rtt_us=%u cookie=%llu",
		  __entry->sport, __entry->dport, __entry->event,
		  __entry->reason, __entry->cwnd, __entry->ssthresh,
		  __entry->quantity, __entry->threshold, __entry->round,
		  __entry->min_rtt_us, __entry->cookie)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
