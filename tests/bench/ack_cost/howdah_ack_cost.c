// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a congestion control costs an ACK in slow start, in cycles of the processor's
 * time stamp counter, which goes on in virtual time.
 *
 * A socket that is not connected is given each algorithm in turn, and its hooks are
 * called in the kernel's order for one ACK a packet over rounds that double: ACKs
 * 12 us apart, RTT 100 ms, no queue, from 10 to 2048 packets, so that nobody leaves
 * slow start. Repetitions of all algorithms are interleaved; the least is kept,
 * because whatever disturbs adds. "none" calls no hook and doubles cwnd itself: what
 * the loop costs.
 */
#include <linux/module.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include "slow_start.h"

#define NAMES_MAX	80
#define RTT_US		100000
#define SPACING_US	12
#define MSS		1448
#define CWND_END	2048

static char *names[NAMES_MAX];
static unsigned int names_count;
module_param_array(names, charp, &names_count, 0444);
MODULE_PARM_DESC(names, "congestion controls to measure");

static unsigned int repetitions = 100;
module_param(repetitions, uint, 0444);
MODULE_PARM_DESC(repetitions, "slow starts of each");

struct cost {
	u64 least_cycles;
	u32 acks;
	u32 cwnd;
	u32 left;
	size_t allocated_bytes;
};

static struct cost costs[NAMES_MAX];

static void only_grow(struct sock *sk, u32 ack, u32 acked)
{
	tcp_sk(sk)->snd_cwnd += acked;
}

static const struct tcp_congestion_ops none = {
	.cong_avoid = only_grow,
};

/* The kernel's order of calls for one ACK that acknowledges one packet. */
static void one_ack(struct sock *sk, const struct tcp_congestion_ops *ca)
{
	struct ack_sample sample = { .pkts_acked = 1, .rtt_us = RTT_US };
	struct rate_sample rate = { .acked_sacked = 1, .delivered = 1,
				    .rtt_us = RTT_US, .prior_in_flight = 1 };
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->in_ack_event)
		ca->in_ack_event(sk, 0);
	tp->snd_una += MSS;
	tp->bytes_acked += MSS;
	tp->delivered++;
	sample.in_flight = tp->packets_out;
	if (ca->pkts_acked)
		ca->pkts_acked(sk, &sample);
#ifdef HAVE_CONG_CONTROL_FLAG
	if (ca->cong_control)
		ca->cong_control(sk, tp->snd_una, 0, &rate);
#else
	if (ca->cong_control)
		ca->cong_control(sk, &rate);
#endif
	else
		ca->cong_avoid(sk, tp->snd_una, 1);
	tp->packets_out = tcp_snd_cwnd(tp);
	tp->max_packets_out = tp->packets_out;
	tp->is_cwnd_limited = 1;
	tp->bytes_sent += tp->snd_una + tp->packets_out * MSS - tp->snd_nxt;
	tp->snd_nxt = tp->snd_una + tp->packets_out * MSS;
}

static void begin(struct sock *sk, const struct tcp_congestion_ops *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	memset(inet_csk(sk)->icsk_ca_priv, 0, sizeof(inet_csk(sk)->icsk_ca_priv));
	tcp_snd_cwnd_set(tp, TCP_INIT_CWND);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->snd_cwnd_clamp = ~0;
	tp->snd_cwnd_cnt = 0;
	tp->mss_cache = MSS;
	tp->srtt_us = RTT_US << 3;
	/* What jumps may fill at once. */
	tp->snd_wnd = 64 * MSS;
	tp->snd_una = 1;
	tp->snd_nxt = 1;
	tp->bytes_acked = 0;
	tp->bytes_sent = 0;
	tp->data_segs_out = 0;
	tp->tcp_mstamp += USEC_PER_SEC;
	if (ca->init)
		ca->init(sk);
	tp->packets_out = tcp_snd_cwnd(tp);
	tp->max_packets_out = tp->packets_out;
	tp->is_cwnd_limited = 1;
	tp->snd_nxt += tp->packets_out * MSS;
	tp->data_segs_out = tp->packets_out;
}

static u32 one_round(struct sock *sk, const struct tcp_congestion_ops *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 i, acks = tp->packets_out;

	tp->tcp_mstamp += RTT_US - (u64)acks * SPACING_US;
	for (i = 0; i < acks; i++) {
		tp->tcp_mstamp += SPACING_US;
		one_ack(sk, ca);
	}
	return acks;
}

static void measure(struct sock *sk, const struct tcp_congestion_ops *ca,
		    struct cost *cost)
{
	u32 acks = 0, rounds = 0;
	u64 begun, cycles;
	u8 *state;

	begin(sk, ca);
	begun = __builtin_ia32_rdtsc();
	do {
		acks += one_round(sk, ca);
	} while (tcp_snd_cwnd(tcp_sk(sk)) < CWND_END && acks < CWND_END && ++rounds < 100);
	cycles = __builtin_ia32_rdtsc() - begun;
	if (!cost->acks || cycles / acks < cost->least_cycles / cost->acks) {
		cost->least_cycles = cycles;
		cost->acks = acks;
	}
	cost->cwnd = tcp_snd_cwnd(tcp_sk(sk));
	cost->left = !tcp_in_slow_start(tcp_sk(sk));
	if (ca->owner && !strncmp(module_name(ca->owner), "ss_", 3)) {
		state = slow_start(sk)->state;
		if (state < (u8 *)slow_start(sk) ||
		    state >= (u8 *)slow_start(sk) + ICSK_CA_PRIV_SIZE)
			cost->allocated_bytes = ksize(state);
	}
	if (ca->release)
		ca->release(sk);
	tcp_sk(sk)->packets_out = 0;
}

static int measure_all(struct socket *sock)
{
	struct sock *sk = sock->sk;
	unsigned int i, repetition;
	bool is_none;
	int error;

	for (repetition = 0; repetition < repetitions; repetition++) {
		for (i = 0; i < names_count; i++) {
			is_none = !strcmp(names[i], "none");
			error = is_none ? 0 :
				sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION,
						      KERNEL_SOCKPTR(names[i]),
						      strlen(names[i]));
			if (error) {
				pr_err("howdah_ack_cost: %s: %d\n", names[i], error);
				return error;
			}
			lock_sock(sk);
			local_bh_disable();
			measure(sk, is_none ? &none : inet_csk(sk)->icsk_ca_ops, &costs[i]);
			local_bh_enable();
			release_sock(sk);
		}
	}
	return 0;
}

static int __init load(void)
{
	struct socket *sock;
	unsigned int i;
	int error;

	error = sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (error)
		return error;
	error = measure_all(sock);
	/* The last algorithm was released here already. */
	memset(inet_csk(sock->sk)->icsk_ca_priv, 0,
	       sizeof(inet_csk(sock->sk)->icsk_ca_priv));
	sock_release(sock);
	for (i = 0; !error && i < names_count; i++)
		pr_notice("ack_cost %s %llu %u %u %u %zu\n", names[i],
			  costs[i].least_cycles, costs[i].acks, costs[i].cwnd,
			  costs[i].left, costs[i].allocated_bytes);
	return error;
}

static void __exit unload(void)
{
	/* Everything was done and printed when it was loaded. */
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: what congestion controls cost an ACK");
