// SPDX-License-Identifier: GPL-2.0-only
/*
 * QEMU plugin: how often each piece of the guest's kernel code was executed,
 * between marks that the guest sets. Nothing in the guest is slower or later
 * for it: virtual time counts the guest's instructions, not what is done beside
 * them.
 *
 * A mark is the instruction that MARK holds, a no-operation that no compiler
 * emits. At each one, and at the end, the growth of all counters since the one
 * before is appended to DIRECTORY/counts.bin:
 *
 *	u32 number of pairs, pairs of (u32 block, u32 growth)
 *
 * and at the end the blocks are told in DIRECTORY/blocks.bin:
 *
 *	u64 address, u32 number of instructions, as many u8: length in bytes
 *
 * Block 0 is all code outside the kernel's half of the addresses, which is
 * counted by the instruction; any other is counted by the execution. A block
 * that an exception or an access to a device leaves early counts in full. All
 * numbers are of the host's byte order.
 *
 * Arguments: out=DIRECTORY, and calls=on to count by calls of a function instead of
 * code that QEMU generates, as its later versions require.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What QEMU's plugin interface (docs/devel/tcg-plugins) lets a plugin call. */
typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*translated)(plugin_id id, struct qemu_plugin_tb *block);
typedef void (*executed)(unsigned int processor, void *what);
typedef void (*ended)(plugin_id id, void *what);
struct information {
	const char *target;
	struct { int least, current; } version;
};

#define EXPORTED __attribute__((visibility("default")))
#define NO_REGISTERS 0
#define ADD 0

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, translated);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed, int flags, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, executed, int flags, void *);
void qemu_plugin_register_atexit_cb(plugin_id, ended, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);

EXPORTED int qemu_plugin_version = PLUGIN_VERSION;

static const uint8_t MARK[] = { 0x0f, 0x1f, 0x84, 0x00, 'h', 'o', 'w', 'd' };

#define KERNEL_HALF	(1ULL << 63)
#define SLOTS		(1u << 20)	/* far more blocks than a kernel has */

struct block {
	uint64_t address;
	uint64_t count, told;
	uint32_t instructions;
	uint8_t lengths[];
};

static struct block *blocks[SLOTS / 2];
static uint32_t block_count;
static uint32_t slots[SLOTS];	/* number of a block; 0: empty */
static FILE *counts;
static char *directory;

static void (*add_inline)(struct qemu_plugin_tb *, int, void *, uint64_t);
static const void *(*data_of)(const struct qemu_plugin_insn *);
static size_t (*copy_data)(const struct qemu_plugin_insn *, void *, size_t);

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct block *new_block(uint64_t address, uint32_t instructions)
{
	struct block *block = calloc(1, sizeof(*block) + instructions);

	if (!block || block_count == SLOTS / 2)
		fail("howdah: too many blocks of code");
	block->address = address;
	block->instructions = instructions;
	blocks[block_count++] = block;
	return block;
}

static struct block *block_of(const struct qemu_plugin_tb *code)
{
	uint64_t address = qemu_plugin_tb_vaddr(code);
	uint32_t instructions = qemu_plugin_tb_n_insns(code), number;
	uint32_t slot = (address * 0x9e3779b97f4a7c15ULL >> 40 ^ instructions) % SLOTS;
	struct block *block;

	for (; (number = slots[slot]); slot = (slot + 1) % SLOTS)
		if (blocks[number]->address == address && blocks[number]->instructions == instructions)
			return blocks[number];
	slots[slot] = block_count;
	block = new_block(address, instructions);
	for (uint32_t place = 0; place < instructions; place++)
		block->lengths[place] = qemu_plugin_insn_size(qemu_plugin_tb_get_insn(code, place));
	return block;
}

static void put(const void *what, size_t bytes, FILE *file)
{
	if (fwrite(what, bytes, 1, file) != 1)
		fail("howdah: write what was counted");
}

static void tell_counts(void)
{
	uint32_t number, pairs = 0;

	for (number = 0; number < block_count; number++)
		pairs += blocks[number]->count != blocks[number]->told;
	put(&pairs, sizeof(pairs), counts);
	for (number = 0; number < block_count; number++) {
		struct block *block = blocks[number];
		uint32_t pair[2] = { number, block->count - block->told };

		if (block->count == block->told)
			continue;
		put(pair, sizeof(pair), counts);
		block->told = block->count;
	}
}

static void on_mark(unsigned int processor, void *what)
{
	tell_counts();
}

static void on_block(unsigned int processor, void *what)
{
	((struct block *)what)->count++;
}

static void on_user_block(unsigned int processor, void *what)
{
	blocks[0]->count += (uintptr_t)what;
}

static bool is_mark(const struct qemu_plugin_insn *instruction)
{
	uint8_t bytes[sizeof(MARK)];

	if (qemu_plugin_insn_size(instruction) != sizeof(MARK))
		return false;
	if (copy_data)
		return copy_data(instruction, bytes, sizeof(bytes)) == sizeof(bytes) && !memcmp(bytes, MARK, sizeof(MARK));
	return !memcmp(data_of(instruction), MARK, sizeof(MARK));
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *code)
{
	size_t instructions = qemu_plugin_tb_n_insns(code);

	if (qemu_plugin_tb_vaddr(code) & KERNEL_HALF) {
		struct block *block = block_of(code);

		if (add_inline)
			add_inline(code, ADD, &block->count, 1);
		else
			qemu_plugin_register_vcpu_tb_exec_cb(code, on_block, NO_REGISTERS, block);
		return;
	}
	if (add_inline)
		add_inline(code, ADD, &blocks[0]->count, instructions);
	else
		qemu_plugin_register_vcpu_tb_exec_cb(code, on_user_block, NO_REGISTERS, (void *)(uintptr_t)instructions);
	for (size_t place = 0; place < instructions; place++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(code, place);

		if (is_mark(instruction))
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS, NULL);
	}
}

static FILE *open_in_directory(const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "wb");
	if (!file)
		fail(path);
	return file;
}

static void on_end(plugin_id id, void *what)
{
	FILE *file = open_in_directory("blocks.bin");

	tell_counts();
	if (fclose(counts))
		fail("howdah: close what was counted");
	for (uint32_t number = 0; number < block_count; number++) {
		const struct block *block = blocks[number];

		put(&block->address, sizeof(block->address), file);
		put(&block->instructions, sizeof(block->instructions), file);
		put(block->lengths, block->instructions, file);
	}
	if (fclose(file))
		fail("howdah: close the blocks");
}

EXPORTED int qemu_plugin_install(plugin_id id, const struct information *qemu, int count, char **arguments)
{
	bool calls = false;

	for (int number = 0; number < count; number++) {
		if (!strncmp(arguments[number], "out=", 4))
			directory = strdup(arguments[number] + 4);
		else if (!strcmp(arguments[number], "calls=on"))
			calls = true;
	}
	if (!directory) {
		fputs("howdah: the plugin needs out=DIRECTORY\n", stderr);
		return 1;
	}
	if (!calls)
		add_inline = dlsym(NULL, "qemu_plugin_register_vcpu_tb_exec_inline");
	if (qemu->version.current >= 3)	/* since then it copies */
		copy_data = dlsym(NULL, "qemu_plugin_insn_data");
	else
		data_of = dlsym(NULL, "qemu_plugin_insn_data");
	counts = open_in_directory("counts.bin");
	new_block(0, 1);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	return 0;
}
