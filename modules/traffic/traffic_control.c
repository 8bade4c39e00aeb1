// SPDX-License-Identifier: GPL-2.0
/*
 * howdah_traffic: a bulk source and an eager sink for connected TCP sockets, and a constant rate of datagrams for
 * connected UDP sockets, driven from inside the kernel.
 *
 * User space makes and connects ordinary TCP sockets and hands them over by writing one command to
 * /proc/howdah_traffic:
 *
 *   source FD BYTES [WRITE_BYTES]  keep the send buffer full, as a process would whose blocking write() calls of
 *                                  WRITE_BYTES each (default 131072, at most 1 MiB) never end; when the last of BYTES
 *                                  is acknowledged, shut the sending side down. BYTES 0: until detached or closed.
 *   answer FD BYTES [WRITE_BYTES]  the same, but after BYTES stay open: the other end closes first.
 *   sink FD [BYTES]                consume data at once, as a process would that always waits in recv(); after BYTES
 *                                  shut our side down, as a client does that knows how much it asked for.
 *   datagrams FD INTERVAL_NS BYTES send one of so many bytes (at most 16384) now and after each interval.
 *   detach FD                      give the socket back.
 *
 * Reading the file gives one line a socket:
 *
 *   COOKIE ROLE BYTES FIRST_NS LAST_NS STATE
 *
 * COOKIE is the socket's SO_COOKIE (0 until something asked for it), BYTES what was written or consumed, FIRST_NS and
 * LAST_NS the CLOCK_MONOTONIC times of the first and last byte, and STATE open, done (source: all written and, but for
 * "answer", acknowledged and the sending side shut down; sink: the peer's FIN was reached) or closed (reset or other
 * error).
 *
 * Attached sockets are given proto_ops whose release() detaches first: closing the last descriptor, or the death of
 * its process, undoes everything. Each attached socket holds a reference to the module.
 *
 * As the first of our modules in a user-mode kernel it also tells where that crashed (traffic_crash.c).
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <net/inet_connection_sock.h>
#include <net/ipv6.h>
#include <net/tcp_states.h>

#include "traffic.h"

#define DEFAULT_WRITE_BYTES (128 * 1024)
#define LONGEST_COMMAND 128
#define SHORTEST_INTERVAL_NS 1000

/* Newer kernels want it said that work stays on its CPU. */
#ifdef HAVE_WQ_PERCPU
#define TRAFFIC_QUEUE	(WQ_HIGHPRI | WQ_PERCPU)
#else
#define TRAFFIC_QUEUE	WQ_HIGHPRI
#endif

static const char * const role_names[] = { "source", "sink" };
static const char * const state_names[] = { "open", "done", "closed" };

static LIST_HEAD(traffic_sockets);
static DEFINE_MUTEX(traffic_mutex);	/* the list, attaching and detaching */

/* Copies of the address families' operations with our release(); filled on first use, never changed afterwards. */
static struct proto_ops traffic_ops[2][2];	/* stream and datagram; IPv4 and IPv6 */

static struct traffic_socket *traffic_find(const struct socket *sock)
{
	struct traffic_socket *traffic;

	list_for_each_entry(traffic, &traffic_sockets, list)
		if (traffic->sock == sock)
			return traffic;
	return NULL;
}

static void traffic_free(struct traffic_socket *traffic)
{
	traffic_source_free(traffic);
	kfree(traffic);
}

