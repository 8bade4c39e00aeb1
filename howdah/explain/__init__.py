# SPDX-License-Identifier: Apache-2.0
"""Explain recorded transfers of any machine: how each flow started up, what ended its start-up, and what held it
back."""
