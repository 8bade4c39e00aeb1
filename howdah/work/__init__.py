# SPDX-License-Identifier: Apache-2.0
"""Makes runs, and gives their results to the other parts of the program."""
