/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the slow-start core (module howdah_slow_start) and its
 * plug-ins, one algorithm a file.
 *
 * A plug-in says how a connection starts. What follows slow start is a base, and
 * the core registers each plug-in over both: "limited" becomes the congestion
 * controls "limited_reno" and "limited_cubic". The core owns rounds, RTT samples,
 * the base's congestion avoidance, allocation of a plug-in's state, pacing and the
 * event trace. modules/README.md has an example of a whole plug-in.
 *
 * Units: windows are packets of tp->mss_cache bytes, times are microseconds,
 * rates are bytes a second unless a name says otherwise.
 */
#ifndef HOWDAH_SLOW_START_H
#define HOWDAH_SLOW_START_H

#include <linux/module.h>
#include <net/tcp.h>
#include "slow_start_compat.h"
#include "slow_start_event.h"

#define SLOW_START_NAME_MAX	9	/* with "_cubic", TCP_CA_NAME_MAX - 1 */
#define SLOW_START_NO_RTT	(~0U)	/* no sample yet */

/* Why slow_start_ops.restart is called. */
enum slow_start_restart {
	SLOW_START_TX_START,	/* about to send with nothing in flight */
	SLOW_START_IDLE,	/* idle for longer than the RTO, cwnd is about to be cut */
	SLOW_START_AFTER_RTO,	/* a retransmission timer fired */
};

/* slow_start_ops.flags */
#define SLOW_START_OWN_RECOVERY	1	/* .recover replaces PRR */
#define SLOW_START_OWN_EXIT	2	/* ssthresh moves: the core does not tell when it is reached */

/**
 * struct slow_start_ops - what a plug-in implements; every function is optional
 * @name: lower case, at most SLOW_START_NAME_MAX characters
 * @owner: THIS_MODULE, so that no socket outlives its code
 * @state_bytes: size of the plug-in's state of a connection, zeroed at start
 * @flags: SLOW_START_OWN_RECOVERY, SLOW_START_OWN_EXIT, both or 0
 * @start: a connection is established, or switched to this algorithm while
 *	running (slow_start(sk)->joined). May set cwnd and ssthresh.
 * @stop: the connection ends or changes its algorithm; only after @start
 * @ack: every ACK, duplicates included, with snd_una up to date; before @sample, or
 *	after it on newer kernels (Debian's 6.12 among them). @flags are those of
 *	tcp_congestion_ops.in_ack_event
 * @round: a round ended and the next one has begun; the ended one is described by
 *	last_round_min_rtt_us and last_round_samples
 * @sample: an ACK while data is in flight; it may acknowledge nothing, or by SACK
 *	only (sample->pkts_acked is 0). Rounds and RTTs are up to date, cwnd has
 *	not grown yet. sample->rtt_us is negative when there is none.
 * @grow: grow cwnd in slow start for @acked packets, with cwnd in use. Returns the
 *	packets left over for congestion avoidance once cwnd has reached ssthresh.
 *	Without it: standard slow start, tcp_slow_start().
 * @limit: cwnd may have grown, in slow start or after it; may lower it
 * @ssthresh: the slow-start threshold after congestion, in packets; called once for
 *	each episode before cwnd is cut. Without it, or where it returns 0: the base's.
 * @congestion: an episode has begun, @why is SLOW_START_LOSS, _RTO or
 *	_CONGESTION_SIGNAL;
 *	@in_slow_start tells whether it ended a slow start
 * @recover: with SLOW_START_OWN_RECOVERY: an ACK during recovery; sets cwnd, or calls
 *	slow_start_reduce()
 * @recovered: recovery ended, neither by an RTO nor by an undo; cwnd is ssthresh, or
 *	with SLOW_START_OWN_RECOVERY what @recover left
 * @undo: the episode was spurious; cwnd and ssthresh are being restored
 * @restart: see enum slow_start_restart
 * @transmit: data or retransmissions are about to be sent, or held back by pacing or a
 *	window; write_seq tells what is queued. Often: it must cost little.
 *
 * All are called with the socket locked, in softirq or process context.
 */
struct slow_start_ops {
	const char *name;
	struct module *owner;
	u32 state_bytes;
	u32 flags;

