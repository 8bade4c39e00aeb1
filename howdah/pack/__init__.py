# SPDX-License-Identifier: Apache-2.0
"""Pack runs into one file that can be mailed (docs/pack.md)."""
