# SPDX-License-Identifier: Apache-2.0
"""Reports: one self-contained HTML page of an experiment, or of several side by side."""
