// SPDX-License-Identifier: GPL-2.0-only
/*
 * Starting from what other connections to the same destination have learnt.
 *
 * Each network namespace has a table of destinations: window, ssthresh and smoothed RTT
 * of the connection that ended last (its FIN was acknowledged, or its socket is gone),
 * for lifetime_s seconds, and the connections that run now. A new one takes from it
 *
 * - with share=1 and others running, its share of their windows together, as in the
 *   Congestion Manager (RFC 3124): one of n+1 parts, which the n others give up with
 *   their next ACK, so that the sum stays what it was;
 * - else, with window=1, the remembered window and ssthresh: fast start (Padmanabhan and
 *   Katz). A loss in this first flight means that the memory is out of date: it is
 *   forgotten, and slow start begins anew from the initial window, up to half of the
 *   window that was too large;
 * - with window=0 the remembered ssthresh alone.
 *
 * A flight that starts at once is spread over the RTT (paced=1). prefix_ipv4 and
 * prefix_ipv6 let neighbouring hosts share what is known, as SPAND does.
 *
 * Remembered is the window of congestion avoidance; half of it where a connection ended
 * in slow start, since that much has been acknowledged; ssthresh in a recovery.
 *
 * Left out: marking the first flight droppable (no router would look); SPAND's server
 * of a whole network, and passive measurement; the scheduler of the Congestion Manager,
 * and handing on the window of a connection that ends (a burst for the others).
 */
#include <linux/sizes.h>
#include "destination.h"
#include "slow_start.h"
#include "slow_start_parameter.h"
#include "slow_start_table.h"

slow_start_parameter(window, 1, 0, 1,
		     "1: start with the remembered window; 0: only with the remembered ssthresh (default 1)");
slow_start_parameter(share, 0, 0, 1,
		     "1: take a share of the windows of connections running to the destination (default 0)");
slow_start_parameter(paced, 1, 0, 1,
		     "1: spread a window that starts at once over the RTT (default 1)");
slow_start_parameter(max_window, 1000000, 1, 1000000,
		     "largest window to start with, packets (default 1000000)");
slow_start_parameter(lifetime_s, 600, 0, 86400,
		     "seconds for which an ended connection is remembered (default 600)");
slow_start_parameter(prefix_ipv4, 32, 0, 32,
		     "leading bits of an IPv4 address that make a destination (default 32)");
slow_start_parameter(prefix_ipv6, 128, 0, 128,
		     "leading bits of an IPv6 address that make a destination (default 128)");

static unsigned int cached_table_id;

/**
 * struct cached - state of a connection
 * @others: link in route->members
 * @route: NULL if the table had no room
 * @cwnd: as of the last ACK, less what was promised; others read and lower it
 * @ssthresh: as of the last ACK
 * @srtt_us: as of the last ACK
 * @promised: packets of cwnd that newer connections have taken, under the lock
 * @initial: the kernel's initial window, packets
 * @jump: packets that the connection started with, 0: none, or all acknowledged
 * @jump_end: sequence number after them
 * @out: all of them have been sent
 * @remembered: the window was remembered, not shared
 * @retreating: they were too many, and a recovery goes on
 */
struct cached {
	struct list_head others;
	struct route *route;
	u32 cwnd;
	u32 ssthresh;
	u32 srtt_us;
	u32 promised;
	u32 initial;
	u32 jump;
	u32 jump_end;
	u8 out : 1,
	   remembered : 1,
	   retreating : 1;
};

/* What the table has for a new connection; window is 0 for nothing. */
struct offer {
	u32 window;
	u32 ssthresh;
	u32 srtt_us;
	bool remembered;
};

static struct destination_table *table_of(const struct sock *sk)
{
	return net_generic(sock_net(sk), cached_table_id);
}

/* Each member promises one of count + 1 parts of its window. */
static void take_share(struct route *route, struct offer *offer)
{
	u32 parts = route->count + 1, part;
	u64 window = 0, ssthresh = 0;
	struct cached *member;

	list_for_each_entry(member, &route->members, others) {
		part = member->cwnd / parts;
		WRITE_ONCE(member->cwnd, member->cwnd - part);
		WRITE_ONCE(member->promised, member->promised + part);
		window += part;
		ssthresh += member->ssthresh >= TCP_INFINITE_SSTHRESH ?
			    TCP_INFINITE_SSTHRESH : member->ssthresh / parts;
	}
	offer->window = clamp_t(u64, window, 1, U32_MAX);
	offer->ssthresh = clamp_t(u64, ssthresh, 2, TCP_INFINITE_SSTHRESH);
}

