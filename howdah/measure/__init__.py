# SPDX-License-Identifier: Apache-2.0
"""tables/ to metrics.json: the definitions of start-up, one family a file. docs/measures.md lists them."""
