# SPDX-License-Identifier: Apache-2.0
"""The ``vm`` engine: unmodified distribution kernels in QEMU, in virtual time with a finite processor."""
