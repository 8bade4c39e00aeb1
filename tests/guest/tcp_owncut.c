// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_owncut: Reno, but slow start ends at a window of 1750 packets, half of which is
 * taken back at once. On a path that holds 1684 packets that is too late: some are lost,
 * and TCP learns of it a round trip after the cut.
 */
#include <linux/module.h>
#include <net/tcp.h>

#define LIMIT	1750	/* packets */

static void owncut_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_in_slow_start(tp) || tcp_snd_cwnd(tp) < LIMIT ||
	    inet_csk(sk)->icsk_ca_state != TCP_CA_Open)
		return;
	tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp) / 2);
	tp->snd_ssthresh = tcp_snd_cwnd(tp);
}

static struct tcp_congestion_ops owncut __read_mostly = {
	.name		= "owncut",
	.owner		= THIS_MODULE,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.cong_avoid	= tcp_reno_cong_avoid,
	.pkts_acked	= owncut_acked,
};

static int __init owncut_load(void)
{
	return tcp_register_congestion_control(&owncut);
}

static void __exit owncut_unload(void)
{
	tcp_unregister_congestion_control(&owncut);
}

module_init(owncut_load);
module_exit(owncut_unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: test module that cuts its own window");
