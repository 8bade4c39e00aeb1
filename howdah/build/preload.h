/* SPDX-License-Identifier: Apache-2.0 */
/* What a library that is loaded before the C library's functions needs of them. */
#ifndef HOWDAH_PRELOAD_H
#define HOWDAH_PRELOAD_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The original, which must be there: nothing could be done without it. */
static inline void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "howdah: the C library has no %s\n", name);
		abort();
	}
	return found;
}

#endif
