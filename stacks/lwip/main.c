/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP receiver on lwIP. docs/stacks.md says what it is told and what it has to say.
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

static unsigned long long received;
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
	received += data->tot_len;
	tcp_recved(connection, data->tot_len);
	pbuf_free(data);
	return ERR_OK;
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

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(told("STACK_ROLE"), "receive")) {
		puts("unsupported it only receives");
		return UNSUPPORTED;
	}
	lwip_init();
	address = address_of("STACK_ADDRESS");
	mask = address_of("STACK_NETMASK");
	gateway = address_of("STACK_GATEWAY");
	if (!netif_add(&netif, &address, &mask, &gateway, &device, tap_init, ethernet_input))
		return 1;
	netif_set_default(&netif);
	netif_set_up(&netif);
	if (listen_on(atoi(told("STACK_PORT"))))
		return 1;
	puts("ready");
	for (;;) {
		struct pollfd events[] = { { device, POLLIN, 0 }, { STDIN_FILENO, POLLIN, 0 } };

		if (poll(events, 2, wait_ms()) < 0 && errno != EINTR)
			return 1;
		if (events[0].revents)
			tap_read(&netif);
		if (events[1].revents & (POLLIN | POLLHUP)) {
			char word[16];

			if (read(STDIN_FILENO, word, sizeof(word)) == 0) {
				if (!ended)
					printf("bytes %llu\n", received);
				return 0;
			}
		}
		sys_check_timeouts();
	}
}
