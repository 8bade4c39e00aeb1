/* SPDX-License-Identifier: GPL-2.0-only */
#include <linux/types.h>
#include <strings.h>

#define strscpy(to, from, size)	((ssize_t)snprintf(to, size, "%s", from))
