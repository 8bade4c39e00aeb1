// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams at a constant rate, and the end that counts them.
 *
 * A timer says when one is due; a work item sends it, because udp_sendmsg() wants process context. What could not be
 * sent at its time, for want of buffer, is not made up: it would be a burst that a constant rate does not have.
 */

#include <linux/hrtimer.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <linux/uio.h>
#include <linux/version.h>

#include "traffic.h"

static const u8 zeros[LARGEST_DATAGRAM_BYTES];

static enum hrtimer_restart datagram_due(struct hrtimer *timer)
{
	struct traffic_socket *traffic = container_of(timer, struct traffic_socket, timer);

	atomic_add(hrtimer_forward_now(timer, ns_to_ktime(traffic->interval_ns)), &traffic->due);
	queue_work(traffic_queue, &traffic->work);
	return HRTIMER_RESTART;
}

static void datagram_send_work(struct work_struct *work)
{
	struct traffic_socket *traffic = container_of(work, struct traffic_socket, work);
	int due = atomic_xchg(&traffic->due, 0);

	while (due-- > 0) {
		struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		struct kvec vector = { .iov_base = (void *)zeros, .iov_len = traffic->write_bytes };

		if (kernel_sendmsg(traffic->sock, &message, &vector, 1, traffic->write_bytes) > 0)
			traffic_count(traffic, traffic->write_bytes);
	}
}

static void datagram_receive_work(struct work_struct *work)
{
	struct traffic_socket *traffic = container_of(work, struct traffic_socket, work);
	int bytes;

	do {
		struct msghdr message = { };
		struct kvec vector = { };

		/* MSG_TRUNC: the length is told, and nothing is copied. */
		bytes = kernel_recvmsg(traffic->sock, &message, &vector, 1, 0, MSG_DONTWAIT | MSG_TRUNC);
		if (bytes > 0)
			traffic_count(traffic, bytes);
	} while (bytes > 0);
}

void traffic_datagram_data_ready(struct sock *sk)
{
	struct traffic_socket *traffic;

	rcu_read_lock();
	traffic = rcu_dereference_sk_user_data(sk);
	if (traffic)
		queue_work(traffic_queue, &traffic->work);
	rcu_read_unlock();
}

void traffic_datagram_prepare(struct traffic_socket *traffic)
{
	INIT_WORK(&traffic->work, traffic->interval_ns ? datagram_send_work : datagram_receive_work);
	if (!traffic->interval_ns)
		return;
	atomic_set(&traffic->due, 1);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&traffic->timer, datagram_due, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(&traffic->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	traffic->timer.function = datagram_due;
#endif
}

/* The first datagram leaves at once. */
void traffic_datagram_start(struct traffic_socket *traffic)
{
	if (traffic->interval_ns)
		hrtimer_start(&traffic->timer, ns_to_ktime(traffic->interval_ns), HRTIMER_MODE_REL);
}

void traffic_datagram_stop(struct traffic_socket *traffic)
{
	if (traffic->interval_ns)
		hrtimer_cancel(&traffic->timer);
}
