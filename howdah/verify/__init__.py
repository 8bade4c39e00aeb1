# SPDX-License-Identifier: Apache-2.0
"""Whether runs are what they say they are: digests, everything computed anew, signatures (docs/verify.md)."""
