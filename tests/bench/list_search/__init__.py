# SPDX-License-Identifier: Apache-2.0
"""What a packet costs that is passed in the search of a list."""
