// SPDX-License-Identifier: GPL-2.0-only
/* What the modules call: messages, memory, modules and their parameters, TCP's own arithmetic. */
#include <assert.h>
#include <stdarg.h>
#include "machine.h"

u64 shim_now_us;
struct net shim_nets[2];
struct machine machine;

void shim_print(char level, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	text[strcspn(text, "\n")] = 0;
	record_message(level, text);
}

void shim_warn(const char *file, int line, const char *condition)
{
	char text[256];

	snprintf(text, sizeof(text), "kernel warning: %s:%d: %s", file, line, condition);
	record_breach(text);
}

/* Each piece of memory is prefixed by its size, so that what is left can be counted. */
void *shim_allocate(size_t bytes, gfp_t flags)
{
	u64 *memory;

	if (machine.fail_allocations || bytes > 1 << 30)
		return NULL;
	memory = malloc(bytes + sizeof(u64));
	if (!memory)
		return NULL;
	*memory = bytes;
	/* Without __GFP_ZERO there is anything in it. */
	memset(memory + 1, flags & __GFP_ZERO ? 0 : 0xa5, bytes);
	machine.allocations++;
	machine.allocated_bytes += bytes;
	return memory + 1;
}

void shim_free(const void *memory)
{
	u64 *start = (u64 *)(uintptr_t)memory;

	if (!start)
		return;
	machine.allocations--;
	machine.allocated_bytes -= start[-1];
	free(start - 1);
}

void shim_add_module(struct module *module)
{
	struct module **place = &machine.modules;

	while (*place)
		place = &(*place)->next;
	*place = module;
}

/* Descriptions may be told before or after the parameter itself. */
static struct { struct module *module; const char *name, *text; } descriptions[512];
static size_t described;

void shim_describe_parameter(struct module *module, const char *name, const char *text)
{
	struct kernel_param *parameter;

	for (parameter = module->parameters; parameter; parameter = parameter->shim_next)
		if (!strcmp(parameter->name, name))
			parameter->shim_text = text;
	if (described < ARRAY_SIZE(descriptions)) {
		descriptions[described].module = module;
		descriptions[described].name = name;
		descriptions[described++].text = text;
	}
}

/* Files without a module_init of their own that have parameters: the core is made of several. */
static struct module *parts[64];

static void remember_part(struct module *module)
{
	size_t i;

	for (i = 0; parts[i] && parts[i] != module; i++)
		assert(i + 1 < ARRAY_SIZE(parts));
	parts[i] = module;
}

void shim_add_parameter(struct module *module, struct kernel_param *parameter)
{
	size_t i;

	for (i = 0; i < described; i++)
		if (descriptions[i].module == module && !strcmp(descriptions[i].name, parameter->name))
			parameter->shim_text = descriptions[i].text;
	parameter->shim_next = module->parameters;
	module->parameters = parameter;
	remember_part(module);
}

/* Parameters that another file of the module has than the one with its init. */
static void take_parameters_of_parts(struct module *module)
{
	struct kernel_param **last = &module->parameters;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts) && parts[i]; i++) {
		if (parts[i] == module || strcmp(parts[i]->name, module->name))
			continue;
		while (*last)
			last = &(*last)->shim_next;
		*last = parts[i]->parameters;
		parts[i]->parameters = NULL;
	}
}

struct module *machine_module(const char *name)
{
	struct module *module = machine.modules;

	while (module && strcmp(module->name, name))
		module = module->next;
	if (module)
		take_parameters_of_parts(module);
	return module;
}

int machine_set_parameter(const char *module_name, const char *name, const char *value)
{
	struct module *module = machine_module(module_name);
	struct kernel_param *parameter = module ? module->parameters : NULL;

	for (; parameter; parameter = parameter->shim_next)
		if (!strcmp(parameter->name, name))
			return parameter->ops->set ? parameter->ops->set(value, parameter) : -EPERM;
	return -ENOENT;
}

int machine_load(struct module *module)
{
	int error = module->loaded ? -EEXIST : module->init ? module->init() : 0;

	if (!error)
		module->loaded = true;
	return error;
}

int machine_unload(struct module *module)
{
	if (!module->loaded)
		return -ENOENT;
	if (module->users)
		return -EBUSY;
	if (module->exit)
		module->exit();
	module->loaded = false;
	return 0;
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	struct tcp_congestion_ops *other;

	if (!ops->ssthresh || !ops->undo_cwnd || !(ops->cong_avoid || ops->cong_control))
		return -EINVAL;
	for (other = machine.algorithms; other; other = other->next)
		if (!strcmp(other->name, ops->name))
			return -EEXIST;
	ops->next = machine.algorithms;
	machine.algorithms = ops;
	return 0;
}

void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops)
{
	struct tcp_congestion_ops **place = &machine.algorithms;

	while (*place && *place != ops)
		place = &(*place)->next;
	WARN_ON(!*place);
	if (*place)
		*place = ops->next;
}

const struct tcp_congestion_ops *machine_algorithm(const char *name)
{
	const struct tcp_congestion_ops *ops = machine.algorithms;

	while (ops && strcmp(ops->name, name))
		ops = ops->next;
	return ops;
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 grown = min(cwnd + acked, tp->snd_ssthresh);

	tcp_snd_cwnd_set(tp, min(grown, tp->snd_cwnd_clamp));
	return acked - (grown - cwnd);
}

void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 window, u32 acked)
{
	u32 cwnd = tcp_snd_cwnd(tp), steps;

	/* Credit from a time when a step took more is worth one step now. */
	if (tp->snd_cwnd_cnt >= window) {
		tp->snd_cwnd_cnt = 0;
		cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	steps = tp->snd_cwnd_cnt / window;
	tp->snd_cwnd_cnt -= steps * window;
	tcp_snd_cwnd_set(tp, min(cwnd + steps, tp->snd_cwnd_clamp));
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U);
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), tcp_sk(sk)->prior_cwnd);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static struct { struct pernet_operations *operations; void *memory[2]; } pernets[16];

int register_pernet_subsys(struct pernet_operations *operations)
{
	unsigned int id, i;
	int error = 0;

	for (id = 1; id < ARRAY_SIZE(pernets) && pernets[id].operations; id++)
		;
	if (id == ARRAY_SIZE(pernets))
		return -ENOMEM;
	for (i = 0; i < 2 && operations->size; i++) {
		pernets[id].memory[i] = kzalloc(operations->size, GFP_KERNEL);
		if (!pernets[id].memory[i])
			error = -ENOMEM;
	}
	pernets[id].operations = operations;
	if (operations->id)
		*operations->id = id;
	for (i = 0; i < 2 && !error && operations->init; i++)
		error = operations->init(&shim_nets[i]);
	if (error) {
		while (operations->exit && operations->init && i-- > 1)
			operations->exit(&shim_nets[i - 1]);
		kfree(pernets[id].memory[0]);
		kfree(pernets[id].memory[1]);
		memset(&pernets[id], 0, sizeof(pernets[id]));
	}
	return error;
}

void unregister_pernet_subsys(struct pernet_operations *operations)
{
	unsigned int id, i;

	for (id = 1; id < ARRAY_SIZE(pernets); id++) {
		if (pernets[id].operations != operations)
			continue;
		for (i = 0; i < 2; i++) {
			if (operations->exit)
				operations->exit(&shim_nets[i]);
		}
		kfree(pernets[id].memory[0]);
		kfree(pernets[id].memory[1]);
		memset(&pernets[id], 0, sizeof(pernets[id]));
	}
}

void *net_generic(const struct net *net, unsigned int id)
{
	return pernets[id].memory[net - shim_nets];
}
