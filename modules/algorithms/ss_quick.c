// SPDX-License-Identifier: GPL-2.0-only
/*
 * Quick-Start (RFC 4782, sections 3.1 and 4), with the routers' answer as a parameter,
 * and the unpaced variant of applications (Kyushu-Chicago slides on transactions).
 *
 * The granted rate is 40 kbit/s * 2^N. After the handshake the window becomes what that
 * rate carries in its RTT, headers counted (section 4.4), and is sent at exactly that
 * rate. Quick-Start ends with the first ACK of its packets: the window is what was sent,
 * and slow start goes on from there. If one of these packets is lost,
 * the connection reverts to the initial window it would have had and to standard slow
 * start, up to half of what got through (section 4.6).
 *
 * With paced=0 the window is the same and leaves as fast as the interface allows. The
 * sender is an application that asked for a large window, to which TCP knows no
 * special answer: losses are treated as usual. It need not have a window that a request
 * could carry: window_packets sets any. On the slides this window is set, and no slow
 * start follows: slow_start_on=0.
 *
 * Left out: IP and TCP options, the nonce and the report of the approved rate (many
 * paths drop packets with such options), requests in mid-connection.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

#define LEAST_KBPS	80U		/* N = 1 */
#define MOST_KBPS	1310720U	/* N = 15 */

static unsigned int rate_kbps = 81920;

static int set_rate(const char *text, const struct kernel_param *kp)
{
	unsigned int value;
	int error = kstrtouint(text, 0, &value);

	if (!error && value && (value < LEAST_KBPS || value > MOST_KBPS))
		error = -ERANGE;
	if (error) {
		pr_err("%s: parameter rate_kbps is 0 or a number from %u to %u\n",
		       KBUILD_MODNAME, LEAST_KBPS, MOST_KBPS);
		return error;
	}
	rate_kbps = value;
	return 0;
}

static const struct kernel_param_ops rate_ops = {
	.set = set_rate,
	.get = param_get_uint,
};

module_param_cb(rate_kbps, &rate_ops, &rate_kbps, 0644);
__MODULE_PARM_TYPE(rate_kbps, "uint");
MODULE_PARM_DESC(rate_kbps, "granted rate in kbit/s with headers, 80 to 1310720, rounded down to 40 * 2^N; 0: refused (default 81920)");

slow_start_parameter(paced, 1, 0, 1,
		     "1: sent at the granted rate; 0: at once, and lost as any packet");

slow_start_parameter(window_packets, 0, 0, 1000000,
		     "with paced=0, the window the application sets; 0: what the granted rate carries");

slow_start_parameter(slow_start_on, 1, 0, 1,
		     "1: slow start goes on from the window; 0: the window is ssthresh");

slow_start_parameter(pace_first, 0, 0, 1,
		     "1: the connection's first ten segments are paced, too; 0: as the kernel does, they are not (default 0)");

enum phase {
	OVER,		/* or never granted */
	SENDING,	/* nothing acknowledged yet */
	WATCHING,	/* Quick-Start packets are in flight */
	REVERTED,	/* one was lost */
};

/**
 * struct quick - state of a connection
 * @phase: enum phase
 * @size: the granted window, then what of it was sent, packets
 * @initial: initial window without the grant, packets
 * @delivered: tp->delivered before
 * @end: snd_nxt at the end of Quick-Start
 * @lost: tp->lost then
 * @through: of the granted packets, those not known to be lost
 * @known: what became of each of them is known
 * @window: cwnd after the loss, packets
 * @drained: no more than that is in flight
 */
struct quick {
	u32 phase;
	u32 size;
	u32 initial;
	u32 delivered;
	u32 end;
	u32 lost;
	u32 through;
	u32 window;
	bool known;
	bool drained;
};

/* The rate a request can carry, in bytes a second, headers counted; 0: refused. */
static u32 granted_rate(void)
{
	u32 kbps = READ_ONCE(rate_kbps), encoded = LEAST_KBPS;

	if (!kbps)
		return 0;
	while (encoded * 2 <= kbps)
		encoded *= 2;
	return encoded * 125;
}

static u32 packet_bytes(const struct sock *sk)
{
	return tcp_sk(sk)->mss_cache + tcp_sk(sk)->tcp_header_len +
	       inet_csk(sk)->icsk_af_ops->net_header_len;
}

