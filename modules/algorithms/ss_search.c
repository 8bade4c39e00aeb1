// SPDX-License-Identifier: GPL-2.0-only
/*
 * SEARCH, "slow start exit at the right chokepoint": the slides shown to the IETF's
 * CCWG (algorithm 2.0) and draft-chung-ccwg-search, whose versions differ.
 *
 * While slow start doubles what it sends, the path delivers in an interval what was
 * sent in the interval of the same length one RTT before. Past the capacity it does
 * not: slow start ends when the normalised difference
 *
 *	(sent one RTT ago - delivered now) / sent one RTT ago
 *
 * reaches a threshold. Both are summed over a window of 3.5 initial RTTs, to outlast
 * changes of the RTT. Time is divided into bins of a tenth of the window; what lies
 * between two bins is interpolated, backwards. "One RTT ago" is the newest RTT.
 *
 * version	2		3			4
 * compares with	twice what was delivered one RTT ago	what was sent then
 * a bin is	bytes, 32 bits	all bytes until then, scaled to 16 bits
 * threshold	35 %		35 %			26 %
 * too few ACKs	cleared if all	reset if more than 2	reset if more than a window
 * at the exit	roll back	nothing			drain
 *
 * Roll back: cwnd loses what was delivered in the last two initial RTTs, in as many whole
 * bins as fit into them: five. Drain: cwnd falls to what was delivered in the last one,
 * in as many bins as cover it, three; one packet is sent for 16 delivered.
 *
 * Left out: resetting when the sender is application limited (version 3.1).
 */
#include <linux/slab.h>
#include "slow_start.h"
#include "slow_start_parameter.h"

#define WINDOW		10	/* bins */
#define BIN_PERCENT	35	/* of the initial RTT, so that a window is 3.5 of them */
#define MIN_CWND	10	/* an exit leaves no less than an initial window */
#define DRAIN_SHARE	16	/* packets delivered for one that is sent */

slow_start_parameter(version, 4, 2, 4, "behaviour of SEARCH 2, 3 or 4 (default 4)");

slow_start_parameter(threshold, 0, 0, 100,
		     "normalised difference that ends slow start, percent, 0: the version's");

slow_start_parameter(drain, 0, 0, 3,
		     "what the exit does to cwnd, 0: the version's, 1: nothing, 2: roll back, 3: drain");

slow_start_parameter(extra_bins, 15, 2, 200,
		     "bins kept beyond a window: an RTT that has grown to more of them blinds SEARCH (default 15)");

slow_start_parameter(missed_bins, 0, 0, 10000,
		     "bins without an ACK after which SEARCH begins anew, 0: the version's");

enum exit_action {
	EXIT_DEFAULT,
	EXIT_STAY,
	EXIT_ROLL_BACK,
	EXIT_DRAIN,
};

/**
 * struct search - state of a connection
 * @bins: the rings' memory, NULL: there was none, standard slow start
 * @acked: ring of delivered bytes
 * @sent: ring of sent bytes, version 4
 * @acked_base: bytes acknowledged when bin 0 began
 * @sent_base: bytes sent then
 * @acked_last: bytes acknowledged since then, when the newest bin was written
 * @initial_rtt_us: RTT when bin 0 began
 * @bin_us: length of a bin, 0: not begun
 * @bin_end_us: when the bin being filled ends, low half of tcp_mstamp
 * @index: newest bin
 * @slots: of @acked
 * @sent_slots: of @sent
 * @missed: bins passed at once after which all begins anew
 * @target: packets, where draining ends
 * @quantity: normalised difference at the exit, thousandths
 * @version: 2, 3 or 4
 * @threshold: percent
 * @action: enum exit_action
 * @scale: what 16-bit bins hold is bytes >> scale
 * @draining: the exit is decided, cwnd is falling
 * @credit: packets delivered that have not been answered by one sent
 */
struct search {
	void *bins;
	void *acked;
	u16 *sent;
	u64 acked_base;
	u64 sent_base;
	u64 acked_last;
	u32 initial_rtt_us;
	u32 bin_us;
	u32 bin_end_us;
	u32 index;
	u16 slots;
	u16 sent_slots;
	u16 missed;
	u16 quantity;
	u32 target;
	u8 version;
	u8 threshold;
	u8 action;
	u8 scale;
	u8 draining;
	u8 credit;
};

static void start(struct sock *sk)
{
	static const enum exit_action actions[] = {
		EXIT_ROLL_BACK, EXIT_STAY, EXIT_DRAIN,
	};
	static const u8 thresholds[] = { 35, 35, 26 };
	struct search *search = slow_start_state(sk);
	u32 of = READ_ONCE(version), extra = READ_ONCE(extra_bins), bytes;

	search->version = of;
	search->threshold = READ_ONCE(threshold) ?: thresholds[of - 2];
	search->action = READ_ONCE(drain) ?: actions[of - 2];
	search->slots = of == 4 ? WINDOW + 1 : WINDOW + extra;
	search->sent_slots = of == 4 ? WINDOW + extra + 1 : 0;
	search->missed = READ_ONCE(missed_bins);
	if (!search->missed) {
		if (of == 2)
			search->missed = search->slots - 1;
		else
			search->missed = of == 3 ? 2 : WINDOW;
	}
	bytes = of == 2 ? sizeof(u32) : sizeof(u16);
	search->bins = kcalloc(search->slots + search->sent_slots, bytes,
			       GFP_ATOMIC | __GFP_NOWARN);
	search->acked = search->bins;
	search->sent = (u16 *)search->bins + search->slots;
}

