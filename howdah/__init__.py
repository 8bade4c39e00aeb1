# SPDX-License-Identifier: Apache-2.0
"""howdah measures how TCP starts up on long fat paths, on real kernels in virtual time."""

__version__ = "0.1.0"
