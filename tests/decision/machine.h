/* SPDX-License-Identifier: GPL-2.0-only */
/* The pretended kernel around the modules, and what is written down about them. */
#ifndef DECISION_MACHINE_H
#define DECISION_MACHINE_H

#include <linux/slab.h>
#include <net/tcp.h>
#include "slow_start.h"

struct machine {
	struct module *modules;
	struct tcp_congestion_ops *algorithms;
	bool fail_allocations;
	long allocations;	/* pieces of memory not freed yet */
	long allocated_bytes;
};

extern struct machine machine;

struct module *machine_module(const char *name);
/* 0 or a negative error number. */
int machine_load(struct module *module);
int machine_unload(struct module *module);
int machine_set_parameter(const char *module, const char *name, const char *value);
const struct tcp_congestion_ops *machine_algorithm(const char *name);

/* What a plug-in told (the tracepoint's arguments), and when. */
struct told {
	u64 time_us;
	u32 event, reason, cwnd, ssthresh, quantity, threshold, round, min_rtt_us;
};

struct record {
	struct told *told;
	size_t tolds, told_room;
	u64 told_ever;		/* events since the program began */
	char *breaches;		/* broken rules, one a line */
	size_t breach_bytes;
	u32 breach_count;
	char *messages;		/* pr_err() and the like, "level text", one a line */
	size_t message_bytes;
};

extern struct record record;

void record_breach(const char *text);
void record_message(char level, const char *text);
void record_clear(void);

#endif
