# SPDX-License-Identifier: Apache-2.0
"""A linter for the English of the documentation: proselint and the project's own rules. ``python -m tests.prose``."""
