# SPDX-License-Identifier: Apache-2.0
"""How a host searches its retransmission queue for a SACK (docs/processor.md), in the module's numbering."""

from __future__ import annotations

SEARCHES = ("nothing", "each-block", "one-pass")  # in the order of enum processor_search, modules/processor/search.h
