# SPDX-License-Identifier: Apache-2.0
"""tables/ to metrics.json: the definitions of start-up measures, one family per file. docs/measures.md lists them."""
