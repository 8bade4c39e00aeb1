# SPDX-License-Identifier: Apache-2.0
"""Programs for QUIC stacks in Python; they run beside the agent, in the hosts."""
