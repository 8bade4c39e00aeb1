// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands from standard input, one a line; for each, one line of JSON. README.md lists
 * them. Python writes them: harness.py. A wrong command is an error of the test.
 */
#include "path.h"

#define CONNECTIONS	256
#define MOST_WORDS	40

static struct sender *connections[CONNECTIONS];

struct command {
	char *words[MOST_WORDS];
	size_t count;
};

static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", stdout);
		else if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if (*text != '\t')
			putchar(*text);
	}
	putchar('"');
}

static void print_told(void)
{
	size_t i;

	fputs(",\"events\":[", stdout);
	for (i = 0; i < record.tolds; i++) {
		const struct told *told = &record.told[i];

		printf("%s[%llu,%u,%u,%u,%u,%u,%u,%u,%u]", i ? "," : "",
		       (unsigned long long)told->time_us, told->event, told->reason, told->cwnd,
		       told->ssthresh, told->quantity, told->threshold, told->round, told->min_rtt_us);
	}
	putchar(']');
}

static void print_sender(struct sender *sender)
{
	const struct tcp_sock *tp = &sender->tcp;
	const struct slow_start *ss = slow_start(sender_sock(sender));

	printf(",\"cwnd\":%u,\"ssthresh\":%u,\"cwnd_count\":%u,\"state\":%u,\"una\":%llu,\"next\":%llu",
	       tp->snd_cwnd, tp->snd_ssthresh, tp->snd_cwnd_cnt, tp->inet_conn.icsk_ca_state,
	       (unsigned long long)sender->una, (unsigned long long)sender->next);
	printf(",\"packets_out\":%u,\"lost_out\":%u,\"sacked_out\":%u,\"retrans_out\":%u,\"prior_cwnd\":%u",
	       tp->packets_out, tp->lost_out, tp->sacked_out, tp->retrans_out, tp->prior_cwnd);
	printf(",\"total_retrans\":%u,\"pacing_rate\":%lu,\"max_pacing_rate\":%lu,\"pacing\":%u,\"srtt_us\":%u",
	       tp->total_retrans, sender_sock(sender)->sk_pacing_rate,
	       sender_sock(sender)->sk_max_pacing_rate, sender_sock(sender)->sk_pacing_status, tp->srtt_us / 8);
	printf(",\"plain\":%u,\"round\":%u,\"joined\":%u,\"delivered\":%u,\"data_segs_out\":%u", ss->plain,
	       ss->round, ss->joined, tp->delivered, tp->data_segs_out);
	printf(",\"tos\":%u", inet_sk(sender_sock(sender))->tos);
}

static void print_end(int error)
{
	printf(",\"error\":%d,\"now_us\":%llu,\"allocations\":%ld,\"allocated_bytes\":%ld", error,
	       (unsigned long long)shim_now_us, machine.allocations, machine.allocated_bytes);
	print_told();
	if (record.breach_bytes) {
		fputs(",\"breaches\":", stdout);
		print_text(record.breaches);
	}
	if (record.message_bytes) {
		fputs(",\"messages\":", stdout);
		print_text(record.messages);
	}
	puts("}");
	record_clear();
}

static const char *word(const struct command *command, size_t i)
{
	return i < command->count ? command->words[i] : "";
}

static s64 number(const struct command *command, size_t i)
{
	return strtoll(word(command, i), NULL, 0);
}

/* The value of "name=value" among the words from the third on, or what it is otherwise. */
static s64 option(const struct command *command, const char *name, s64 otherwise)
{
	size_t length = strlen(name), i;

	for (i = 2; i < command->count; i++)
		if (!strncmp(command->words[i], name, length) && command->words[i][length] == '=')
			return strtoll(command->words[i] + length + 1, NULL, 0);
	return otherwise;
}

#define OPTION(to, name)	((to)->name = option(command, #name, (to)->name))

static int open_connection(const struct command *command, struct sender **place)
{
	struct opening opening = opening_default;
	int error;

	OPTION(&opening, mss_bytes);
	OPTION(&opening, cwnd);
	OPTION(&opening, ssthresh);
	OPTION(&opening, clamp);
	OPTION(&opening, handshake_rtt_us);
	OPTION(&opening, sequence);
	OPTION(&opening, window_bytes);
	OPTION(&opening, unsent_packets);
	OPTION(&opening, late_ack_event);
	OPTION(&opening, net);
	OPTION(&opening, peer);
	OPTION(&opening, slow_start_after_idle);
	OPTION(&opening, ipv6);
	if (*place)
		return -EBUSY;
	*place = calloc(1, sizeof(**place));
	if (!*place)
		abort();
	error = sender_open(*place, word(command, 2), &opening);
	if (error) {
		free(*place);
		*place = NULL;
	}
	return error;
}

