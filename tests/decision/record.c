// SPDX-License-Identifier: GPL-2.0-only
/* What modules tell, and the rules they break. */
#include <net/inet_sock.h>
#include "machine.h"
#include "trace.h"

#define MOST_TEXT	65536

struct record record;

/* The tracepoint howdah:slow_start. */
void trace_slow_start(const struct sock *sk, u32 event, u32 reason, u32 cwnd,
		      u32 quantity, u32 threshold)
{
	record.told_ever++;
	if (record.tolds == record.told_room) {
		record.told_room = 2 * record.told_room + 64;
		record.told = realloc(record.told, record.told_room * sizeof(*record.told));
		if (!record.told)
			abort();
	}
	record.told[record.tolds++] = (struct told){
		.time_us = shim_now_us,
		.event = event,
		.reason = reason,
		.cwnd = cwnd,
		.ssthresh = tcp_sk(sk)->snd_ssthresh,
		.quantity = quantity,
		.threshold = threshold,
		.round = slow_start(sk)->round,
		.min_rtt_us = slow_start(sk)->min_rtt_us,
	};
}

static void append(char **to, size_t *bytes, const char *text)
{
	size_t length = strlen(text);

	if (*bytes + length + 2 > MOST_TEXT)
		return;
	if (!*to)
		*to = malloc(MOST_TEXT);
	if (!*to)
		abort();
	memcpy(*to + *bytes, text, length);
	*bytes += length;
	(*to)[(*bytes)++] = '\n';
	(*to)[*bytes] = 0;
}

void record_breach(const char *text)
{
	record.breach_count++;
	append(&record.breaches, &record.breach_bytes, text);
}

void record_message(char level, const char *text)
{
	char line[600];

	snprintf(line, sizeof(line), "%c %s", level, text);
	append(&record.messages, &record.message_bytes, line);
}

void record_clear(void)
{
	record.tolds = 0;
	record.breach_bytes = 0;
	record.message_bytes = 0;
	record.breach_count = 0;
}
