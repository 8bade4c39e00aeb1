# SPDX-License-Identifier: Apache-2.0
"""What a host's processor searches for a SACK (docs/processor.md), by the numbers that its module takes."""

from __future__ import annotations

SEARCHES = ("nothing", "each-block", "one-pass")  # in the order of enum processor_search, modules/processor/search.h
