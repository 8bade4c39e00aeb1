# SPDX-License-Identifier: Apache-2.0
"""The ready-made parts that howdah runs: ``bundle/`` beside this file (howdah/build/bundle_file.py)."""
