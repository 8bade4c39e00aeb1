/* SPDX-License-Identifier: Apache-2.0 */
/* The TAP interface as a network interface of lwIP, and what the environment says. */
#ifndef TAP_H
#define TAP_H

#include <lwip/netif.h>

/* A variable of the environment; ends the program where it is missing. */
const char *told(const char *name);

/* As netif_add() wants it: opens the interface; netif->state is to hold its descriptor (int). */
err_t tap_init(struct netif *netif);

/* Gives lwIP every frame that waits. */
void tap_read(struct netif *netif);

#endif