	void (*start)(struct sock *sk);
	void (*stop)(struct sock *sk);
	void (*ack)(struct sock *sk, u32 flags);
	void (*round)(struct sock *sk);
	void (*sample)(struct sock *sk, const struct ack_sample *sample);
	u32 (*grow)(struct sock *sk, u32 acked);
	void (*limit)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*congestion)(struct sock *sk, enum slow_start_reason why,
			   bool in_slow_start);
	void (*recover)(struct sock *sk, const struct rate_sample *rate);
	void (*recovered)(struct sock *sk);
	void (*undo)(struct sock *sk);
	void (*restart)(struct sock *sk, enum slow_start_restart why);
	void (*transmit)(struct sock *sk);
};

/**
 * struct slow_start - what the core knows of a connection; plug-ins only read it
 * @state: the plug-in's state, use slow_start_state()
 * @min_rtt_us: smallest RTT of the connection, or SLOW_START_NO_RTT
 * @last_rtt_us: the newest sample, or SLOW_START_NO_RTT
 * @round: rounds completed since the start
 * @round_end: snd_nxt when the round began; the round ends when snd_una passes it
 * @round_start_us: low half of tcp_mstamp when the round began
 * @round_min_rtt_us: smallest RTT of this round, or SLOW_START_NO_RTT
 * @last_round_min_rtt_us: that of the last round with samples
 * @round_samples: RTT samples in this round, at most 65535
 * @last_round_samples: in the last round with samples
 * @joined: the connection had sent data, other than in its SYN, before it was switched to
 *	the algorithm
 * @left: this slow start's exit has been reported
 * @plain: there was no memory for the plug-in's state: standard slow start
 * @paced: slow_start_pace() holds
 * @pacing_ours: pacing was off before slow_start_pace()
 * @leaving: ssthresh was computed, and the reason is about to be known
 * @leaving_slow_start: cwnd was below ssthresh then
 * @advanced: the ACK being processed acknowledges data cumulatively
 * @first_paced: slow_start_pace_first() holds
 * @leaving_cwnd: cwnd before it was cut
 * @max_pacing_rate: sk_max_pacing_rate before slow_start_pace()
 */
struct slow_start {
	void *state;
	u32 min_rtt_us;
	u32 last_rtt_us;
	u32 round;
	u32 round_end;
	u32 round_start_us;
	u32 round_min_rtt_us;
	u32 last_round_min_rtt_us;
	u16 round_samples;
	u16 last_round_samples;
	u8 joined : 1,
	   left : 1,
	   plain : 1,
	   paced : 1,
	   pacing_ours : 1,
	   leaving : 1,
	   leaving_slow_start : 1,
	   advanced : 1;
	u8 first_paced : 1;
	u32 leaving_cwnd;
	unsigned long max_pacing_rate;
};

