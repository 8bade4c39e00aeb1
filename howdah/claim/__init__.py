# SPDX-License-Identifier: Apache-2.0
"""Claims of an experiment, judged over its runs: claims.json. Apart from howdah/judge, which is about one run: a claim
that is judged otherwise changes no run's tables, metrics or verdict.

``sample`` takes the numbers from metrics.json, ``comparison`` has the statistics, ``expectation`` judges one point,
``claims`` whole claims.
"""
