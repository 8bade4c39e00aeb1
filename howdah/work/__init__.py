# SPDX-License-Identifier: Apache-2.0
"""What makes runs, and the one way in which other parts of the program get their results."""
