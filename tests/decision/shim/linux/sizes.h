/* SPDX-License-Identifier: GPL-2.0-only */
#define SZ_1K	0x00000400
#define SZ_4K	0x00001000
#define SZ_8K	0x00002000
#define SZ_16K	0x00004000
#define SZ_64K	0x00010000
#define SZ_1M	0x00100000
#define SZ_16M	0x01000000
#define SZ_1G	0x40000000
