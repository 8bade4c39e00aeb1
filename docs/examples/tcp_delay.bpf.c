// SPDX-License-Identifier: GPL-2.0
/*
 * Reno whose slow start ends when a round's smallest RTT shows a queue: a
 * congestion control in BPF, for the vm engine.
 *
 * vmlinux.h is made of the run's kernel; what it declares needs no include.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

/* What the kernel offers to congestion controls in BPF. */
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

#define before(seq1, seq2) ((__s32)((__u32)(seq1) - (__u32)(seq2)) < 0)

struct delay {
	__u32 round_end;	/* snd_nxt when the round began */
	__u32 round_us;		/* the smallest RTT of the round, 0: none yet */
	__u32 base_us;		/* the smallest RTT of the connection */
};

/* The RTT by which a queue shows: an eighth, between 4 and 16 ms. */
static __always_inline __u32 allowed_us(__u32 base_us)
{
	__u32 eighth = base_us >> 3;

	if (eighth < 4000)
		return 4000;
	return eighth > 16000 ? 16000 : eighth;
}

static __always_inline struct delay *delay_of(struct sock *sk)
{
	return (struct delay *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

SEC("struct_ops/delay_init")
void BPF_PROG(delay_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct delay *delay = delay_of(sk);

	delay->round_end = tp->snd_nxt;
	delay->round_us = 0;
	delay->base_us = 0;
}

SEC("struct_ops/delay_pkts_acked")
void BPF_PROG(delay_pkts_acked, struct sock *sk,
	      const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct delay *delay = delay_of(sk);
	__s32 rtt_us = sample->rtt_us;
	__u32 rtt;

	if (rtt_us <= 0)
		return;
	rtt = rtt_us;
	if (!before(tp->snd_una, delay->round_end)) {
		delay->round_end = tp->snd_nxt;
		delay->round_us = 0;
	}
	if (!delay->base_us || rtt < delay->base_us)
		delay->base_us = rtt;
	if (!delay->round_us || rtt < delay->round_us)
		delay->round_us = rtt;
}

SEC("struct_ops/delay_cong_avoid")
void BPF_PROG(delay_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct delay *delay = delay_of(sk);

	if (tp->snd_cwnd < tp->snd_ssthresh &&
	    delay->round_us > delay->base_us + allowed_us(delay->base_us))
		tp->snd_ssthresh = tp->snd_cwnd;
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/delay_ssthresh")
__u32 BPF_PROG(delay_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/delay_undo_cwnd")
__u32 BPF_PROG(delay_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops delay = {
	.init = (void *)delay_init,
	.pkts_acked = (void *)delay_pkts_acked,
	.cong_avoid = (void *)delay_cong_avoid,
	.ssthresh = (void *)delay_ssthresh,
	.undo_cwnd = (void *)delay_undo_cwnd,
	.name = "delay",
};
