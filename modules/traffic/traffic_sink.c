// SPDX-License-Identifier: GPL-2.0
/*
 * The eager sink: what arrives is consumed in softirq context, at the instant at which a process that waits in recv()
 * would wake up, and without switching to one.
 *
 * The segment is never consumed inside its own processing. tcp_rcv_established() decides about its ACK first, with the
 * segment still in the receive queue, and calls sk_data_ready() last; a reader then decides again, with an empty queue,
 * in tcp_cleanup_rbuf(). A tasklet keeps that order, and runs when the device's softirq has ended.
 *
 * The queue is consumed segment by segment. tcp_recvmsg() calls tcp_rcv_space_adjust() after each, which subtracts
 * what is still queued from what was read; one call for all that a filled hole has released would measure more, size
 * the receive buffer differently, and with it how long every segment is acknowledged (tcp_grow_window()).
 */

#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <net/tcp.h>

#include "traffic.h"

static int sink_actor(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	return len;
}

/* Caller holds the socket lock or its spinlock. */
static void sink_consume(struct traffic_socket *traffic)
{
	struct sock *sk = traffic->sock->sk;
	read_descriptor_t desc = { .count = 0 };	/* end after one segment */
	int bytes;

	do {
		bytes = tcp_read_sock(sk, &desc, sink_actor);
		if (bytes > 0)
			traffic_count(traffic, bytes);
	} while (bytes > 0 && !skb_queue_empty(&sk->sk_receive_queue));
	if (sk->sk_shutdown & RCV_SHUTDOWN && !sk->sk_err && skb_queue_empty(&sk->sk_receive_queue))
		WRITE_ONCE(traffic->state, TRAFFIC_DONE);
}

/* Whether all that was asked for has come, and the other end has not closed: then we do, as a client would. */
static bool sink_has_all(const struct traffic_socket *traffic)
{
	return traffic->limit_bytes && traffic->bytes >= traffic->limit_bytes && traffic->state == TRAFFIC_OPEN;
}

static void sink_tasklet(struct tasklet_struct *tasklet)
{
	struct traffic_socket *traffic = from_tasklet(traffic, tasklet, tasklet);
	struct sock *sk = traffic->sock->sk;

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk))
		sink_consume(traffic);
	if (sock_owned_by_user(sk) || sink_has_all(traffic))
		queue_work(traffic_queue, &traffic->work);
	bh_unlock_sock(sk);
}

static void sink_work(struct work_struct *work)
{
	struct traffic_socket *traffic = container_of(work, struct traffic_socket, work);
	struct sock *sk = traffic->sock->sk;

	lock_sock(sk);
	sink_consume(traffic);
	release_sock(sk);
	if (sink_has_all(traffic))
		kernel_sock_shutdown(traffic->sock, SHUT_WR);
}

void traffic_sink_data_ready(struct sock *sk)
{
	struct traffic_socket *traffic;

	rcu_read_lock();
	traffic = rcu_dereference_sk_user_data(sk);
	if (traffic)
		tasklet_schedule(&traffic->tasklet);
	rcu_read_unlock();
}

void traffic_sink_prepare(struct traffic_socket *traffic)
{
	tasklet_setup(&traffic->tasklet, sink_tasklet);
	INIT_WORK(&traffic->work, sink_work);
}
