# SPDX-License-Identifier: Apache-2.0
"""Figures that a profile declares, drawn from an experiment's runs as static inline SVG."""

from howdah.report.plot.draw import draw

__all__ = ["draw"]
