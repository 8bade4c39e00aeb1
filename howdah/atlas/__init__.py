# SPDX-License-Identifier: Apache-2.0
"""The atlas: every published experiment as a profile, run, judged, and shown on one site.

``catalogue`` reads the entries, ``chapter`` the profiles behind them, ``work`` makes the runs, ``verdict`` sums up
claims, ``index``, ``site`` and ``summary`` write what is read.
"""
