/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <lwip/etharp.h>
#include <lwip/pbuf.h>
#include <netif/ethernet.h>

#define MOST_FRAME_BYTES 65536
#define UNSUPPORTED 127

const char *told(const char *name)
{
	const char *value = getenv(name);

	if (!value || !*value) {
		fprintf(stderr, "%s is not set\n", name);
		exit(2);
	}
	return value;
}

static err_t tap_output(struct netif *netif, struct pbuf *packet)
{
	static unsigned char frame[MOST_FRAME_BYTES];
	int device = *(int *)netif->state;
	u16_t length = pbuf_copy_partial(packet, frame, packet->tot_len, 0);

	return write(device, frame, length) == length ? ERR_OK : ERR_IF;
}

err_t tap_init(struct netif *netif)
{
	const char *interface = told("STACK_INTERFACE");
	unsigned char *mac = netif->hwaddr;
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (device < 0) {
		printf("unsupported /dev/net/tun: %s\n", strerror(errno));
		exit(UNSUPPORTED);
	}
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(device, TUNSETIFF, &request)) {
		fprintf(stderr, "%s: %s\n", interface, strerror(errno));
		return ERR_IF;
	}
	if (sscanf(told("STACK_MAC"), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4,
		   mac + 5) != ETH_HWADDR_LEN)
		return ERR_ARG;
	netif->hwaddr_len = ETH_HWADDR_LEN;
	netif->mtu = atoi(told("STACK_MTU"));
	netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
	netif->name[0] = 't';
	netif->name[1] = 'p';
	netif->output = etharp_output;
	netif->linkoutput = tap_output;
	*(int *)netif->state = device;
	return ERR_OK;
}

void tap_read(struct netif *netif)
{
	static unsigned char frame[MOST_FRAME_BYTES];
	int device = *(int *)netif->state;
	ssize_t length;

	while ((length = read(device, frame, sizeof(frame))) > 0) {
		struct pbuf *packet = pbuf_alloc(PBUF_RAW, length, PBUF_RAM);

		if (!packet) {
			fprintf(stderr, "no memory for a frame\n");
			exit(1);
		}
		pbuf_take(packet, frame, length);
		if (netif->input(packet, netif) != ERR_OK)
			pbuf_free(packet);
	}
}
