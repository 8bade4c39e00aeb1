# SPDX-License-Identifier: Apache-2.0
"""Verify runs: digests, recomputed results, signatures (docs/verify.md)."""
