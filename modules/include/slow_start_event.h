/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tracepoint howdah:slow_start tells. Numbers are part of the data format:
 * new ones are added at the end, and none is ever used again. In tables and reports
 * the names are those of the symbols: SLOW_START_ACK_TRAIN is "ack-train".
 */
#ifndef HOWDAH_SLOW_START_EVENT_H
#define HOWDAH_SLOW_START_EVENT_H

/**
 * enum slow_start_event - what happened
 * @SLOW_START_EXIT: slow start has ended, ssthresh is finite
 * @SLOW_START_PHASE: another phase of slow start (CSS, a hold round, draining)
 * @SLOW_START_RESUME: back to the phase before: a false alarm, or an undo
 * @SLOW_START_ESTIMATE: ssthresh was set or raised from an estimate
 * @SLOW_START_JUMP: the window was set at once
 * @SLOW_START_JUMP_END: the flight of a jump is out, quantity packets of it were sent
 * @SLOW_START_DRAIN_END: a window that was too large has been drained
 * @SLOW_START_RETREAT: a jump proved too large
 * @SLOW_START_SHARE: quantity packets of the window went to newer connections
 * @SLOW_START_ROLL_BACK: the exit before it took part of the window back, cwnd is what is
 *	left; quantity and threshold are the exit's
 */
enum slow_start_event {
	SLOW_START_EXIT = 0,
	SLOW_START_PHASE = 1,
	SLOW_START_RESUME = 2,
	SLOW_START_ESTIMATE = 3,
	SLOW_START_JUMP = 4,
	SLOW_START_JUMP_END = 5,
	SLOW_START_DRAIN_END = 6,
	SLOW_START_RETREAT = 7,
	SLOW_START_SHARE = 8,
	SLOW_START_ROLL_BACK = 9,
};

/**
 * enum slow_start_reason - why; and the units of quantity and threshold
 * @SLOW_START_NONE: nothing to say
 * @SLOW_START_ACK_TRAIN: length of the train of ACKs, us
 * @SLOW_START_DELAY: RTT of the round, us
 * @SLOW_START_LOSS: packets marked lost
 * @SLOW_START_RTO: retransmission timer, us
 * @SLOW_START_CONGESTION_SIGNAL: ECN, or a drop in the sender's own queue
 * @SLOW_START_INITIAL_SSTHRESH: cwnd against a threshold set before, packets
 * @SLOW_START_DELIVERY_RATE: normalised difference of deliveries, thousandths
 * @SLOW_START_CSS_ROUNDS: conservative rounds
 * @SLOW_START_QUEUE_ESTIMATE: packets queued, thousandths
 * @SLOW_START_PACKET_PAIR: bandwidth, kbit/s; threshold is the number of samples
 * @SLOW_START_RATE_ESTIMATE: eligible rate, kbit/s; threshold is ssthresh, packets
 * @SLOW_START_INFLIGHT_LIMIT: the limit against cwnd, packets
 * @SLOW_START_JUMP_SIZE: the window against its limit, packets
 * @SLOW_START_CACHED: a remembered window or threshold against its limit, packets
 * @SLOW_START_RTT_GROWTH: RTT of the round, us
 * @SLOW_START_SPURIOUS: cwnd restored, packets
 */
enum slow_start_reason {
	SLOW_START_NONE = 0,
	SLOW_START_ACK_TRAIN = 1,
	SLOW_START_DELAY = 2,
	SLOW_START_LOSS = 3,
	SLOW_START_RTO = 4,
	SLOW_START_CONGESTION_SIGNAL = 5,
	SLOW_START_INITIAL_SSTHRESH = 6,
	SLOW_START_DELIVERY_RATE = 7,
	SLOW_START_CSS_ROUNDS = 8,
	SLOW_START_QUEUE_ESTIMATE = 9,
	SLOW_START_PACKET_PAIR = 10,
	SLOW_START_RATE_ESTIMATE = 11,
	SLOW_START_INFLIGHT_LIMIT = 12,
	SLOW_START_JUMP_SIZE = 13,
	SLOW_START_CACHED = 14,
	SLOW_START_RTT_GROWTH = 15,
	SLOW_START_SPURIOUS = 16,
};

#endif
