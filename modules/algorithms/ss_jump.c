// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jump Start (Liu, Allman, Jin and Wang, Congestion Control Without a Startup Phase,
 * PFLDnet 2007, section II; the caps are the policies of section IV.D).
 *
 * After the handshake the sender takes D, the least of the receiver's window, what is
 * queued and the caps, and paces D packets over the RTT of the handshake. The jump ends
 * when the first of them is acknowledged: D becomes what was sent, and the connection
 * goes on as any other. If one of the D packets was lost, the window is halved and
 * recovered as usual; at the end of that recovery it becomes (D - R) / 2, with R the
 * retransmissions in between. A timeout cancels that: one packet, slow start.
 *
 * A socket learns of its data by and by, so that D grows with what is queued until the
 * jump ends, and the rate with it; the paper's sender knows all of it at once. Linux
 * does not pace a connection's first ten segments, so that a jump of ten leaves at once;
 * with pace_first=1 all of it is paced, as in the paper. A connection without an RTT of
 * its handshake (a lost SYN, SYN cookies) does not jump: there is nothing to pace over.
 * With mark_dscp a jump above the initial window is marked (IV.E), from when so much is
 * queued until it ends: IPv4 packets carry that DSCP. Left out: a target for the time of a
 * whole transfer (IV.D; its size is not known).
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

slow_start_parameter(cap_packets, 0, 0, 1000000,
		     "largest jump in packets, 0: no such limit");

slow_start_parameter(cap_kbps, 0, 0, 4000000000U,
		     "largest rate of the jump in kbit/s of payload, 0: no such limit");

slow_start_parameter(pace_first, 0, 0, 1,
		     "1: the connection's first ten segments are paced, too; 0: as the kernel does, they are not (default 0)");

slow_start_parameter(mark_dscp, 0, 0, 63,
		     "DSCP of the packets of a jump above the initial window, 0: that of the connection");

enum phase {
	OVER,		/* or never jumped */
	JUMPING,	/* nothing acknowledged yet */
	WATCHING,	/* packets of the jump are in flight */
	RECOVERING,	/* one was lost */
};

/**
 * struct jump - state of a connection
 * @phase: enum phase
 * @size: D in packets: what the pace was set for, then what was sent
 * @initial: initial window without a jump, packets
 * @rtt_us: of the handshake
 * @delivered: tp->delivered before the jump
 * @end: snd_nxt at the end of the jump
 * @retransmitted: tp->total_retrans when the recovery began
 * @marked: packets carry mark_dscp instead of @unmarked
 * @unmarked: TOS byte of the connection, without its ECN bits
 */
struct jump {
	u32 phase;
	u32 size;
	u32 initial;
	u32 rtt_us;
	u32 delivered;
	u32 end;
	u32 retransmitted;
	u8 marked;
	u8 unmarked;
};

/* Receiver's window and policy, in packets; what is queued may be less. */
static u32 largest(const struct sock *sk)
{
	const struct jump *jump = slow_start_state(sk);
	u32 packets = READ_ONCE(cap_packets), kbps = READ_ONCE(cap_kbps);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 limit = tp->snd_wnd / tp->mss_cache;

	if (packets)
		limit = min_t(u64, limit, packets);
	if (kbps)	/* kbit/s times us is 1/8000 bytes */
		limit = min(limit, div_u64(div_u64((u64)kbps * jump->rtt_us, 8000),
					   tp->mss_cache));
	return max_t(u64, limit, 1);
}

/* The lower two bits of the byte are TCP's: ECN. */
static void set_dscp(struct sock *sk, u8 tos)
{
	struct inet_sock *inet = inet_sk(sk);

	WRITE_ONCE(inet->tos, tos | (inet->tos & INET_ECN_MASK));
}

static void mark(struct sock *sk)
{
	struct jump *jump = slow_start_state(sk);
	u32 dscp = READ_ONCE(mark_dscp);

	if (!dscp || jump->marked)
		return;
	jump->marked = 1;
	jump->unmarked = inet_sk(sk)->tos & ~INET_ECN_MASK;
	set_dscp(sk, dscp << 2);
}

static void unmark(struct sock *sk)
{
	struct jump *jump = slow_start_state(sk);

	if (!jump->marked)
		return;
	jump->marked = 0;
	set_dscp(sk, jump->unmarked);
}

