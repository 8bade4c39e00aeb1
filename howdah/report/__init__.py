# SPDX-License-Identifier: Apache-2.0
"""Reports: one self-contained HTML page for an experiment, or for several side by side."""
