// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fuzz target: bytes become the life of two connections to one peer, which takes every
 * order that TCP may bring about. A broken rule (hook.c), memory left over, or a module
 * that cannot be unloaded ends the program, as does the sanitizers' report; then the life
 * is printed in the runner's commands.
 */
#include <stdarg.h>
#include <sanitizer/common_interface_defs.h>
#include "sender.h"

#define MOST_STEPS	100
#define MOST_PACKETS	256	/* of one step */
#define MOST_ACKS	32	/* of one round: a large window is acknowledged in larger pieces */
#define MOST_PARAMETERS	64
#define LOG_BYTES	(1 << 16)

struct input {
	const u8 *data;
	size_t left;
};

static char story[LOG_BYTES];
static size_t told_bytes;
static struct sender senders[2];
static struct module *plug_in, *companion;
static struct { struct kernel_param *parameter; char value[64]; } defaults[MOST_PARAMETERS];
static size_t parameters;

__attribute__((format(printf, 1, 2)))
static void tell(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(story + told_bytes, LOG_BYTES - told_bytes, format, arguments);
	va_end(arguments);
	told_bytes = min_t(size_t, told_bytes + length, LOG_BYTES - 1);
}

static void print_story(void)
{
	fprintf(stderr, "--- what was done:\n%.*s---\n", (int)told_bytes, story);
}

static void fail(const char *what)
{
	fprintf(stderr, "BROKEN: %s\n", what);
	/* Not a sanitizer's death, which would tell the story itself. */
	print_story();
	abort();
}

static void fail_where_broken(void)
{
	if (record.breach_count)
		fail(record.breaches);
	record_clear();
}

static u8 take(struct input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->data++;
}

/* A number whose size is drawn, too: small ones are as likely as those of 32 bits. */
static u32 take_number(struct input *input)
{
	u32 bits = take(input) % 33, value = 0, got;

	for (got = 0; got < bits; got += 8)
		value = value << 8 | take(input);
	return bits < 32 ? value & ((1U << bits) - 1) : value;
}

static u32 take_below(struct input *input, u32 ceiling)
{
	return take_number(input) % ceiling;
}

/* -1, 0, something of a path, or anything. */
static s64 take_rtt(struct input *input)
{
	switch (take(input) % 8) {
	case 0:
		return -1;
	case 1:
		return 0;
	case 2:
		return take_number(input) & S32_MAX;
	case 3:
		return 1000 + take_below(input, 1000000);
	default:
		return MEASURE_RTT;
	}
}

static void open_one(struct input *input, u32 which)
{
	struct opening opening = opening_default;
	u8 shape = take(input);
	char name[TCP_CA_NAME_MAX + 16];

	snprintf(name, sizeof(name), "%s_%s", plug_in->name + 3, shape & 1 ? "cubic" : "reno");
	opening.late_ack_event = shape >> 1 & 1;
	if (shape & 4)
		opening.cwnd = 1 + take_below(input, 1000);
	if (shape & 8)
		opening.ssthresh = 2 + take_below(input, 1U << 30);
	if (shape & 16)
		opening.clamp = max(1 + take_below(input, 1U << 31), opening.cwnd);
	if (shape & 32)
		opening.handshake_rtt_us = take_below(input, 1 << 25);
	if (shape & 64)
		opening.sequence = take_number(input);
	if (shape & 128)
		opening.mss_bytes = 536 + take_below(input, 9000);
	opening.net = 0;
	tell("open %u %s cwnd=%u ssthresh=%u clamp=%u handshake_rtt_us=%u sequence=%u mss_bytes=%u late_ack_event=%u\n",
	     which, name, opening.cwnd, opening.ssthresh, opening.clamp, opening.handshake_rtt_us,
	     opening.sequence, opening.mss_bytes, opening.late_ack_event);
	if (sender_open(&senders[which], name, &opening))
		fail("a plug-in that is loaded cannot be opened");
}