static bool is_fresh(const struct route *route)
{
	return route->known &&
	       time_before(jiffies, route->learnt + READ_ONCE(lifetime_s) * HZ);
}

static void publish(struct sock *sk)
{
	struct cached *cached = slow_start_state(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), promised = READ_ONCE(cached->promised);

	WRITE_ONCE(cached->cwnd, cwnd > promised ? cwnd - promised : 1);
	WRITE_ONCE(cached->ssthresh, tcp_sk(sk)->snd_ssthresh);
	cached->srtt_us = tcp_sk(sk)->srtt_us >> 3;
}

static struct offer join(struct sock *sk)
{
	struct destination to = destination_of(sk, READ_ONCE(prefix_ipv4),
					       READ_ONCE(prefix_ipv6));
	struct cached *cached = slow_start_state(sk);
	struct destination_table *table = table_of(sk);
	struct offer offer = {};
	struct route *route;

	spin_lock_bh(&table->lock);
	route = route_to(table, &to);
	if (route && !slow_start(sk)->joined) {
		if (READ_ONCE(share) && route->count) {
			take_share(route, &offer);
			offer.srtt_us = tcp_sk(sk)->srtt_us >> 3;
		} else if (is_fresh(route)) {
			offer.window = route->window;
			offer.ssthresh = route->ssthresh;
			offer.srtt_us = route->srtt_us;
			offer.remembered = true;
		}
	}
	if (route) {
		cached->route = route;
		cached->cwnd = offer.window ?: tcp_snd_cwnd(tcp_sk(sk));
		cached->ssthresh = offer.window ? offer.ssthresh :
				   tcp_sk(sk)->snd_ssthresh;
		list_add_tail(&cached->others, &route->members);
		route->count++;
	}
	spin_unlock_bh(&table->lock);
	return offer;
}

static void jump(struct sock *sk, const struct offer *offer)
{
	struct cached *cached = slow_start_state(sk);
	u32 most = READ_ONCE(max_window);
	struct tcp_sock *tp = tcp_sk(sk);

	/* Sequence numbers compare within 2 GB. */
	slow_start_set_cwnd(sk, min3(offer->window, most,
				     SZ_1G / max(tp->mss_cache, 1U)));
	cached->jump = tcp_snd_cwnd(tp);
	cached->jump_end = tp->snd_nxt + cached->jump * tp->mss_cache;
	cached->remembered = offer->remembered;
	if (READ_ONCE(paced) && offer->srtt_us && cached->jump > cached->initial)
		slow_start_pace(sk, slow_start_rate(sk, cached->jump,
						    offer->srtt_us));
	slow_start_note(sk, SLOW_START_JUMP, SLOW_START_CACHED, cached->jump, most);
}

