# SPDX-License-Identifier: Apache-2.0
"""Export of runs to the formats of other tools."""
