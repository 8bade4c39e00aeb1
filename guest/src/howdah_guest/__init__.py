# SPDX-License-Identifier: Apache-2.0
"""What howdah runs, built: ``bundle/`` beside this file (howdah/build/bundle_file.py)."""