static void send_some(u32 which, u32 packets)
{
	struct sender *sender = &senders[which];
	u32 sent;

	tell("send %u %u\n", which, packets);
	sender_prepare(sender);
	for (sent = 0; sent < packets && sender_allowed(sender) && sender->room <= 16 * MOST_PACKETS; sent++)
		sender_transmit(sender);
	sender_flushed(sender);
}

static void step_send(struct input *input, u32 which)
{
	send_some(which, 1 + take_below(input, MOST_PACKETS));
}

static void step_ack(struct input *input, u32 which)
{
	struct sender *sender = &senders[which];
	u32 wait_us = take_below(input, 300000), packets, sacked, after_una;
	u8 shape = take(input);
	struct ack ack;

	packets = shape & 1 ? sender->next - sender->una : take_below(input, MOST_PACKETS);
	sacked = shape & 6 ? 0 : take_below(input, 64);
	after_una = sacked ? 1 + take_below(input, 64) : 0;
	ack = (struct ack){ .cumulative = sender->una + packets, .rtt_us = take_rtt(input),
			    .ece = (shape & 0xf8) == 0xf8 };
	ack.sacked_from = ack.cumulative + after_una;
	ack.sacked_to = ack.sacked_from + sacked;
	shim_now_us += wait_us;
	tell("wait %u\nack %u packets=%u sacked_after=%u sacked=%u ece=%u", wait_us, which, packets,
	     after_una, sacked, ack.ece);
	if (ack.rtt_us != MEASURE_RTT)
		tell(" rtt_us=%lld", (long long)ack.rtt_us);
	tell("\n");
	sender_ack(sender, &ack);
}

/* A round as on a path: what is in flight is acknowledged one by one, with equal gaps. */
static void step_round(struct input *input, u32 which)
{
	struct sender *sender = &senders[which];
	u32 rtt_us = 100 + take_below(input, 700000), gap_us = take_below(input, 2000), piece;
	u64 end;

	send_some(which, MOST_PACKETS);
	tell("wait %u\n", rtt_us);
	shim_now_us += rtt_us;
	piece = 1 + (sender->next - sender->una) / MOST_ACKS;
	for (end = sender->next; sender->una < end;) {
		tell("ack %u packets=%u\nwait %u\n", which, piece, gap_us);
		sender_ack(sender, &(struct ack){ .cumulative = sender->una + piece, .rtt_us = MEASURE_RTT });
		send_some(which, 3 * piece);
		shim_now_us += gap_us;
	}
}

static void step_switch(struct input *input, u32 which)
{
	static const char *const suffixes[] = { "reno", "cubic" };
	const struct module *module = take(input) & 1 ? plug_in : companion;
	char name[TCP_CA_NAME_MAX + 16];

	snprintf(name, sizeof(name), "%s_%s", module->name + 3, suffixes[take(input) & 1]);
	tell("switch %u %s\n", which, name);
	sender_switch(&senders[which], name);
}

static void step_parameter(struct input *input)
{
	char value[16];
	size_t i;

	if (!parameters)
		return;
	i = take(input) % parameters;
	snprintf(value, sizeof(value), "%u", take_number(input));
	tell("parameter %s %s %s\n", plug_in->name, defaults[i].parameter->name, value);
	defaults[i].parameter->ops->set(value, defaults[i].parameter);
}

static void step_congestion(struct input *input, u32 which)
{
	struct sender *sender = &senders[which];
	u32 packets;

	switch (take(input) % 6) {
	case 0:
		packets = 1 + take_below(input, 256);
		tell("lose %u %u\n", which, packets);
		sender_lose(sender, packets);
		break;
	case 1:
		tell("timeout %u\n", which);
		sender_timeout(sender);
		break;
	case 2:
		tell("undo %u 0\n", which);
		sender_undo(sender, false);
		break;
	case 3:
		tell("undo %u 1\n", which);
		sender_undo(sender, true);
		break;
	case 4:
		tell("congestion %u\n", which);
		sender_local_congestion(sender);
		break;
	default:
		tell("probe-loss %u\n", which);
		sender_probe_loss(sender);
		break;
	}
}

