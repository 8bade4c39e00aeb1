# SPDX-License-Identifier: Apache-2.0
"""One plan across the machines of a lab: senders, an emulator, receivers, each with a kernel and a clock of its own."""
