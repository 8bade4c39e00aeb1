// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_rated: a control that keeps to a rate, 8 Mbit/s, and never sets ssthresh. Its window
 * is wide and limits nothing.
 */
#include <linux/module.h>
#include <net/tcp.h>

#define RATE	1000000	/* bytes per second */
#define WINDOW	2000	/* packets */

static void rated_init(struct sock *sk)
{
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	WRITE_ONCE(sk->sk_pacing_rate, RATE);
	tcp_snd_cwnd_set(tcp_sk(sk), WINDOW);
}

static void rated_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample)
{
	WRITE_ONCE(sk->sk_pacing_rate, RATE);
	tcp_snd_cwnd_set(tcp_sk(sk), WINDOW);
}

static u32 rated_ssthresh(struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

static u32 rated_undo(struct sock *sk)
{
	return WINDOW;
}

static struct tcp_congestion_ops rated __read_mostly = {
	.name		= "rated",
	.owner		= THIS_MODULE,
	.init		= rated_init,
	.ssthresh	= rated_ssthresh,
	.undo_cwnd	= rated_undo,
	.cong_control	= rated_control,
};

static int __init rated_load(void)
{
	return tcp_register_congestion_control(&rated);
}

static void __exit rated_unload(void)
{
	tcp_unregister_congestion_control(&rated);
}

module_init(rated_load);
module_exit(rated_unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: test module that keeps to a rate");