static void start(struct sock *sk)
{
	struct quick *quick = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rate = granted_rate(), size = 0;

	if (slow_start(sk)->joined || !slow_start_is_initial(sk) ||
	    !(tp->srtt_us >> 3))
		return;
	if (!READ_ONCE(paced))
		size = READ_ONCE(window_packets);
	if (!size)
		size = div_u64(div_u64((u64)rate * (tp->srtt_us >> 3), USEC_PER_SEC),
			       packet_bytes(sk));
	/* A grant below the initial window is of no use. */
	if (size <= tcp_snd_cwnd(tp))
		return;
	quick->initial = tcp_snd_cwnd(tp);
	quick->delivered = tp->delivered;
	quick->size = size;
	slow_start_set_cwnd(sk, size);
	if (!READ_ONCE(slow_start_on))
		tp->snd_ssthresh = size;
	slow_start_note(sk, SLOW_START_JUMP, SLOW_START_JUMP_SIZE,
			tcp_snd_cwnd(tp), size);
	if (!READ_ONCE(paced))
		return;
	quick->phase = SENDING;
	slow_start_pace(sk, div_u64((u64)rate * tp->mss_cache, packet_bytes(sk)));
	if (READ_ONCE(pace_first))
		slow_start_pace_first(sk);
}

static void end_sending(struct sock *sk)
{
	struct quick *quick = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	slow_start_unpace(sk);
	slow_start_note(sk, SLOW_START_JUMP_END, SLOW_START_JUMP_SIZE,
			tp->data_segs_out, quick->size);
	quick->phase = WATCHING;
	quick->size = min(tp->data_segs_out, quick->size);
	quick->end = tp->snd_nxt;
	quick->lost = tp->lost;
	quick->through = quick->size;
}

/*
 * Packets are acknowledged, or found lost, in the order they were sent: the first as
 * many as were granted are the granted ones. Those that slow start sent after the first
 * ACK do not count.
 */
static void count(struct sock *sk)
{
	struct quick *quick = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (quick->known)
		return;
	quick->through = quick->size - min(tp->lost - quick->lost, quick->size);
	quick->known = tp->delivered - quick->delivered >= quick->through;
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct quick *quick = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (quick->phase == SENDING && tp->delivered != quick->delivered) {
		end_sending(sk);
		slow_start_set_cwnd(sk, max(quick->size, quick->initial));
	}
	if (quick->phase == WATCHING && !before(tp->snd_una, quick->end))
		quick->phase = OVER;
}

/* Half of what got through, as far as is known. */
static u32 target(const struct sock *sk)
{
	const struct quick *quick = slow_start_state(sk);

	return max(quick->through / 2, 2U);
}

static u32 threshold(struct sock *sk)
{
	struct quick *quick = slow_start_state(sk);

	if (quick->phase == SENDING)
		end_sending(sk);
	if (quick->phase != WATCHING)
		return 0;
	count(sk);
	return target(sk);
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	struct quick *quick = slow_start_state(sk);

	if (quick->phase != WATCHING || why == SLOW_START_RTO)
		return;
	quick->phase = REVERTED;
	quick->window = quick->initial;
	slow_start_note(sk, SLOW_START_RETREAT, SLOW_START_JUMP_SIZE,
			quick->initial, quick->size);
}

static void recover(struct sock *sk, const struct rate_sample *rate)
{
	struct quick *quick = slow_start_state(sk);

	if (quick->phase != REVERTED) {
		slow_start_reduce(sk, rate);
		return;
	}
	count(sk);
	/* Slow start begins when the flight that was too large has left. */
	if (quick->drained && quick->window < target(sk))
		quick->window = min(quick->window + rate->acked_sacked, target(sk));
	if (tcp_packets_in_flight(tcp_sk(sk)) <= quick->window)
		quick->drained = true;
	slow_start_hold(sk, quick->window);
}

static void recovered(struct sock *sk)
{
	struct quick *quick = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (quick->phase == REVERTED) {
		quick->phase = OVER;
		tp->snd_ssthresh = target(sk);
		slow_start_set_cwnd(sk, quick->window);
	} else if (!slow_start_is_initial(sk)) {
		slow_start_set_cwnd(sk, tp->snd_ssthresh);
	}
}

/* Nothing was lost after all. */
static void undo(struct sock *sk)
{
	struct quick *quick = slow_start_state(sk);

	quick->phase = OVER;
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct quick *quick = slow_start_state(sk);

	if (why != SLOW_START_AFTER_RTO)
		return;
	slow_start_unpace(sk);
	quick->phase = OVER;
}

static const struct slow_start_ops quick = {
	.name		= "quick",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct quick),
	.flags		= SLOW_START_OWN_RECOVERY,
	.start		= start,
	.sample		= sample,
	.ssthresh	= threshold,
	.congestion	= congestion,
	.recover	= recover,
	.recovered	= recovered,
	.undo		= undo,
	.restart	= restart,
};

module_slow_start(quick);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: Quick-Start");
