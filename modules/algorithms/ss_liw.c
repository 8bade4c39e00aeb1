// SPDX-License-Identifier: GPL-2.0-only
/*
 * A large initial window of 64 KB, one of the baselines of the Adaptive Start paper
 * (TCP Westwood Adaptive Start, figure 12).
 *
 * 65535 bytes are as much as a receiver can offer without window scaling: 44 segments
 * of 1460 bytes, 45 of 1448. With slow_start=0 that is all the start there is, as in
 * the paper: ssthresh is the initial window, and growth is linear from the beginning.
 * With slow_start=1 slow start goes on from there.
 *
 * After an idle time the restart window is the smaller of this initial window and cwnd
 * (RFC 5681, section 4.1), where the kernel would take its own initial window.
 *
 * Left out: nothing spreads the burst. The receiver must offer as much in its first
 * window (route attribute initrwnd); a smaller offer bounds the first flight, not cwnd.
 */
#include "slow_start.h"
#include "slow_start_parameter.h"

slow_start_parameter(bytes, 65535, 1, 1073741824,
		     "initial window in bytes, rounded down to whole segments, at least one (default 65535)");

slow_start_parameter_named(slow_start, go_on, 1, 0, 1,
			   "1: slow start from there; 0: ssthresh is the initial window (default 1)");

struct liw {
	u32 window;	/* initial, packets */
	u32 restart;	/* packets after an idle time, 0: there was none */
};

static void start(struct sock *sk)
{
	struct liw *liw = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	liw->window = max(READ_ONCE(bytes) / max(tp->mss_cache, 1U), 1U);
	if (slow_start(sk)->joined)
		return;
	slow_start_set_cwnd(sk, liw->window);
	if (READ_ONCE(go_on))
		return;
	slow_start_exit(sk, SLOW_START_INITIAL_SSTHRESH, tcp_snd_cwnd(tp),
			tcp_snd_cwnd(tp));
}

/* TCP tells of the idle time before it cuts cwnd, and then that it sends again. */
static void restart(struct sock *sk, enum slow_start_restart why)
{
	struct liw *liw = slow_start_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (why == SLOW_START_IDLE) {
		liw->restart = min(liw->window, tcp_snd_cwnd(tp));
		return;
	}
	if (why == SLOW_START_TX_START && tcp_snd_cwnd(tp) < liw->restart)
		slow_start_set_cwnd(sk, liw->restart);
	liw->restart = 0;
}

static const struct slow_start_ops liw = {
	.name		= "liw",
	.owner		= THIS_MODULE,
	.state_bytes	= sizeof(struct liw),
	.start		= start,
	.restart	= restart,
};

module_slow_start(liw);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: large initial window");