static void print_rows(const char *name, const struct path_row *rows, size_t count)
{
	size_t i;

	printf(",\"%s\":[", name);
	for (i = 0; i < count; i++)
		printf("%s[%llu,%u,%u,%u,%llu,%u]", i ? "," : "", (unsigned long long)rows[i].time_us,
		       rows[i].cwnd, rows[i].ssthresh, rows[i].flight, (unsigned long long)rows[i].una,
		       rows[i].state);
	putchar(']');
}

static void run_path(const struct command *command, struct sender *sender)
{
	struct path path = path_default;
	struct path_result result;

	OPTION(&path, bits_per_second);
	OPTION(&path, interface_bits_per_second);
	OPTION(&path, rtt_us);
	OPTION(&path, buffer_packets);
	OPTION(&path, overhead_bytes);
	OPTION(&path, ack_every);
	OPTION(&path, ack_delay_us);
	OPTION(&path, quick_acks);
	OPTION(&path, jitter_us);
	OPTION(&path, loss_per_million);
	OPTION(&path, seed);
	OPTION(&path, duration_us);
	OPTION(&path, until_exit);
	OPTION(&path, trace);
	path_run(sender, &path, &result);
	printf(",\"sent\":%llu,\"dropped\":%llu,\"acks\":%llu,\"queue_max\":%llu",
	       (unsigned long long)result.sent, (unsigned long long)result.dropped,
	       (unsigned long long)result.acks, (unsigned long long)result.queue_max);
	print_rows("rounds", result.rounds, result.round_count);
	print_rows("rows", result.rows, result.row_count);
	path_free(&result);
}

static void acknowledge(const struct command *command, struct sender *sender)
{
	struct ack ack = {
		.cumulative = sender->una + option(command, "packets", 0),
		.rtt_us = option(command, "rtt_us", MEASURE_RTT),
		.ece = option(command, "ece", 0),
	};

	/* Counted from the first packet that is not acknowledged after this ACK. */
	ack.sacked_from = ack.cumulative + option(command, "sacked_after", 0);
	ack.sacked_to = ack.sacked_from + option(command, "sacked", 0);
	sender_ack(sender, &ack);
}

static int set_field(const struct command *command, struct sender *sender)
{
	struct tcp_sock *tp = &sender->tcp;
	s64 value = number(command, 3);
	struct { const char *name; u32 *field; } fields[] = {
		{ "cwnd", &tp->snd_cwnd }, { "ssthresh", &tp->snd_ssthresh },
		{ "cwnd_count", &tp->snd_cwnd_cnt }, { "clamp", &tp->snd_cwnd_clamp },
		{ "window_bytes", &tp->snd_wnd }, { "srtt_us", &tp->srtt_us },
		{ "write_seq", &tp->write_seq }, { "app_limited", &tp->app_limited },
	};
	size_t i;

	if (!strcmp(word(command, 2), "unsent_packets")) {
		sender->unsent = value;
		return 0;
	}
	if (!strcmp(word(command, 2), "max_pacing_rate")) {
		sender_sock(sender)->sk_max_pacing_rate = value;
		return 0;
	}
	if (!strcmp(word(command, 2), "tos")) {
		inet_sk(sender_sock(sender))->tos = value;
		return 0;
	}
	if (!strcmp(word(command, 2), "pacing")) {
		sender_sock(sender)->sk_pacing_status = value;
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!strcmp(fields[i].name, word(command, 2))) {
			*fields[i].field = value;
			return 0;
		}
	}
	return -ENOENT;
}

static int send_packets(const struct command *command, struct sender *sender)
{
	u32 wanted = number(command, 2) ?: U32_MAX, sent = 0;

	sender_prepare(sender);
	while (sent < wanted && sender_allowed(sender)) {
		sender_transmit(sender);
		sent++;
	}
	sender_flushed(sender);
	printf(",\"sent\":%u", sent);
	return 0;
}

