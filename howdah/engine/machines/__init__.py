# SPDX-License-Identifier: Apache-2.0
"""One plan across several machines: senders, an emulator, receivers, each with its own kernel and clock."""
