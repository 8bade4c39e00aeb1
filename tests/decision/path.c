// SPDX-License-Identifier: GPL-2.0-only
/*
 * See path.h. Packets keep their order, so that what happens to one on its way is known
 * when it is sent, and only ACKs and timers have to be waited for. Times are nanoseconds.
 */
#include "path.h"

#define NEVER	U64_MAX

const struct path path_default = {
	.bits_per_second = 100000000,
	.interface_bits_per_second = 1000000000,
	.rtt_us = 102000,
	.buffer_packets = 842,
	.overhead_bytes = 66,
	.ack_every = 2,
	.ack_delay_us = 40000,
	.quick_acks = 1000000000,
	.seed = 1,
	.duration_us = 5000000,
};

struct arriving {
	u64 time_ns, cumulative, sacked;	/* sacked: a packet out of order, or NEVER */
};

struct run {
	struct sender *sender;
	const struct path *path;
	struct path_result *result;
	struct arriving *acks;	/* a ring */
	u64 ack_room, ack_first, ack_end;
	u64 interface_free_ns, bottleneck_free_ns, packet_ns, interface_packet_ns;
	u64 expected, received, waiting, waiting_since_ns, last_ack_ns;
	u64 may_send_ns, timer_ns, round_end, random, one_way_ns;
};

static u32 random_number(struct run *run)
{
	run->random = run->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return run->random >> 33;
}

static void add_row(struct path_row **rows, size_t *count, size_t *room, struct sender *sender)
{
	const struct tcp_sock *tp = &sender->tcp;

	if (*count == *room) {
		*room = 2 * *room + 64;
		*rows = realloc(*rows, *room * sizeof(**rows));
		if (!*rows)
			abort();
	}
	(*rows)[(*count)++] = (struct path_row){
		.time_us = shim_now_us, .cwnd = tp->snd_cwnd, .ssthresh = tp->snd_ssthresh,
		.flight = tcp_packets_in_flight(tp), .una = sender->una,
		.state = tp->inet_conn.icsk_ca_state,
	};
}

static void emit_ack(struct run *run, u64 time_ns, u64 sacked)
{
	struct arriving *larger;
	u64 i;

	if (run->ack_end - run->ack_first == run->ack_room) {
		larger = calloc(2 * run->ack_room, sizeof(*larger));
		if (!larger)
			abort();
		for (i = run->ack_first; i < run->ack_end; i++)
			larger[i % (2 * run->ack_room)] = run->acks[i % run->ack_room];
		free(run->acks);
		run->acks = larger;
		run->ack_room *= 2;
	}
	/* Half of the delay lies before the receiver, half behind it. */
	time_ns += run->one_way_ns;
	if (run->path->jitter_us)
		time_ns += (u64)random_number(run) % (run->path->jitter_us * 1000);
	run->last_ack_ns = max(run->last_ack_ns, time_ns);
	run->acks[run->ack_end++ % run->ack_room] = (struct arriving){
		.time_ns = run->last_ack_ns, .cumulative = run->expected, .sacked = sacked,
	};
	run->waiting = 0;
}

static u64 delayed_ack_ns(const struct run *run)
{
	return run->waiting ? run->waiting_since_ns + run->path->ack_delay_us * 1000 : NEVER;
}

static void receive(struct run *run, u64 number, u64 time_ns)
{
	struct sender *sender = run->sender;

	if (delayed_ack_ns(run) <= time_ns)
		emit_ack(run, delayed_ack_ns(run), NEVER);
	run->received++;
	sender_packet(sender, number)->flags |= PACKET_RECEIVED;
	if (number > run->expected) {
		emit_ack(run, time_ns, number);
		return;
	}
	if (number == run->expected) {
		bool hole = number + 1 < sender->next;

		while (run->expected < sender->next &&
		       sender_packet(sender, run->expected)->flags & PACKET_RECEIVED)
			run->expected++;
		if (!hole && ++run->waiting == 1)
			run->waiting_since_ns = time_ns;
		if (!hole && run->waiting < run->path->ack_every && run->received > run->path->quick_acks)
			return;
	}
	emit_ack(run, time_ns, NEVER);
}

static void carry(struct run *run, u64 number, u64 now_ns)
{
	const struct path *path = run->path;
	u64 arrival_ns = max(now_ns, run->interface_free_ns) + run->interface_packet_ns;
	u64 queued;

	run->interface_free_ns = arrival_ns;
	run->result->sent++;
	queued = run->bottleneck_free_ns > arrival_ns ?
		(run->bottleneck_free_ns - arrival_ns + run->packet_ns - 1) / run->packet_ns : 0;
	if (queued > path->buffer_packets ||
	    (path->loss_per_million && random_number(run) % 1000000 < path->loss_per_million)) {
		run->result->dropped++;
		return;
	}
	run->result->queue_max = max(run->result->queue_max, queued);
	run->bottleneck_free_ns = max(run->bottleneck_free_ns, arrival_ns) + run->packet_ns;
	receive(run, number, run->bottleneck_free_ns + run->one_way_ns);
}

