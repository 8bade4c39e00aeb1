// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_mine: a congestion control of your own, in forty lines.
 *
 * Reno, but slow start grows by half of what Reno's grows: one packet for
 * every two acknowledged, so the window is multiplied by 1.5 a round.
 */
#include <linux/module.h>
#include <net/tcp.h>

struct mine {
	u32 odd;	/* acknowledged packets not yet paid for, 0 or 1 */
};

static void mine_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mine *mine = inet_csk_ca(sk);
	u32 credit;

	if (!tcp_is_cwnd_limited(sk))
		return;

	if (tcp_in_slow_start(tp)) {
		credit = acked + mine->odd;
		mine->odd = credit & 1;
		tcp_slow_start(tp, credit / 2);
		return;
	}
	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static struct tcp_congestion_ops mine_ops __read_mostly = {
	.name		= "mine",
	.owner		= THIS_MODULE,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.cong_avoid	= mine_cong_avoid,
};

static int __init mine_register(void)
{
	BUILD_BUG_ON(sizeof(struct mine) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&mine_ops);
}

static void __exit mine_unregister(void)
{
	tcp_unregister_congestion_control(&mine_ops);
}

module_init(mine_register);
module_exit(mine_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Reno with a slower slow start");