static void start(struct sock *sk)
{
	struct jump *jump = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 limit;

	if (slow_start(sk)->joined || !slow_start_is_initial(sk) ||
	    !(tp->srtt_us >> 3))
		return;
	jump->phase = JUMPING;
	jump->rtt_us = tp->srtt_us >> 3;
	jump->delivered = tp->delivered;
	limit = largest(sk);
	jump->initial = min(tcp_snd_cwnd(tp), limit);
	/* The send buffer is sized by this window. */
	slow_start_set_cwnd(sk, limit);
	slow_start_pace(sk, slow_start_rate(sk, limit, jump->rtt_us));
	if (READ_ONCE(pace_first))
		slow_start_pace_first(sk);
	slow_start_note(sk, SLOW_START_JUMP, SLOW_START_JUMP_SIZE,
			tcp_snd_cwnd(tp), limit);
}

/* Between two of so many packets that fill the RTT. */
static u64 gap_ns(const struct jump *jump, u32 packets)
{
	return div_u64((u64)jump->rtt_us * NSEC_PER_USEC, packets);
}

static void transmit(struct sock *sk)
{
	struct jump *jump = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 limit, size;

	if (jump->phase != JUMPING)
		return;
	limit = largest(sk);
	size = min(limit, DIV_ROUND_UP(tp->write_seq - tp->snd_una, tp->mss_cache));
	slow_start_set_cwnd(sk, limit);
	if (size > jump->initial)
		mark(sk);
	if (size && size != jump->size) {
		if (jump->size)
			slow_start_repace(sk, gap_ns(jump, jump->size),
					  gap_ns(jump, size));
		jump->size = size;
		slow_start_pace(sk, slow_start_rate(sk, size, jump->rtt_us));
	}
}

static void end_jump(struct sock *sk)
{
	struct jump *jump = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	slow_start_unpace(sk);
	unmark(sk);
	slow_start_note(sk, SLOW_START_JUMP_END, SLOW_START_JUMP_SIZE,
			tp->data_segs_out, tcp_snd_cwnd(tp));
	jump->phase = WATCHING;
	jump->size = tp->data_segs_out;
	jump->end = tp->snd_nxt;
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct jump *jump = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (jump->phase == JUMPING && tp->delivered != jump->delivered) {
		end_jump(sk);
		slow_start_set_cwnd(sk, max(jump->size, jump->initial));
	}
	if (jump->phase == WATCHING && !before(tp->snd_una, jump->end))
		jump->phase = OVER;
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	struct jump *jump = slow_start_state(sk);

	/* The sender's own queue may have dropped before anything came back. */
	if (jump->phase == JUMPING)
		end_jump(sk);
	if (jump->phase != WATCHING || why == SLOW_START_RTO)
		return;
	jump->phase = RECOVERING;
	jump->retransmitted = tcp_sk(sk)->total_retrans;
}

static void recovered(struct sock *sk)
{
	struct jump *jump = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 again, window;

	if (jump->phase != RECOVERING)
		return;
	jump->phase = OVER;
	again = tp->total_retrans - jump->retransmitted;
	/* RFC 5681 allows no threshold below two packets. */
	window = max((jump->size - min(again, jump->size)) / 2, 2U);
	tp->snd_ssthresh = window;
	slow_start_set_cwnd(sk, window);
	slow_start_note(sk, SLOW_START_RETREAT, SLOW_START_JUMP_SIZE, window,
			jump->size);
}

/* Nothing was lost after all. */
static void undo(struct sock *sk)
{
	struct jump *jump = slow_start_state(sk);

	jump->phase = OVER;
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct jump *jump = slow_start_state(sk);

	if (why != SLOW_START_AFTER_RTO)
		return;
	slow_start_unpace(sk);
	unmark(sk);
	jump->phase = OVER;
}

static const struct slow_start_ops jump = {
	.name		= "jump",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct jump),
	.start		= start,
	.stop		= unmark,
	.transmit	= transmit,
	.sample		= sample,
	.congestion	= congestion,
	.recovered	= recovered,
	.undo		= undo,
	.restart	= restart,
};

module_slow_start(jump);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: Jump Start");
