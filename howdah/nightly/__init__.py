# SPDX-License-Identifier: Apache-2.0
"""The nightly regression test: a suite of experiments, whose measures are compared with a stored baseline.

``suite`` defines what is run, ``work`` runs it, and ``sheet`` keeps the results as a baseline. ``change``,
``comparison`` and ``significance`` compare cells, ``night`` decides on all of them, and ``output`` and ``page`` write
the results. ``commits`` runs a suite on a range of commits; ``power`` simulates nights.
"""