static inline struct slow_start *slow_start(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

/* The plug-in's own state; never NULL within its functions if it has a size. */
static inline void *slow_start_state(const struct sock *sk)
{
	return slow_start(sk)->state;
}

/* Arrival of the ACK being processed; wraps after 71 minutes: compare differences. */
static inline u32 slow_start_now_us(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp;
}

/* Has the connection left the slow start that no threshold bounds? */
static inline bool slow_start_is_initial(const struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}

/**
 * slow_start_exit() - leave slow start now: ssthresh becomes cwnd
 * @sk: the connection
 * @reason: what the algorithm saw
 * @quantity: the number it decided by, in the unit enum slow_start_reason states
 * @threshold: what it was compared with, same unit
 *
 * Traces the exit with cwnd as it is: the window at the decision. An algorithm that
 * leaves with a smaller one does not cut cwnd itself, but calls slow_start_roll_back().
 */
void slow_start_exit(struct sock *sk, enum slow_start_reason reason,
		     u32 quantity, u32 threshold);

/**
 * slow_start_roll_back() - leave slow start now, with a smaller window
 * @sk: the connection
 * @packets: the window to leave with; cwnd and ssthresh become it, unless cwnd is smaller
 * @reason: what the algorithm saw
 * @quantity: the number it decided by, in the unit enum slow_start_reason states
 * @threshold: what it was compared with, same unit
 *
 * Traces the exit with the window at the decision, and, where it takes something from
 * that window, SLOW_START_ROLL_BACK with what is left.
 */
void slow_start_roll_back(struct sock *sk, u32 packets,
			  enum slow_start_reason reason, u32 quantity,
			  u32 threshold);

/**
 * slow_start_note() - trace something that is not an exit
 * @sk: the connection
 * @event: what happened
 * @reason: why, or SLOW_START_NONE
 * @quantity: the number that decided it
 * @threshold: what it was compared with
 */
void slow_start_note(struct sock *sk, enum slow_start_event event,
		     enum slow_start_reason reason, u32 quantity,
		     u32 threshold);

/**
 * slow_start_pace() - send at no more than a rate, until slow_start_unpace()
 * @sk: the connection
 * @bytes_per_second: payload bytes a second; a lower SO_MAX_PACING_RATE stands
 *
 * The kernel recomputes the pacing rate after every ACK (200 % of cwnd/srtt in slow
 * start), so that the ceiling is lowered. It never paces a connection's first ten
 * segments (tcp_update_skb_after_send()), unless slow_start_pace_first() is called, too.
 */
void slow_start_pace(struct sock *sk, u64 bytes_per_second);
void slow_start_unpace(struct sock *sk);

/**
 * slow_start_pace_first() - pace the connection's first ten segments as well
 * @sk: the connection, for which slow_start_pace() holds
 *
 * The kernel knows them by data_segs_out alone. Until slow_start_unpace() this counter,
 * and tcpi_data_segs_out with it, is SLOW_START_UNPACED higher than what was sent.
 */
void slow_start_pace_first(struct sock *sk);

/**
 * slow_start_repace() - the gap after the last segment, at a pace that has changed since
 * @sk: the connection; nothing happens unless slow_start_pace_first() holds
 * @before_ns: gap at the pace when the segment left
 * @now_ns: gap at the pace that holds now
 *
 * TCP fixes the next segment's time when one leaves. The first one leaves as soon as it
 * is written, when nothing is known of what follows it.
 */
void slow_start_repace(struct sock *sk, u64 before_ns, u64 now_ns);

#define SLOW_START_UNPACED	10	/* segments that the kernel does not pace */

/**
 * slow_start_reduce() - Proportional Rate Reduction towards ssthresh (RFC 9937)
 * @sk: the connection
 * @rate: as given to slow_start_ops.recover
 *
 * What TCP does by itself without SLOW_START_OWN_RECOVERY.
 */
void slow_start_reduce(struct sock *sk, const struct rate_sample *rate);

/**
 * slow_start_hold() - a window during recovery that is smaller than the flight
 * @sk: the connection
 * @packets: the window
 *
 * Nothing is sent before the flight has shrunk to it, except for the first
 * retransmission (RFC 6675, section 5).
 */
void slow_start_hold(struct sock *sk, u32 packets);

/* A window of @packets spread over @rtt_us, in bytes a second. */
static inline u64 slow_start_rate(const struct sock *sk, u32 packets, u32 rtt_us)
{
	u64 bytes = (u64)packets * tcp_sk(sk)->mss_cache;

	return div64_u64(bytes * USEC_PER_SEC, max(rtt_us, 1U));
}

/*
 * Set cwnd, at least 1 packet and at most snd_cwnd_clamp. A window that was computed
 * as a difference may be anything: the kernel warns of values below 1.
 */
static inline void slow_start_set_cwnd(struct sock *sk, u32 packets)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, clamp_t(u32, packets, 1, tp->snd_cwnd_clamp));
}

/* One plug-in over one base. */
struct slow_start_algorithm {
	struct tcp_congestion_ops tcp;
	const struct slow_start_ops *ops;
	const struct slow_start_base *base;
};

/* Both bases of a plug-in; memory of the plug-in's module, filled by the core. */
struct slow_start_family {
	struct slow_start_algorithm reno;
	struct slow_start_algorithm cubic;
};

int slow_start_register(const struct slow_start_ops *ops,
			struct slow_start_family *family);
void slow_start_unregister(struct slow_start_family *family);

/**
 * module_slow_start() - everything a module of one plug-in needs besides its code
 * @variable: its struct slow_start_ops, called like the plug-in
 */
#define module_slow_start(variable)					\
static struct slow_start_family variable##_family;			\
static int __init variable##_load(void)					\
{									\
	return slow_start_register(&(variable), &variable##_family);	\
}									\
static void __exit variable##_unload(void)				\
{									\
	slow_start_unregister(&variable##_family);			\
}									\
module_init(variable##_load);						\
module_exit(variable##_unload);						\
MODULE_ALIAS("tcp_" #variable "_reno");					\
MODULE_ALIAS("tcp_" #variable "_cubic")

#endif