static void start(struct sock *sk)
{
	struct cached *cached = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct offer offer;

	cached->initial = tcp_snd_cwnd(tp);
	offer = join(sk);
	if (!offer.window)
		return;
	if (offer.ssthresh < TCP_INFINITE_SSTHRESH) {
		tp->snd_ssthresh = max(offer.ssthresh, 2U);
		slow_start_note(sk, SLOW_START_ESTIMATE, SLOW_START_CACHED,
				tp->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	}
	/* A share may be less than the initial window, a memory is not used then. */
	if (!offer.remembered || (READ_ONCE(window) && offer.window > cached->initial))
		jump(sk, &offer);
	publish(sk);
}

static void learn(const struct cached *cached)
{
	struct route *route = cached->route;

	route->known = true;
	route->learnt = jiffies;
	route->ssthresh = cached->ssthresh;
	route->srtt_us = cached->srtt_us;
	route->window = cached->cwnd;
	if (cached->cwnd < cached->ssthresh)
		route->window = max(cached->cwnd / 2, 1U);
}

static void leave(struct sock *sk)
{
	struct destination_table *table = table_of(sk);
	struct cached *cached = slow_start_state(sk);

	if (!cached->route)
		return;
	spin_lock_bh(&table->lock);
	/* Shorter connections have seen nothing of the route. */
	if (slow_start(sk)->round >= 2)
		learn(cached);
	list_del(&cached->others);
	cached->route->count--;
	cached->promised = 0;
	spin_unlock_bh(&table->lock);
	cached->route = NULL;
}

/* The first flight leaves at a rate; when it is out, the ACKs are clock enough. */
static void sample(struct sock *sk, const struct ack_sample *sample)
{
	struct cached *cached = slow_start_state(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	/* The peer may keep its own direction open for long after our FIN. */
	if (sk->sk_shutdown & SEND_SHUTDOWN && tp->snd_una == tp->write_seq)
		leave(sk);
	if (!cached->jump || cached->retreating)
		return;
	/* Three rounds show that there is no more to send. */
	if (slow_start(sk)->round >= 3 && before(tp->snd_nxt, cached->jump_end))
		cached->jump_end = tp->snd_nxt;
	if (!cached->out && !before(tp->snd_nxt, cached->jump_end)) {
		cached->out = 1;
		slow_start_unpace(sk);
		slow_start_note(sk, SLOW_START_JUMP_END, SLOW_START_CACHED,
				cached->jump, cached->jump);
	}
	if (!before(tp->snd_una, cached->jump_end))
		cached->jump = 0;
}

/* Hand over what newer connections have taken. */
static void hand_over(struct sock *sk)
{
	struct cached *cached = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct destination_table *table = table_of(sk);
	bool growing = tcp_in_slow_start(tp);
	u32 cwnd = tcp_snd_cwnd(tp), promised;

	spin_lock_bh(&table->lock);
	promised = cached->promised;
	cached->promised = 0;
	spin_unlock_bh(&table->lock);
	slow_start_set_cwnd(sk, cwnd > promised ? cwnd - promised : 1);
	if (!growing)
		tp->snd_ssthresh = max(min(tp->snd_ssthresh, tcp_snd_cwnd(tp)), 2U);
	slow_start_note(sk, SLOW_START_SHARE, SLOW_START_CACHED, promised, cwnd);
}

static void limit(struct sock *sk)
{
	const struct cached *cached = slow_start_state(sk);

	if (unlikely(READ_ONCE(cached->promised)))
		hand_over(sk);
	publish(sk);
}

static u32 ssthresh(struct sock *sk)
{
	struct cached *cached = slow_start_state(sk);

	cached->retreating = cached->jump && cached->remembered;
	return cached->retreating ? max(cached->initial, 2U) : 0;
}

static void forget(struct sock *sk)
{
	struct cached *cached = slow_start_state(sk);
	struct destination_table *table = table_of(sk);

	if (!cached->route)
		return;
	spin_lock_bh(&table->lock);
	cached->route->known = false;
	spin_unlock_bh(&table->lock);
}

static void congestion(struct sock *sk, enum slow_start_reason why,
		       bool in_slow_start)
{
	struct cached *cached = slow_start_state(sk);
	struct destination_table *table = table_of(sk);

	/* The windows together have shrunk: nobody takes a part of the old one. */
	spin_lock_bh(&table->lock);
	cached->promised = 0;
	spin_unlock_bh(&table->lock);
	slow_start_unpace(sk);
	if (cached->retreating) {
		forget(sk);
		slow_start_note(sk, SLOW_START_RETREAT, SLOW_START_CACHED,
				cached->jump, cached->initial);
	} else {
		cached->jump = 0;
	}
	WRITE_ONCE(cached->ssthresh, tcp_sk(sk)->snd_ssthresh);
	WRITE_ONCE(cached->cwnd, tcp_sk(sk)->snd_ssthresh);
}

/* After a flight that was too large: slow start up to half of it. */
static void begin_anew(struct sock *sk)
{
	struct cached *cached = slow_start_state(sk);

	if (!cached->retreating)
		return;
	tcp_sk(sk)->snd_ssthresh = max(cached->jump / 2, 2U);
	cached->retreating = 0;
	cached->jump = 0;
}

static void undo(struct sock *sk)
{
	struct cached *cached = slow_start_state(sk);

	cached->retreating = 0;
	cached->jump = 0;
}

static void restart(struct sock *sk, enum slow_start_restart why)
{
	if (why == SLOW_START_AFTER_RTO)
		begin_anew(sk);
}

static const struct slow_start_ops cached = {
	.name		= "cached",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct cached),
	.start		= start,
	.stop		= leave,
	.sample		= sample,
	.limit		= limit,
	.ssthresh	= ssthresh,
	.congestion	= congestion,
	.recovered	= begin_anew,
	.undo		= undo,
	.restart	= restart,
};

module_slow_start_table(cached, struct destination_table, destination_table_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: start from what other connections have learnt");
