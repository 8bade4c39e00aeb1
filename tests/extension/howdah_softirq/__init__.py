# SPDX-License-Identifier: Apache-2.0
"""Software interrupts of the kernel: a collector (guest.py, host.py), a measure of it, and a command that prints it."""