static bool is_paced(const struct run *run)
{
	/* The kernel lets the first ten segments of a connection go at once. */
	return sender_sock(run->sender)->sk_pacing_status == SK_PACING_NEEDED &&
	       run->sender->tcp.data_segs_out >= 10;
}

static void arm_timer(struct run *run, u64 now_ns)
{
	const struct tcp_sock *tp = &run->sender->tcp;

	run->timer_ns = tp->packets_out ?
		now_ns + (u64)jiffies_to_usecs(tp->inet_conn.icsk_rto) * 1000 : NEVER;
}

static void send_all(struct run *run, u64 now_ns)
{
	struct sender *sender = run->sender;
	bool sent = false;

	run->may_send_ns = max(run->may_send_ns, now_ns);
	sender_prepare(sender);
	while (sender_allowed(sender)) {
		if (is_paced(run) && run->may_send_ns > now_ns)
			break;
		carry(run, sender_transmit(sender), now_ns);
		sent = true;
		if (is_paced(run))
			run->may_send_ns += (u64)sender->tcp.mss_cache * NSEC_PER_SEC /
				max(sender_sock(sender)->sk_pacing_rate, 1UL);
	}
	if (sent || !sender_allowed(sender))
		sender_flushed(sender);
	if (sent && run->timer_ns == NEVER)
		arm_timer(run, now_ns);
}

static void take_ack(struct run *run)
{
	struct arriving *arriving = &run->acks[run->ack_first++ % run->ack_room];
	struct sender *sender = run->sender;
	struct path_result *result = run->result;
	u64 time_ns = arriving->time_ns, before = sender->una;

	/* As the guest's trace has it: the state before the first ACK behind the round. */
	if (before >= run->round_end) {
		run->round_end = sender->next;
		add_row(&result->rounds, &result->round_count, &result->round_room, sender);
	}
	sender_ack(sender, &(struct ack){
		.cumulative = arriving->cumulative,
		.sacked_from = arriving->sacked == NEVER ? 0 : arriving->sacked,
		.sacked_to = arriving->sacked == NEVER ? 0 : arriving->sacked + 1,
		.rtt_us = MEASURE_RTT,
	});
	result->acks++;
	if (run->path->trace)
		add_row(&result->rows, &result->row_count, &result->row_room, sender);
	if (sender->una > before || arriving->sacked != NEVER)
		arm_timer(run, time_ns);
}

/* The next thing that happens, not after @end_ns. False: nothing does. */
static bool step(struct run *run, u64 start_us, u64 end_ns)
{
	u64 ack_ns = run->ack_first < run->ack_end ? run->acks[run->ack_first % run->ack_room].time_ns : NEVER;
	u64 pacing_ns = sender_allowed(run->sender) ? run->may_send_ns : NEVER;
	u64 wait_ns = delayed_ack_ns(run);
	u64 now_ns;

	wait_ns = wait_ns == NEVER ? NEVER : wait_ns + run->one_way_ns;
	now_ns = min(min(ack_ns, pacing_ns), min(wait_ns, run->timer_ns));
	if (now_ns >= end_ns)
		return false;
	shim_now_us = start_us + now_ns / 1000;
	if (now_ns == wait_ns && now_ns < ack_ns) {
		emit_ack(run, delayed_ack_ns(run), NEVER);
	} else if (now_ns == ack_ns) {
		take_ack(run);
		send_all(run, now_ns);
	} else if (now_ns == pacing_ns) {
		send_all(run, now_ns);
	} else {
		sender_timeout(run->sender);
		arm_timer(run, now_ns);
		send_all(run, now_ns);
	}
	return true;
}

void path_run(struct sender *sender, const struct path *path, struct path_result *result)
{
	u64 wire_bits = (sender->tcp.mss_cache + path->overhead_bytes) * 8, start_us = shim_now_us;
	size_t told = record.tolds, i;
	struct run run = {
		.sender = sender, .path = path, .result = result,
		.ack_room = 1024, .timer_ns = NEVER, .random = path->seed,
		.expected = sender->una, .round_end = sender->una,
		.packet_ns = max_t(u64, wire_bits * NSEC_PER_SEC / max_t(u64, path->bits_per_second, 1), 1),
		.interface_packet_ns = path->interface_bits_per_second ?
			wire_bits * NSEC_PER_SEC / path->interface_bits_per_second : 0,
	};

	run.one_way_ns = path->rtt_us * 1000;
	run.one_way_ns -= min(run.one_way_ns, run.packet_ns + run.interface_packet_ns);
	run.one_way_ns /= 2;
	memset(result, 0, sizeof(*result));
	run.acks = calloc(run.ack_room, sizeof(*run.acks));
	if (!run.acks)
		abort();
	send_all(&run, 0);
	while (step(&run, start_us, path->duration_us * 1000)) {
		for (i = told; path->until_exit && i < record.tolds; i++)
			if (record.told[i].event == SLOW_START_EXIT)
				goto out;
		told = record.tolds;
	}
	shim_now_us = start_us + path->duration_us;
out:
	free(run.acks);
}

void path_free(struct path_result *result)
{
	free(result->rounds);
	free(result->rows);
	memset(result, 0, sizeof(*result));
}
