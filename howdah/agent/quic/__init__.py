# SPDX-License-Identifier: Apache-2.0
"""Programs that QUIC stacks of Python need; they run beside the agent, in the hosts."""
