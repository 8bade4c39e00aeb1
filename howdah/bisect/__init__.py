# SPDX-License-Identifier: Apache-2.0
"""Which commit of a kernel tree broke a claim: ``git bisect`` with a run in virtual time as its test.

``worktree`` is git, ``trial`` judges one revision, ``session`` puts both together and keeps what has been found.
"""
