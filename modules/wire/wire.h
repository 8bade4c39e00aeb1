/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several user-mode kernels in one virtual time, joined by wires. wire_qdisc.c is what a plan installs, wire_line.c
 * holds frames until their time, wire_ring.c carries them through memory that all kernels share, wire_barrier.c keeps
 * the kernels' clocks together.
 */
#ifndef HOWDAH_WIRE_H
#define HOWDAH_WIRE_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#define WIRE_KIND		"howdah_wire"
#define WIRE_MAGIC		0x77647772U
#define WIRE_VERSION		1
#define WIRE_DESCRIPTOR		250	/* of the shared memory: howdah/build/shim.c */
#define WIRE_MOST_PARTS		8
#define WIRE_MOST_WIRES		1024
#define WIRE_PAGE		4096
#define WIRE_NEVER		U64_MAX

/* The first page of the memory, written by the engine (howdah/engine/uml/wire.py) and never changed afterwards. */
struct wire_header {
	u32 magic;
	u32 version;
	u32 parts;
	u32 unused;
	u64 ring_bytes;
	u64 window_ns;			/* a multiple of the kernels' tick */
	/* Of the frames from one part to another; 0: no wire leads there. */
	u64 lookahead_ns[WIRE_MOST_PARTS][WIRE_MOST_PARTS];
};

/* A page for each part. Everything it did before progress_ns is in its rings. */
struct wire_part {
	u64 progress_ns;
	u32 moves;			/* the futex; changes with progress_ns */
	u32 unused;
	u32 waiting[WIRE_MOST_PARTS];	/* by part: whether it sleeps until this one moves */
};

/* A page, and ring_bytes behind it, for each pair of parts. Both count bytes and never go back. */
struct wire_ring {
	u64 head;			/* the writer's */
	u8 unused[56];
	u64 tail;			/* the reader's */
};

/* Options of the qdisc, a plan's: howdah/linux/netlink/qdisc.py. */
struct wire_options {
	u32 wire;			/* the same number in all parts */
	u32 to;				/* the part at whose kernel its frames arrive */
	u64 delay_ns;
};

/* One delay line: it leaves in all parts but one, and arrives in that. */
struct wire {
	struct wire_options options;
	bool arrives;
	struct qdisc_watchdog watchdog;
	struct sk_buff_head waiting;	/* arrived frames, in order of their time */
	u64 left_frames;
	u64 left_bytes;
	u64 arrived_frames;
	u64 arrived_bytes;
	u64 late_frames;		/* delivered after their time, by the clock the kernel had then */
	u64 latest_ns;
	u64 lost_frames;		/* no room in the ring, or no memory for a frame */
};

struct wire_memory {
	const struct wire_header *header;
	int part;
};

extern struct wire_memory wire_memory;
extern struct Qdisc *wire_arriving[WIRE_MOST_WIRES];

/* wire_ring.c */
int wire_attach(int part);
struct wire_part *wire_part(int part);
bool wire_put(int to, u32 number, u64 stamp_ns, struct sk_buff *skb);
void wire_take(int from, u64 before_ns);
void wire_release_held(void);

/* wire_barrier.c */
void wire_barrier_start(void);
void wire_barrier_stop(void);

/* wire_line.c */
void wire_insert(struct wire *wire, struct sk_buff *skb);
void wire_wait(struct wire *wire);
void wire_arrived(struct Qdisc *sch, struct sk_buff *skb, u64 stamp_ns);

/* What a frame has to wait for lies in its control block, behind what the qdisc layer keeps there. */
struct wire_control {
	u64 due_ns;
};

static inline struct wire_control *wire_control(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct wire_control));
	return (struct wire_control *)qdisc_skb_cb(skb)->data;
}

/* A system call of the machine: a user-mode kernel is one of its processes. */
static inline long wire_host(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long result;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	return result;
}

#endif
