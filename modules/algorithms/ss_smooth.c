// SPDX-License-Identifier: GPL-2.0-only
/*
 * Smooth start (Wang, Xin, Reeves and Shin, A Simple Refinement of Slow-start of TCP
 * Congestion Control, ISCC 2000), reconstructed: the papers at hand only name it.
 *
 * Slow start overshoots a known ssthresh by up to a whole window in its last round.
 * Smooth start grows as usual up to half of ssthresh, and then ever more slowly: one
 * packet for 2^k acknowledged while cwnd is at least ssthresh * (1 - 2^-k), for k up
 * to depth. The last step goes on to ssthresh.
 *
 * It needs a threshold: init_ssthresh, or the one the kernel has from its metrics or
 * the route. Without one (ssthresh is infinite) it is standard slow start. After a
 * timeout the threshold is half of the window that was lost.
 */
#include "slow_start.h"
#include "slow_start_grow.h"
#include "slow_start_parameter.h"

slow_start_parameter(init_ssthresh, 0, 0, 0x7fffffff,
		     "initial ssthresh in packets, at least 2, 0: the kernel's metrics (default 0)");

slow_start_parameter(depth, 3, 0, 16,
		     "number of steps, each with half the growth of the one before (default 3)");

static void start(struct sock *sk)
{
	u32 threshold = READ_ONCE(init_ssthresh);

	if (threshold && !slow_start(sk)->joined)
		tcp_sk(sk)->snd_ssthresh = max(threshold, 2U);
}

/* The step that a window is in, and the window at which the next one begins. */
static u32 step_of(u32 cwnd, u32 threshold, u32 steps, u32 *end)
{
	u32 distance = threshold - cwnd;
	u32 step = 0;

	while (step < steps && distance <= threshold >> (step + 1))
		step++;
	*end = step < steps ? threshold - (threshold >> (step + 1)) : threshold;
	return step;
}

static u32 grow(struct sock *sk, u32 acked)
{
	u32 steps = READ_ONCE(depth), threshold = tcp_sk(sk)->snd_ssthresh;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 step, end;

	if (slow_start_is_initial(sk))
		return tcp_slow_start(tp, acked);
	while (acked && tcp_in_slow_start(tp)) {
		step = step_of(tcp_snd_cwnd(tp), threshold, steps, &end);
		acked = slow_start_grow(sk, 1U << step, acked, end);
	}
	return acked;
}

static const struct slow_start_ops smooth = {
	.name	= "smooth",
	.owner	= THIS_MODULE,
	.start	= start,
	.grow	= grow,
};

module_slow_start(smooth);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: smooth start");