static int of_connection(const struct command *command)
{
	struct sender **place = &connections[number(command, 1) & (CONNECTIONS - 1)], *sender;
	const char *name = word(command, 0);
	int error = 0;

	if (!strcmp(name, "open"))
		error = open_connection(command, place);
	sender = *place;
	if (!sender)
		return error ?: -ENOTCONN;
	if (!strcmp(name, "switch"))
		error = sender_switch(sender, word(command, 2));
	else if (!strcmp(name, "send"))
		error = send_packets(command, sender);
	else if (!strcmp(name, "ack"))
		acknowledge(command, sender);
	else if (!strcmp(name, "lose"))
		sender_lose(sender, number(command, 2));
	else if (!strcmp(name, "timeout"))
		sender_timeout(sender);
	else if (!strcmp(name, "congestion"))
		sender_local_congestion(sender);
	else if (!strcmp(name, "probe-loss"))
		sender_probe_loss(sender);
	else if (!strcmp(name, "undo"))
		sender_undo(sender, number(command, 2));
	else if (!strcmp(name, "set"))
		error = set_field(command, sender);
	else if (!strcmp(name, "path"))
		run_path(command, sender);
	else if (strcmp(name, "open") && strcmp(name, "state") && strcmp(name, "close"))
		error = -ENOSYS;
	print_sender(sender);
	if (!strcmp(name, "close")) {
		sender_close(sender);
		free(sender);
		*place = NULL;
	}
	return error;
}

static int list_parameters(const struct command *command)
{
	struct module *module = machine_module(word(command, 1));
	struct kernel_param *parameter;
	char value[PAGE_SIZE + 1];

	if (!module)
		return -ENOENT;
	fputs(",\"parameters\":[", stdout);
	for (parameter = module->parameters; parameter; parameter = parameter->shim_next) {
		value[0] = 0;
		if (parameter->ops->get)
			parameter->ops->get(value, parameter);
		value[strcspn(value, "\n")] = 0;
		fputs(parameter == module->parameters ? "[" : ",[", stdout);
		print_text(parameter->name);
		putchar(',');
		print_text(value);
		putchar(',');
		print_text(parameter->shim_text ?: "");
		putchar(']');
	}
	putchar(']');
	return 0;
}

static int list_modules(void)
{
	const struct module *module;
	const struct tcp_congestion_ops *ops;

	fputs(",\"modules\":[", stdout);
	for (module = machine.modules; module; module = module->next) {
		print_text(module->name);
		fputs(module->next ? "," : "", stdout);
	}
	fputs("],\"algorithms\":[", stdout);
	for (ops = machine.algorithms; ops; ops = ops->next) {
		print_text(ops->name);
		fputs(ops->next ? "," : "", stdout);
	}
	putchar(']');
	return 0;
}

static int of_module(const struct command *command, int (*function)(struct module *module))
{
	struct module *module = machine_module(word(command, 1));

	return module ? function(module) : -ENOENT;
}

static void obey(const struct command *command)
{
	const char *name = word(command, 0);
	int error = 0;

	printf("{\"command\":");
	print_text(name);
	if (!strcmp(name, "load"))
		error = of_module(command, machine_load);
	else if (!strcmp(name, "unload"))
		error = of_module(command, machine_unload);
	else if (!strcmp(name, "parameter"))
		error = machine_set_parameter(word(command, 1), word(command, 2), word(command, 3));
	else if (!strcmp(name, "parameters"))
		error = list_parameters(command);
	else if (!strcmp(name, "modules"))
		error = list_modules();
	else if (!strcmp(name, "fail-allocations"))
		machine.fail_allocations = number(command, 1);
	else if (!strcmp(name, "clock"))
		shim_now_us = number(command, 1);
	else if (!strcmp(name, "wait"))
		shim_now_us += number(command, 1);
	else
		error = of_connection(command);
	print_end(error);
}

int main(void)
{
	struct command command;
	char line[4096];
	size_t i;

	while (fgets(line, sizeof(line), stdin)) {
		command.count = 0;
		for (char *text = strtok(line, " \n"); text && command.count < MOST_WORDS; text = strtok(NULL, " \n"))
			command.words[command.count++] = text;
		if (!command.count)
			continue;
		obey(&command);
		fflush(stdout);
	}
	/* What the sanitizer finds after this is a leak of a module. */
	for (i = 0; i < CONNECTIONS; i++) {
		if (connections[i])
			sender_close(connections[i]);
		free(connections[i]);
	}
	free(record.told);
	free(record.breaches);
	free(record.messages);
	return 0;
}