static void step_world(struct input *input, u32 which)
{
	struct sender *sender = &senders[which];
	u32 number;

	switch (take(input) % 5) {
	case 0:
		number = take_number(input);
		tell("wait %u\n", number);
		shim_now_us += number;
		break;
	case 1:
		machine.fail_allocations = take(input) & 1;
		tell("fail-allocations %u\n", machine.fail_allocations);
		break;
	case 2:
		number = take_below(input, 1U << 30);
		tell("set %u window_bytes %u\n", which, number);
		sender->tcp.snd_wnd = number;
		break;
	case 3:
		tell("close %u\n", which);
		sender_close(sender);
		open_one(input, which);
		break;
	default:
		step_parameter(input);
		break;
	}
}

static void step(struct input *input)
{
	u8 kind = take(input);
	u32 which = kind >> 7;

	if (!senders[which].is_open) {
		open_one(input, which);
		return;
	}
	switch (kind & 15) {
	case 0: case 1: case 2: case 3:
		step_round(input, which);
		break;
	case 4: case 5: case 6:
		step_send(input, which);
		break;
	case 7: case 8: case 9: case 10:
		step_ack(input, which);
		break;
	case 11: case 12:
		step_congestion(input, which);
		break;
	case 13:
		step_switch(input, which);
		break;
	default:
		step_world(input, which);
		break;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct kernel_param *parameter;
	struct module *module;

	(void)argc;
	(void)argv;
	__sanitizer_set_death_callback(print_story);
	for (module = machine.modules; module; module = module->next) {
		if (strncmp(module->name, "ss_", 3))
			continue;
		if (!strcmp(module->name, "ss_standard"))
			companion = module;
		else
			plug_in = module;
	}
	plug_in = plug_in ?: companion;
	for (parameter = plug_in->parameters; parameter && parameters < MOST_PARAMETERS;
	     parameter = parameter->shim_next) {
		char value[PAGE_SIZE + 1] = "";

		if (!parameter->ops->get || !parameter->ops->set)
			continue;
		parameter->ops->get(value, parameter);
		value[strcspn(value, "\n")] = 0;
		defaults[parameters].parameter = parameter;
		snprintf(defaults[parameters++].value, sizeof(defaults[0].value), "%.63s", value);
	}
	return 0;
}

static void end_all(void)
{
	u32 which;

	for (which = 0; which < 2; which++) {
		tell("close %u\n", which);
		sender_close(&senders[which]);
	}
	machine.fail_allocations = false;
	if (plug_in->loaded && machine_unload(plug_in))
		fail("the plug-in cannot be unloaded");
	if (companion->loaded && machine_unload(companion))
		fail("ss_standard cannot be unloaded");
	fail_where_broken();
	if (machine.allocations)
		fail("memory is left over after everything was closed and unloaded");
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input input = { data, size };
	size_t i;
	u8 shape;

	told_bytes = 0;
	shape = take(&input);
	/* The low half of the clock wraps soon, or does not. */
	shim_now_us = shape & 1 ? (1ULL << 32) - take_number(&input) % 60000000 : 1000000;
	tell("clock %llu\n", (unsigned long long)shim_now_us);
	for (i = 0; i < parameters; i++)
		defaults[i].parameter->ops->set(defaults[i].value, defaults[i].parameter);
	for (i = shape >> 1 & 3; i; i--)
		step_parameter(&input);
	if (machine_load(companion) || (plug_in != companion && machine_load(plug_in)))
		fail("a module cannot be loaded");
	tell("load %s\n%s%s\n", companion->name, plug_in != companion ? "load " : "",
	     plug_in != companion ? plug_in->name : "");
	for (i = 0; i < MOST_STEPS && input.left; i++) {
		step(&input);
		fail_where_broken();
	}
	end_all();
	return 0;
}
