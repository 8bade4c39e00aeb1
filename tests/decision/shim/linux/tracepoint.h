/* SPDX-License-Identifier: GPL-2.0-only */
/* A tracepoint is a function that the tests write (record.c). */
#ifndef SHIM_LINUX_TRACEPOINT_H
#define SHIM_LINUX_TRACEPOINT_H

#include <linux/types.h>

#define TP_PROTO(...)	__VA_ARGS__
#define TRACE_EVENT(name, prototype, ...)	void trace_##name(prototype)

#endif
