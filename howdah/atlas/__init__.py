# SPDX-License-Identifier: Apache-2.0
"""The atlas: every published experiment as a profile, run, judged, and shown on one site.

``catalogue`` reads the entries, ``chapter`` their profiles; ``work`` makes the runs, ``verdict`` sums up claims;
``site`` and ``summary`` write the pages and the summary.
"""
