// SPDX-License-Identifier: GPL-2.0
/*
 * The bulk source: a process that calls write() with blocks of a given size, for ever or up to a number of bytes.
 *
 * The size of the blocks is visible on the wire: tcp_sendmsg() sets PSH on the last segment of each, and the receiver
 * acknowledges such a segment at once. A block that does not fit is continued, not begun again, when there is space.
 *
 * It runs in process context, woken by the condition that wakes a process in sk_stream_wait_memory(): a third of the
 * send buffer is free. That is about 1.5 times per round trip, so a softirq would save nothing, and the buffer is
 * filled by the very function, at the very instants, as by a process.
 *
 * After a number of bytes it shuts its side down when the last of them is acknowledged: a socket that has sent a FIN is
 * no longer established, and tcp_probe tells of no ACK that it gets. What says so is the time stamp that a process can
 * ask for with a write(), SOF_TIMESTAMPING_TX_ACK. No ACK before that one wakes anybody.
 */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/net_tstamp.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <net/tcp.h>

#include "traffic.h"

#define BLOCK_BYTES 32768	/* SKB_FRAG_PAGE_ORDER */
#define LEAST_ROOM 32		/* sk_page_frag_refill() */
#define WRITES_PER_WORK 256

static void *payload;	/* zeros, what all data are copied from */

/*
 * tcp_sendmsg() copies into the socket's page fragment, a block of 32 KiB, and takes a new block when one is used up.
 * We lend it the same block each time, so that both ends of the copy stay in the processor's cache: one eighth of the
 * whole simulation is saved. The data are all alike, so nothing is lost when they are copied over.
 *
 * Sending spliced pages instead would cost no copy at all, but would cut the fragments of a segment in other places.
 * That shows: tcp_shift_skb_data() merges acknowledged segments at the sender, tcp_try_coalesce() those out of order
 * at the receiver (behind veth it gets these very fragments), as far as the number of fragments allows. What is not
 * merged takes more memory, and changes when the sender's buffer is full and which window the receiver offers.
 */
static void source_lend(struct traffic_socket *traffic, struct page_frag *fragment)
{
	if (fragment->page) {
		if (fragment->offset + LEAST_ROOM <= fragment->size)
			return;
		put_page(fragment->page);
	}
	get_page(traffic->block);
	fragment->page = traffic->block;
	fragment->offset = 0;
	fragment->size = BLOCK_BYTES;
}

/* Caller holds the socket lock. */
void traffic_source_take_back(struct traffic_socket *traffic)
{
	struct page_frag *fragment = &traffic->sock->sk->sk_frag;

	if (!traffic->block || fragment->page != traffic->block)
		return;
	put_page(fragment->page);
	fragment->page = NULL;
}

/* Whether tcp_push() would ask for a push here, after "bytes" more; see forced_push(). */
static bool source_forces_push(const struct tcp_sock *tp, u32 bytes)
{
	return after(tp->write_seq + bytes, tp->pushed_seq + (tp->max_window >> 1));
}

/*
 * How much of a write() of "bytes" to hand over at once: up to where the block is used up. The end of a piece must not
 * be seen. MSG_MORE holds back what a push there would send and mark; only a forced push would not be held back, and
 * where that might be due inside a segment the piece goes on, into a block that tcp_sendmsg() gets for itself.
 *
 * None of this is done where a packet may hold several segments: MSG_MORE would not hold back the first of them.
 */
static u32 source_piece(struct sock *sk, u32 bytes)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *tail = tcp_write_queue_tail(sk);
	u32 mss = tp->mss_cache;
	u32 left = tail && tail->len < mss ? mss - tail->len : mss;
	u32 room = sk->sk_frag.size - sk->sk_frag.offset;
	u32 piece = 0, part;

	while (piece < bytes) {
		if (room < LEAST_ROOM) {
			if (left == mss || !source_forces_push(tp, piece))
				break;
			room = BLOCK_BYTES;
		}
		part = min3(bytes - piece, left, room);
		piece += part;
		room -= part;
		left -= part;
		if (!left)
			left = mss;
	}
	return piece;
}

/* A control message of one write(). */
union source_request {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(u32))];
};

/*
 * Ask for the time stamp of the ACK of the last byte of this write(). Caller holds the socket lock. Without
 * OPT_TSONLY the stamp would bring the segment back, which may not fit into the receive buffer.
 */
static void source_ask_for_ack(struct sock *sk, struct msghdr *message, union source_request *request)
{
	request->header.cmsg_level = SOL_SOCKET;
	request->header.cmsg_type = SO_TIMESTAMPING_OLD;
	request->header.cmsg_len = CMSG_LEN(sizeof(u32));
	*(u32 *)CMSG_DATA(&request->header) = SOF_TIMESTAMPING_TX_ACK;
	message->msg_control = request;
	message->msg_controllen = sizeof(*request);
	sk->sk_tsflags |= SOF_TIMESTAMPING_OPT_TSONLY;
}

