# SPDX-License-Identifier: Apache-2.0
"""Find the smallest path on which a claim fails: ``howdah search`` tries candidates, shrinks the best and proves it.

``space`` defines the candidates, ``sampler`` chooses the next ones, ``trial`` runs them, ``goal`` scores them,
``shrink`` simplifies the best, and ``session`` drives the search.
"""
