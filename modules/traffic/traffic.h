/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HOWDAH_TRAFFIC_H
#define HOWDAH_TRAFFIC_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <net/sock.h>

enum traffic_role { TRAFFIC_SOURCE, TRAFFIC_SINK };
enum traffic_state { TRAFFIC_OPEN, TRAFFIC_DONE, TRAFFIC_CLOSED };

/* One attached socket. The counters are written under the socket lock (sink) or by the work item alone (source). */
struct traffic_socket {
	struct list_head list;
	struct socket *sock;
	enum traffic_role role;
	enum traffic_state state;
	u64 bytes;
	u64 first_ns;
	u64 last_ns;

	u64 limit_bytes;	/* 0 is endless */
	bool stays_open;	/* source: leaves it to the other end to close first */
	u32 write_bytes;
	u32 write_left;		/* of the write() in progress */
	struct page *block;	/* what the data are copied into, again and again */

	struct tasklet_struct tasklet;	/* sink */
	struct work_struct work;	/* source; sink whose socket a process held */

	u64 interval_ns;	/* datagrams: between two; 0 receives */
	struct hrtimer timer;
	atomic_t due;

	/* what the socket had before */
	const struct proto_ops *ops;
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

#define LARGEST_WRITE_BYTES (1024 * 1024)
#define LARGEST_DATAGRAM_BYTES 16384

extern struct workqueue_struct *traffic_queue;

void traffic_count(struct traffic_socket *traffic, size_t bytes);

void traffic_sink_prepare(struct traffic_socket *traffic);
void traffic_sink_data_ready(struct sock *sk);

int traffic_source_init(void);
void traffic_source_exit(void);
int traffic_source_prepare(struct traffic_socket *traffic);
void traffic_source_take_back(struct traffic_socket *traffic);
void traffic_source_free(struct traffic_socket *traffic);
void traffic_source_write_space(struct sock *sk);
void traffic_source_error_report(struct sock *sk);

/* Whether it has an end, and shuts its side down when the last byte is acknowledged. */
static inline bool traffic_source_waits(const struct traffic_socket *traffic)
{
	return traffic->limit_bytes && !traffic->stays_open;
}

void traffic_datagram_prepare(struct traffic_socket *traffic);
void traffic_datagram_start(struct traffic_socket *traffic);
void traffic_datagram_stop(struct traffic_socket *traffic);
void traffic_datagram_data_ready(struct sock *sk);

#if defined(CONFIG_UML) && defined(CONFIG_X86_64)
void traffic_crash_init(void);
void traffic_crash_exit(void);
#else
static inline void traffic_crash_init(void) {}
static inline void traffic_crash_exit(void) {}
#endif

#endif