/* Whether all that was written is acknowledged, or somebody else has shut our side down. */
static bool source_is_acknowledged(struct sock *sk)
{
	bool acknowledged;

	lock_sock(sk);
	skb_queue_purge(&sk->sk_error_queue);
	acknowledged = tcp_sk(sk)->snd_una == tcp_sk(sk)->write_seq || sk->sk_shutdown & SEND_SHUTDOWN;
	release_sock(sk);
	return acknowledged;
}

/* Returns what tcp_sendmsg() does; at most what fits now is written. */
static int source_write(struct traffic_socket *traffic, u32 bytes)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vector = { .iov_base = payload, .iov_len = bytes };
	union source_request request = { };
	struct sock *sk = traffic->sock->sk;
	int written;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	bool use_task_frag;
#else
	gfp_t allocation;
#endif

	lock_sock(sk);
	if (READ_ONCE(sk->sk_gso_max_segs) <= 1) {
		source_lend(traffic, &sk->sk_frag);
		vector.iov_len = source_piece(sk, bytes);
		if (vector.iov_len < bytes)
			message.msg_flags |= MSG_MORE;
	}
	if (traffic_source_waits(traffic) && traffic->bytes + vector.iov_len == traffic->limit_bytes)
		source_ask_for_ack(sk, &message, &request);
	iov_iter_kvec(&message.msg_iter, WRITE, &vector, 1, vector.iov_len);

	/* A process copies into a fragment of its task; this work's task serves other sockets too. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	use_task_frag = sk->sk_use_task_frag;
	sk->sk_use_task_frag = false;
	written = tcp_sendmsg_locked(sk, &message, vector.iov_len);
	sk->sk_use_task_frag = use_task_frag;
#else
	allocation = sk->sk_allocation;
	sk->sk_allocation = GFP_NOFS;
	written = tcp_sendmsg_locked(sk, &message, vector.iov_len);
	sk->sk_allocation = allocation;
#endif
	release_sock(sk);
	return written;
}

static void source_work(struct work_struct *work)
{
	struct traffic_socket *traffic = container_of(work, struct traffic_socket, work);
	int writes;

	for (writes = 0; writes < WRITES_PER_WORK; writes++) {
		int written;

		if (traffic->limit_bytes && traffic->bytes >= traffic->limit_bytes) {
			if (traffic_source_waits(traffic)) {
				if (!source_is_acknowledged(traffic->sock->sk))
					return;		/* traffic_source_error_report() will follow */
				kernel_sock_shutdown(traffic->sock, SHUT_WR);
			}
			WRITE_ONCE(traffic->state, TRAFFIC_DONE);
			return;
		}
		if (!traffic->write_left) {
			traffic->write_left = traffic->write_bytes;
			if (traffic->limit_bytes)
				traffic->write_left = min_t(u64, traffic->write_left,
							    traffic->limit_bytes - traffic->bytes);
		}
		written = source_write(traffic, traffic->write_left);
		if (written == -EAGAIN) {
			/* Like sk_wait_event(): acknowledgements that came meanwhile may have made room. */
			if (sk_stream_memory_free(traffic->sock->sk))
				continue;
			return;		/* SOCK_NOSPACE is set: traffic_source_write_space() will follow */
		}
		if (written < 0) {
			WRITE_ONCE(traffic->state, TRAFFIC_CLOSED);
			return;
		}
		traffic_count(traffic, written);
		traffic->write_left -= written;
	}
	/* A path without delay may drain as fast as we fill: let others run, and detaching interrupt us. */
	queue_work(traffic_queue, &traffic->work);
}

void traffic_source_write_space(struct sock *sk)
{
	struct traffic_socket *traffic;

	rcu_read_lock();
	traffic = rcu_dereference_sk_user_data(sk);
	if (traffic) {
		traffic->write_space(sk);
		if (sk_stream_is_writeable(sk) && READ_ONCE(traffic->state) == TRAFFIC_OPEN)
			queue_work(traffic_queue, &traffic->work);
	}
	rcu_read_unlock();
}

/* A time stamp has come, or the connection has failed. Called with the socket locked, as for every ACK. */
void traffic_source_error_report(struct sock *sk)
{
	struct traffic_socket *traffic;

	rcu_read_lock();
	traffic = rcu_dereference_sk_user_data(sk);
	if (traffic) {
		if (READ_ONCE(sk->sk_err))
			traffic->error_report(sk);
		else if (READ_ONCE(traffic->state) == TRAFFIC_OPEN)
			queue_work(traffic_queue, &traffic->work);
	}
	rcu_read_unlock();
}

int traffic_source_prepare(struct traffic_socket *traffic)
{
	INIT_WORK(&traffic->work, source_work);
	traffic->block = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO, get_order(BLOCK_BYTES));
	return traffic->block ? 0 : -ENOMEM;
}

void traffic_source_free(struct traffic_socket *traffic)
{
	if (traffic->block)
		put_page(traffic->block);	/* segments on their way keep references of their own */
}

int traffic_source_init(void)
{
	payload = kvzalloc(LARGEST_WRITE_BYTES, GFP_KERNEL);
	return payload ? 0 : -ENOMEM;
}

void traffic_source_exit(void)
{
	kvfree(payload);
}
