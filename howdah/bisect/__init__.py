# SPDX-License-Identifier: Apache-2.0
"""Find the commit of a kernel tree that broke a claim: ``git bisect`` with a run in virtual time as its test.

``worktree`` wraps git; ``session`` judges revisions and keeps the results.
"""
