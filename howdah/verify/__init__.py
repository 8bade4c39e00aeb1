# SPDX-License-Identifier: Apache-2.0
"""Verifies runs: digests, everything computed again, signatures (docs/verify.md)."""