/* Gives the socket its own callbacks and operations back; the module reference remains the caller's to drop. */
static const struct proto_ops *traffic_undo(struct traffic_socket *traffic)
{
	struct socket *sock = traffic->sock;
	const struct proto_ops *ops = traffic->ops;
	struct sock *sk = sock->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = traffic->data_ready;
	sk->sk_write_space = traffic->write_space;
	sk->sk_error_report = traffic->error_report;
	rcu_assign_sk_user_data(sk, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
	sock->ops = ops;
	release_sock(sk);

	/* A callback that still saw us may schedule until the grace period ends; nothing can afterwards. */
	synchronize_rcu();
	if (sk->sk_type == SOCK_DGRAM)
		traffic_datagram_stop(traffic);
	else if (traffic->role == TRAFFIC_SINK)
		tasklet_kill(&traffic->tasklet);
	cancel_work_sync(&traffic->work);
	lock_sock(sk);
	traffic_source_take_back(traffic);
	release_sock(sk);
	list_del(&traffic->list);
	traffic_free(traffic);
	return ops;
}

/* The last descriptor is closed. The socket layer itself drops the reference that the socket held to our module. */
static int traffic_release(struct socket *sock)
{
	struct traffic_socket *traffic;
	const struct proto_ops *ops;
	int error;

	mutex_lock(&traffic_mutex);
	traffic = traffic_find(sock);
	ops = traffic ? traffic_undo(traffic) : sock->ops;
	mutex_unlock(&traffic_mutex);
	error = ops->release(sock);
	module_put(ops->owner);
	return error;
}

static const struct proto_ops *traffic_ops_of(const struct sock *sk, const struct proto_ops *original)
{
	struct proto_ops *ops = &traffic_ops[sk->sk_type == SOCK_DGRAM][sk->sk_family == AF_INET6];

	if (!ops->release) {
		*ops = *original;
		ops->owner = THIS_MODULE;
		ops->release = traffic_release;
	}
	return ops;
}

static bool traffic_is_tcp(const struct sock *sk)
{
	return sk && sk->sk_type == SOCK_STREAM && sk->sk_protocol == IPPROTO_TCP &&
	       (sk->sk_family == AF_INET || sk->sk_family == AF_INET6);
}

static bool traffic_is_udp(const struct sock *sk)
{
	return sk && sk->sk_type == SOCK_DGRAM && sk->sk_protocol == IPPROTO_UDP &&
	       (sk->sk_family == AF_INET || sk->sk_family == AF_INET6);
}

/* Caller holds the socket lock. */
static int traffic_check_udp(const struct sock *sk)
{
	if (sk->sk_state != TCP_ESTABLISHED)
		return -ENOTCONN;
	return sk->sk_user_data ? -EBUSY : 0;
}

/* Caller holds the socket lock. */
static int traffic_check(struct sock *sk, enum traffic_role role)
{
	int states = TCPF_ESTABLISHED | TCPF_CLOSE_WAIT;

	if (role == TRAFFIC_SINK)
		states |= TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2;
	if (!((1 << sk->sk_state) & states))
		return -ENOTCONN;
#if IS_ENABLED(CONFIG_IPV6)
	/* IPV6_ADDRFORM would replace the operations of such a socket behind our back. */
	if (sk->sk_family == AF_INET6 && ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		return -EINVAL;
#endif
	if (sk->sk_user_data || inet_csk(sk)->icsk_ulp_ops)
		return -EBUSY;
	return 0;
}

static int traffic_attach(struct socket *sock, enum traffic_role role, u64 limit_bytes, u32 write_bytes,
			  bool stays_open, u64 interval_ns)
{
	struct traffic_socket *traffic;
	struct sock *sk = sock->sk;
	bool datagrams = traffic_is_udp(sk);
	int error;

	/* TCP writes a stream, UDP sends at intervals; both receive. */
	if (datagrams ? role == TRAFFIC_SOURCE && !interval_ns : !traffic_is_tcp(sk) || interval_ns)
		return -EINVAL;
	if (traffic_find(sock))
		return -EBUSY;
	traffic = kzalloc(sizeof(*traffic), GFP_KERNEL);
	if (!traffic)
		return -ENOMEM;
	traffic->sock = sock;
	traffic->role = role;
	traffic->limit_bytes = limit_bytes;
	traffic->write_bytes = write_bytes;
	traffic->stays_open = stays_open;
	traffic->interval_ns = interval_ns;
	if (datagrams)
		traffic_datagram_prepare(traffic);
	else if (role == TRAFFIC_SINK)
		traffic_sink_prepare(traffic);
	else if (traffic_source_prepare(traffic))
		goto no_memory;

	lock_sock(sk);
	error = datagrams ? traffic_check_udp(sk) : traffic_check(sk, role);
	if (error) {
		release_sock(sk);
		traffic_free(traffic);
		return error;
	}
	__module_get(THIS_MODULE);
	traffic->ops = sock->ops;
	sock->ops = traffic_ops_of(sk, traffic->ops);
	write_lock_bh(&sk->sk_callback_lock);
	traffic->data_ready = sk->sk_data_ready;
	traffic->write_space = sk->sk_write_space;
	traffic->error_report = sk->sk_error_report;
	rcu_assign_sk_user_data(sk, traffic);
	if (datagrams)
		sk->sk_data_ready = traffic_datagram_data_ready;
	else if (role == TRAFFIC_SINK)
		sk->sk_data_ready = traffic_sink_data_ready;
	else
		sk->sk_write_space = traffic_source_write_space;
	if (!datagrams && role == TRAFFIC_SOURCE && traffic_source_waits(traffic))
		sk->sk_error_report = traffic_source_error_report;
	write_unlock_bh(&sk->sk_callback_lock);
	list_add_tail(&traffic->list, &traffic_sockets);
	release_sock(sk);

	/* The source begins; the sink takes what arrived before us. */
	queue_work(traffic_queue, &traffic->work);
	if (datagrams)
		traffic_datagram_start(traffic);
	return 0;

no_memory:
	traffic_free(traffic);
	return -ENOMEM;
}

static int traffic_detach(struct socket *sock)
{
	struct traffic_socket *traffic = traffic_find(sock);

	if (!traffic)
		return -ENOENT;
	traffic_undo(traffic);
	module_put(THIS_MODULE);
	return 0;
}

static int traffic_command(const char *line)
{
	u64 limit_bytes = 0;
	u32 write_bytes = DEFAULT_WRITE_BYTES;
	bool detach, sink, answer;
	u64 interval_ns = 0;
	struct socket *sock;
	char name[16];
	int error, fields;
	u32 fd;

	fields = sscanf(line, "%15s %u %llu %u", name, &fd, &limit_bytes, &write_bytes);
	detach = fields == 2 && !strcmp(name, "detach");
	sink = (fields == 2 || fields == 3) && !strcmp(name, "sink");
	answer = fields >= 3 && limit_bytes && !strcmp(name, "answer");
	if (fields == 4 && !strcmp(name, "datagrams")) {
		interval_ns = limit_bytes;
		limit_bytes = 0;
		if (interval_ns < SHORTEST_INTERVAL_NS || !write_bytes || write_bytes > LARGEST_DATAGRAM_BYTES)
			return -EINVAL;
	} else if (!detach && !sink) {
		if (!answer && (fields < 3 || strcmp(name, "source")))
			return -EINVAL;
		if (!write_bytes || write_bytes > LARGEST_WRITE_BYTES)
			return -EINVAL;
	}

	sock = sockfd_lookup(fd, &error);
	if (!sock)
		return error;
	mutex_lock(&traffic_mutex);
	if (detach)
		error = traffic_detach(sock);
	else
		error = traffic_attach(sock, sink ? TRAFFIC_SINK : TRAFFIC_SOURCE, limit_bytes, write_bytes, answer,
				       interval_ns);
	mutex_unlock(&traffic_mutex);
	sockfd_put(sock);
	return error;
}

static ssize_t traffic_proc_write(struct file *file, const char __user *buffer, size_t count, loff_t *position)
{
	char *line;
	int error;

	if (!count || count > LONGEST_COMMAND)
		return -EINVAL;
	line = memdup_user_nul(buffer, count);
	if (IS_ERR(line))
		return PTR_ERR(line);
	error = traffic_command(line);
	kfree(line);
	return error ? error : count;
}

static enum traffic_state traffic_state_of(const struct traffic_socket *traffic)
{
	enum traffic_state state = READ_ONCE(traffic->state);
	struct sock *sk = traffic->sock->sk;

	/*
	 * A reset tells neither callback. A sink that closed first is closed when the FIN has come, too: TIME_WAIT has
	 * a socket of its own. Until the tasklet has seen that FIN the sink is open, and not reset.
	 */
	if (state != TRAFFIC_OPEN)
		return state;
	if (READ_ONCE(sk->sk_err))
		return TRAFFIC_CLOSED;
	if (READ_ONCE(sk->sk_state) == TCP_CLOSE && !(traffic->role == TRAFFIC_SINK && sock_flag(sk, SOCK_DONE)))
		return TRAFFIC_CLOSED;
	return state;
}

static int traffic_proc_show(struct seq_file *file, void *unused)
{
	struct traffic_socket *traffic;

	mutex_lock(&traffic_mutex);
	list_for_each_entry(traffic, &traffic_sockets, list)
		seq_printf(file, "%llu %s %llu %llu %llu %s\n",
			   (u64)atomic64_read(&traffic->sock->sk->sk_cookie), role_names[traffic->role],
			   READ_ONCE(traffic->bytes), READ_ONCE(traffic->first_ns), READ_ONCE(traffic->last_ns),
			   state_names[traffic_state_of(traffic)]);
	mutex_unlock(&traffic_mutex);
	return 0;
}

static int traffic_proc_open(struct inode *inode, struct file *file)
{
	return single_open(file, traffic_proc_show, NULL);
}

static const struct proc_ops traffic_proc_ops = {
	.proc_open = traffic_proc_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = traffic_proc_write,
};

static int __init traffic_init(void)
{
	int error = traffic_source_init();

	if (error)
		return error;
	traffic_queue = alloc_workqueue("howdah_traffic", TRAFFIC_QUEUE, 0);
	if (!traffic_queue) {
		error = -ENOMEM;
		goto no_queue;
	}
	if (!proc_create("howdah_traffic", 0600, NULL, &traffic_proc_ops)) {
		error = -ENOMEM;
		goto no_file;
	}
	traffic_crash_init();
	return 0;

no_file:
	destroy_workqueue(traffic_queue);
no_queue:
	traffic_source_exit();
	return error;
}

static void __exit traffic_exit(void)
{
	traffic_crash_exit();
	remove_proc_entry("howdah_traffic", NULL);
	destroy_workqueue(traffic_queue);
	traffic_source_exit();
}

module_init(traffic_init);
module_exit(traffic_exit);
MODULE_DESCRIPTION("In-kernel bulk source and eager sink for connected TCP sockets");
MODULE_LICENSE("GPL");