static void stop(struct sock *sk)
{
	struct search *search = slow_start_state(sk);

	kfree(search->bins);
	search->bins = NULL;
}

static void begin(struct sock *sk)
{
	struct search *search = slow_start_state(sk);
	u32 rtt_us = slow_start(sk)->last_rtt_us;

	search->initial_rtt_us = rtt_us;
	search->bin_us = max_t(u64, div_u64((u64)rtt_us * BIN_PERCENT, 100), 1);
	search->bin_end_us = slow_start_now_us(sk) + search->bin_us;
	search->index = 0;
	search->scale = 0;
	search->acked_base = tcp_sk(sk)->bytes_acked;
	search->sent_base = tcp_sk(sk)->bytes_sent;
	search->acked_last = 0;
	memset(search->bins, 0,
	       search->version == 2 ? search->slots * sizeof(u32) :
	       (search->slots + search->sent_slots) * sizeof(u16));
}

/* Version 2: every bin has its own bytes. */
static void add_bin(struct search *search, u32 passed, u64 acked)
{
	u32 *bins = search->acked, i;

	/* A ring that was passed as a whole holds nothing more: all of it is zero. */
	for (i = 1; i <= min_t(u32, passed, search->slots); i++)
		bins[(search->index + i) % search->slots] = 0;
	search->index += passed;
	bins[search->index % search->slots] =
		min_t(u64, acked - search->acked_last, U32_MAX);
}

/* Fill what was missed with the value before, then write the newest. */
static void add_total(u16 *ring, u32 slots, u32 index, u32 passed, u16 total)
{
	u16 before = ring[index % slots];
	u32 i;

	for (i = 1; i < min(passed, slots); i++)
		ring[(index + i) % slots] = before;
	ring[(index + passed) % slots] = total;
}

/* Versions 3 and 4: a bin has all bytes until its end. */
static void add_totals(struct search *search, u32 passed, u64 acked, u64 sent)
{
	u32 i, shift = 0, slots = search->slots + search->sent_slots;
	u64 most = max(acked, sent) >> search->scale;
	u16 *ring = search->bins;

	while (most >> shift > U16_MAX)
		shift++;
	if (shift) {
		search->scale += shift;
		for (i = 0; i < slots; i++)
			ring[i] >>= min(shift, 15U);
	}
	add_total(search->acked, search->slots, search->index, passed,
		  acked >> search->scale);
	if (search->sent_slots)
		add_total(search->sent, search->sent_slots, search->index,
			  passed, sent >> search->scale);
	search->index += passed;
}

/* Bytes (scaled) in the bins after @from, up to @to. */
static u64 acked_between(const struct search *search, u32 from, u32 to)
{
	const u16 *totals = search->acked;
	const u32 *bins = search->acked;
	u64 bytes = 0;

	if (search->version != 2)
		return (u16)(totals[to % search->slots] -
			     totals[from % search->slots]);
	while (from != to)
		bytes += bins[++from % search->slots];
	return bytes;
}

/* Bytes (scaled) sent in the window that ends with bin @to, or what stands for them. */
static u64 expected_until(const struct search *search, u32 to)
{
	u32 slots = search->sent_slots;

	if (search->version != 4)
		return 2 * acked_between(search, to - WINDOW, to);
	return (u16)(search->sent[to % slots] -
		     search->sent[(to - WINDOW) % slots]);
}

/* Is the difference at the threshold? Leaves it in @quantity. */
static bool is_past_capacity(struct search *search, u32 rtt_us)
{
	u32 back = rtt_us / search->bin_us, rest = rtt_us % search->bin_us;
	u32 slots = search->sent_slots ?: search->slots;
	u64 expected, delivered;
	u32 then;

	/* Blind: the RTT is longer than what the ring remembers. */
	if (back + WINDOW + 1 >= slots)
		return false;
	/* The window one RTT ago, and the bin before it, must lie in the past. */
	if (search->index <= back + WINDOW)
		return false;
	then = search->index - back;
	expected = div_u64(expected_until(search, then) * (search->bin_us - rest) +
			   expected_until(search, then - 1) * rest,
			   search->bin_us);
	delivered = acked_between(search, search->index - WINDOW, search->index);
	if (!expected || delivered > expected ||
	    (expected - delivered) * 100 < expected * search->threshold)
		return false;
	search->quantity = div64_u64((expected - delivered) * 1000, expected);
	return true;
}

/* Packets delivered in the last so many bins. */
static u32 delivered_packets(const struct sock *sk, u32 bins)
{
	const struct search *search = slow_start_state(sk);
	u64 bytes;

	bins = min_t(u32, bins, WINDOW);
	bytes = acked_between(search, search->index - bins, search->index);
	bytes <<= search->scale;
	return min_t(u64, div_u64(bytes, max(tcp_sk(sk)->mss_cache, 1U)),
		     U32_MAX);
}

