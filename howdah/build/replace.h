/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before every line of a profile's own congestion control: what it registers
 * takes the place of a built-in one of the same name (replace.c).
 */
#ifndef HOWDAH_REPLACE_H
#define HOWDAH_REPLACE_H

struct tcp_congestion_ops;

int howdah_register_congestion_control(struct tcp_congestion_ops *ops);
void howdah_unregister_congestion_control(struct tcp_congestion_ops *ops);

/* Names, not calls: <net/tcp.h> then declares the functions above once more. */
#ifndef HOWDAH_REPLACES
#define tcp_register_congestion_control		howdah_register_congestion_control
#define tcp_unregister_congestion_control	howdah_unregister_congestion_control
#endif

#endif
