/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP receiver or sender on lwIP. docs/stacks.md says what it is told and what it has to say.
 *
 * One thread runs the library: lwip_init() starts none, and between two events the program sleeps in poll(2) until a
 * frame comes, or lwIP's next timer is due. It takes all data at once, so the window that it offers is the stack's own.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lwip/init.h>
#include <lwip/ip4_addr.h>
#include <lwip/tcp.h>
#include <lwip/timeouts.h>
#include <netif/ethernet.h>

#include "tap.h"

#define UNSUPPORTED 127

static unsigned long long received, expected; /* expected is 0 where nobody knows how much will come */
static unsigned long long to_send, written; /* to_send is 0 where it sends until it is told to stop */
static struct tcp_pcb *connection_out;
static int connected, stopping;
static int ended; /* everything came, and our FIN is on its way */

static void on_error(void *argument, err_t error)
{
	(void)argument;
	if (ended)
		return;
	fprintf(stderr, "the connection was reset (lwIP's error %d)\n", error);
	exit(1);
}

static err_t on_received(void *argument, struct tcp_pcb *connection, struct pbuf *data, err_t error)
{
	(void)argument;
	(void)error;
	if (!data) {
		printf("bytes %llu\n", received);
		ended = 1;
		return tcp_close(connection);
	}
	if (expected && received < expected && received + data->tot_len >= expected)
		puts("all");
	received += data->tot_len;
	tcp_recved(connection, data->tot_len);
	pbuf_free(data);
	return ERR_OK;
}

/* Gives lwIP as much as its send buffer takes; then, where nothing is left or it is told to stop, its FIN. */
static void give(void)
{
	static const char block[1 << 16];

	if (!connected || ended)
		return;
	while (!stopping && (!to_send || written < to_send)) {
		unsigned long long size = tcp_sndbuf(connection_out);

		if (size > sizeof(block))
			size = sizeof(block);
		if (to_send && size > to_send - written)
			size = to_send - written;
		if (!size || tcp_write(connection_out, block, size, 0) != ERR_OK)
			break;
		written += size;
	}
	if (stopping || (to_send && written == to_send)) {
		if (tcp_shutdown(connection_out, 0, 1) != ERR_OK)
			return; /* no room for the FIN: tried again when something is acknowledged */
		ended = 1;
		printf("bytes %llu\n", written);
	}
	tcp_output(connection_out);
}

static err_t on_acknowledged(void *argument, struct tcp_pcb *connection, u16_t length)
{
	(void)argument;
	(void)connection;
	(void)length;
	give();
	return ERR_OK;
}

static err_t on_connected(void *argument, struct tcp_pcb *connection, err_t error)
{
	(void)argument;
	(void)connection;
	(void)error;
	puts("connected");
	connected = 1;
	give();
	return ERR_OK;
}

static int connect_to(const char *peer, unsigned port, unsigned own_port)
{
	ip_addr_t address;
	err_t error;

	connection_out = tcp_new_ip_type(IPADDR_TYPE_V4);
	if (!connection_out || !ipaddr_aton(peer, &address))
		return -1;
	tcp_err(connection_out, on_error);
	tcp_sent(connection_out, on_acknowledged);
	error = tcp_bind(connection_out, IP4_ADDR_ANY, own_port);
	if (error == ERR_OK)
		error = tcp_connect(connection_out, &address, port, on_connected);
	if (error != ERR_OK)
		fprintf(stderr, "%s port %u: lwIP's error %d\n", peer, port, error);
	return error == ERR_OK ? 0 : -1;
}

/* What the standard input says. 0: goes on; 1: it has ended. */
static int hear(int sends)
{
	char words[64];
	ssize_t length = read(STDIN_FILENO, words, sizeof(words) - 1);

	if (length <= 0)
		return 1;
	words[length] = '\0';
	if (!sends)
		return 0;
	if (strstr(words, "start") &&
	    connect_to(told("STACK_PEER"), atoi(told("STACK_PEER_PORT")), atoi(told("STACK_PORT"))))
		exit(1);
	if (strstr(words, "stop")) {
		stopping = 1;
		give();
	}
	return 0;
}

static err_t on_accepted(void *listener, struct tcp_pcb *connection, err_t error)
{
	if (error != ERR_OK || !connection)
		return ERR_VAL;
	puts("connected");
	tcp_recv(connection, on_received);
	tcp_err(connection, on_error);
	tcp_close(listener);
	return ERR_OK;
}

static int listen_on(unsigned port)
{
	struct tcp_pcb *socket = tcp_new_ip_type(IPADDR_TYPE_V4);
	err_t error;

	if (!socket)
		return -1;
	error = tcp_bind(socket, IP4_ADDR_ANY, port);
	if (error != ERR_OK) {
		fprintf(stderr, "port %u: lwIP's error %d\n", port, error);
		return -1;
	}
	socket = tcp_listen_with_backlog(socket, 1);
	if (!socket)
		return -1;
	tcp_arg(socket, socket);
	tcp_accept(socket, on_accepted);
	return 0;
}

static ip4_addr_t address_of(const char *name)
{
	ip4_addr_t address;

	if (!ip4addr_aton(told(name), &address)) {
		fprintf(stderr, "%s is no address\n", name);
		exit(2);
	}
	return address;
}

static int wait_ms(void)
{
	u32_t sleep = sys_timeouts_sleeptime();

	return sleep == SYS_TIMEOUTS_SLEEPTIME_INFINITE ? -1 : (int)sleep;
}

int main(void)
{
	static struct netif netif;
	static int device;
	ip4_addr_t address, mask, gateway;
	const char *role = told("STACK_ROLE");
	int sends = !strcmp(role, "send");

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!sends && strcmp(role, "receive")) {
		printf("unsupported it does not %s\n", role);
		return UNSUPPORTED;
	}
	*(sends ? &to_send : &expected) = strtoull(told("STACK_BYTES"), NULL, 10);
	lwip_init();
	address = address_of("STACK_ADDRESS");
	mask = address_of("STACK_NETMASK");
	gateway = address_of("STACK_GATEWAY");
	if (!netif_add(&netif, &address, &mask, &gateway, &device, tap_init, ethernet_input))
		return 1;
	netif_set_default(&netif);
	netif_set_up(&netif);
	if (!sends && listen_on(atoi(told("STACK_PORT"))))
		return 1;
	puts("ready");
	for (;;) {
		struct pollfd events[] = { { device, POLLIN, 0 }, { STDIN_FILENO, POLLIN, 0 } };

		if (poll(events, 2, wait_ms()) < 0 && errno != EINTR)
			return 1;
		if (events[0].revents)
			tap_read(&netif);
		if (events[1].revents & (POLLIN | POLLHUP) && hear(sends)) {
			if (!ended)
				printf("bytes %llu\n", sends ? written : received);
			return 0;
		}
		sys_check_timeouts();
	}
}
