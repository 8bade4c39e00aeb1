# SPDX-License-Identifier: Apache-2.0
"""The ``ns2`` engine: a plan in the simulator ns-2, whose TCP is a model. For controls only; never a default."""