/* The window without what the last two initial RTTs delivered. */
static u32 rolled_back(const struct sock *sk)
{
	const struct search *search = slow_start_state(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), bins, delivered;

	bins = div_u64(2ULL * search->initial_rtt_us, search->bin_us);
	delivered = delivered_packets(sk, bins);
	return cwnd > delivered + MIN_CWND ? cwnd - delivered : MIN_CWND;
}

/* What the last initial RTT delivered. */
static u32 drain_target(const struct sock *sk)
{
	const struct search *search = slow_start_state(sk);
	u32 bins = DIV_ROUND_UP(search->initial_rtt_us, search->bin_us);

	return max_t(u32, delivered_packets(sk, bins), MIN_CWND);
}

/* With a window of so many packets, or with the one there is, if that is smaller. */
static void leave_with(struct sock *sk, u32 packets)
{
	struct search *search = slow_start_state(sk);

	search->draining = 0;
	search->bin_us = 0;
	slow_start_roll_back(sk, packets, SLOW_START_DELIVERY_RATE,
			     search->quantity, search->threshold * 10);
}

static void decide(struct sock *sk)
{
	struct search *search = slow_start_state(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	switch (search->action) {
	case EXIT_ROLL_BACK:
		leave_with(sk, rolled_back(sk));
		return;
	case EXIT_DRAIN:
		search->target = drain_target(sk);
		if (cwnd <= search->target)
			break;
		search->draining = 1;
		search->credit = 0;
		slow_start_note(sk, SLOW_START_PHASE, SLOW_START_DELIVERY_RATE,
				search->quantity, search->threshold * 10);
		return;
	}
	leave_with(sk, cwnd);
}

static void drain_queue(struct sock *sk, u32 delivered)
{
	struct search *search = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd, packets = search->credit + delivered;

	search->credit = packets % DRAIN_SHARE;
	cwnd = tcp_packets_in_flight(tp) + packets / DRAIN_SHARE;
	cwnd = min(max(cwnd, search->target), tcp_snd_cwnd(tp));
	slow_start_set_cwnd(sk, cwnd);
	if (cwnd > search->target)
		return;
	slow_start_note(sk, SLOW_START_DRAIN_END, SLOW_START_DELIVERY_RATE,
			search->quantity, search->threshold * 10);
	leave_with(sk, cwnd);
}

static void end_bins(struct sock *sk)
{
	struct search *search = slow_start_state(sk);
	const struct slow_start *ss = slow_start(sk);
	u64 acked = tcp_sk(sk)->bytes_acked - search->acked_base;
	s32 late_us = slow_start_now_us(sk) - search->bin_end_us;
	u32 passed;

	/* A bin ends no further ahead than it is long, or the clock has wrapped. */
	if (late_us < -(s64)search->bin_us) {
		begin(sk);
		return;
	}
	if (late_us < 0)
		return;
	passed = late_us / search->bin_us + 1;
	if ((passed > search->missed && search->version != 2) ||
	    search->index > S32_MAX) {
		begin(sk);
		return;
	}
	search->bin_end_us += passed * search->bin_us;
	if (search->version == 2 && passed > search->missed) {
		memset(search->bins, 0, search->slots * sizeof(u32));
		search->index += passed;
	} else if (search->version == 2) {
		add_bin(search, passed, acked);
	} else {
		add_totals(search, passed, acked,
			   tcp_sk(sk)->bytes_sent - search->sent_base);
	}
	search->acked_last = acked;
	if (is_past_capacity(search, ss->last_rtt_us))
		decide(sk);
}

static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct search *search = slow_start_state(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	/* During a recovery cwnd is below ssthresh without being in slow start. */
	if (!search->bins || !tcp_in_slow_start(tcp_sk(sk)) ||
	    state == TCP_CA_CWR || state == TCP_CA_Recovery ||
	    slow_start(sk)->last_rtt_us == SLOW_START_NO_RTT)
		return;
	if (search->draining)
		drain_queue(sk, sample->pkts_acked);
	else if (search->bin_us)
		end_bins(sk);
	else
		begin(sk);
}

static u32 grow(struct sock *sk, u32 acked)
{
	const struct search *search = slow_start_state(sk);

	return search->draining ? 0 : tcp_slow_start(tcp_sk(sk), acked);
}

static void forget(struct sock *sk)
{
	struct search *search = slow_start_state(sk);

	search->bin_us = 0;
	search->draining = 0;
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	forget(sk);
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	/* Sending after a pause shorter than the RTO: missed bins take care of it. */
	if (why != SLOW_START_TX_START)
		forget(sk);
}

static const struct slow_start_ops search = {
	.name		= "search",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct search),
	.start		= start,
	.stop		= stop,
	.sample		= sample,
	.grow		= grow,
	.congestion	= congestion,
	.restart	= restart,
};

module_slow_start(search);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: SEARCH");
