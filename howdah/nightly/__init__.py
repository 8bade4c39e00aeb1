# SPDX-License-Identifier: Apache-2.0
"""The nightly regression: a suite of experiments, every measure compared with a stored baseline.

``suite`` says what is run, ``work`` runs it, ``sheet`` is what stays of an experiment, ``baseline`` stores sheets,
``effect`` says how large a change matters, ``significance`` whether it is one, ``comparison`` and ``night`` put both
together; ``junit``, ``page`` and ``series`` write what is read.
"""
