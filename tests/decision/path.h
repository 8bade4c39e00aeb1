/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One flow over one path: the sender's interface, a drop-tail bottleneck, a receiver
 * with Linux' delayed ACKs, and a constant delay. Packet by packet; nothing else is there.
 */
#ifndef DECISION_PATH_H
#define DECISION_PATH_H

#include "sender.h"

/**
 * struct path - a path, and how long to look at it
 * @bits_per_second: of the bottleneck
 * @interface_bits_per_second: of the sender, 0: infinitely fast
 * @rtt_us: of a packet that meets no queue, with the time to send it
 * @buffer_packets: at the bottleneck, without the one that is being sent
 * @overhead_bytes: of a packet on the wire, beside its payload
 * @ack_every: packets an ACK acknowledges, at most; a lone one waits for @ack_delay_us
 * @ack_delay_us: longest wait of an ACK
 * @quick_acks: packets at the start that are acknowledged one by one. A receiver in the
 *	guest does that as long as its window grows, which may be all of a slow start
 * @jitter_us: each ACK comes later by up to this; ACKs keep their order
 * @loss_per_million: packets that are dropped at random before the bottleneck
 * @seed: of the randomness
 * @duration_us: from now
 * @until_exit: stop at the first event SLOW_START_EXIT
 * @trace: keep a row for every ACK
 */
struct path {
	u64 bits_per_second, interface_bits_per_second, rtt_us, buffer_packets;
	u64 overhead_bytes, ack_every, ack_delay_us, quick_acks;
	u64 jitter_us, loss_per_million, seed, duration_us, until_exit, trace;
};

extern const struct path path_default;

struct path_row {
	u64 time_us;
	u32 cwnd, ssthresh, flight;
	u64 una;
	u8 state;
};

/* What happened; rows are freed with path_free(). */
struct path_result {
	u64 sent, dropped, acks, queue_max;
	struct path_row *rounds, *rows;	/* cwnd and the like when each round began; after each ACK */
	size_t round_count, round_room, row_count, row_room;
};

void path_run(struct sender *sender, const struct path *path, struct path_result *result);
void path_free(struct path_result *result);

#endif
