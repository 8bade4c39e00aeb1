// SPDX-License-Identifier: GPL-2.0-only
/* Reading module parameters, with the answers the kernel gives to nonsense. */
#include "machine.h"

int kstrtoull(const char *text, unsigned int base, unsigned long long *number)
{
	char *end;

	/* strtoull() takes signs and blanks; the kernel takes a plus and one line end. */
	if (*text == '+')
		text++;
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &end, base);
	if (end == text || (*end && strcmp(end, "\n")))
		return -EINVAL;
	return errno ? -ERANGE : 0;
}

int kstrtouint(const char *text, unsigned int base, unsigned int *number)
{
	unsigned long long wide;
	int error = kstrtoull(text, base, &wide);

	if (error)
		return error;
	*number = wide;
	return *number == wide ? 0 : -ERANGE;
}

int kstrtoint(const char *text, unsigned int base, int *number)
{
	bool negative = *text == '-';
	unsigned long long wide;
	int error = kstrtoull(text + negative, base, &wide);

	if (error)
		return error;
	if (wide > (unsigned long long)INT_MAX + negative)
		return -ERANGE;
	*number = negative ? (int)-(long long)wide : (int)wide;
	return 0;
}

int kstrtobool(const char *text, bool *value)
{
	if (strchr("1yYtT", text[0]) && text[0])
		*value = true;
	else if (strchr("0nNfF", text[0]) && text[0])
		*value = false;
	else
		return -EINVAL;
	return 0;
}

#define INTEGER(type, c_type, reader, wide_type, format)			\
int param_set_##type(const char *text, const struct kernel_param *kp)		\
{										\
	wide_type wide;								\
	int error = text ? reader(text, 0, &wide) : -EINVAL;			\
										\
	if (error)								\
		return error;							\
	*(c_type *)kp->arg = (c_type)wide;					\
	return *(c_type *)kp->arg == wide ? 0 : -ERANGE;			\
}										\
int param_get_##type(char *buffer, const struct kernel_param *kp)		\
{										\
	return sprintf(buffer, format "\n", *(c_type *)kp->arg);		\
}										\
const struct kernel_param_ops param_ops_##type = {				\
	.set = param_set_##type, .get = param_get_##type,			\
}

INTEGER(byte, u8, kstrtouint, unsigned int, "%u");
INTEGER(ushort, u16, kstrtouint, unsigned int, "%u");
INTEGER(int, int, kstrtoint, int, "%d");
INTEGER(uint, unsigned int, kstrtouint, unsigned int, "%u");
INTEGER(ulong, unsigned long, kstrtoull, unsigned long long, "%lu");
INTEGER(ullong, unsigned long long, kstrtoull, unsigned long long, "%llu");

int param_set_bool(const char *text, const struct kernel_param *kp)
{
	/* A parameter without a value is switched on. */
	return kstrtobool(text ? text : "1", kp->arg);
}

int param_get_bool(char *buffer, const struct kernel_param *kp)
{
	return sprintf(buffer, "%c\n", *(bool *)kp->arg ? 'Y' : 'N');
}

const struct kernel_param_ops param_ops_bool = {
	.flags = 1, .set = param_set_bool, .get = param_get_bool,
};

int param_set_uint_minmax(const char *text, const struct kernel_param *kp,
			  unsigned int low, unsigned int high)
{
	unsigned int number;
	int error = text ? kstrtouint(text, 0, &number) : -EINVAL;

	if (error)
		return error;
	if (number < low || number > high)
		return -EINVAL;
	return param_set_uint(text, kp);
}
