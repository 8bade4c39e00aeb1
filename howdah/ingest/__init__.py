# SPDX-License-Identifier: Apache-2.0
"""raw/ to tables/: what the guest wrote, parsed; nothing is dropped or averaged."""
