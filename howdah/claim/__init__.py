# SPDX-License-Identifier: Apache-2.0
"""Judge the claims of an experiment over its runs, and write claims.json. Separate from howdah/judge, which judges
single runs: a change to how claims are judged affects no run's tables, metrics or verdict.

``sample`` takes numbers from metrics.json, ``comparison`` has the statistics, ``expectation`` judges one point, and
``claims`` whole claims.
"""
