# SPDX-License-Identifier: Apache-2.0
"""The smallest path on which a claim fails: ``howdah search`` tries candidates, shrinks the best and proves it.

``space`` says which candidates there are, ``sampler`` which comes next, ``trial`` makes its runs, ``goal`` gives its
score, ``shrink`` makes it simple, ``session`` puts them together.
"""
