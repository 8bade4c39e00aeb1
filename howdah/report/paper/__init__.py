# SPDX-License-Identifier: Apache-2.0
"""Figures for papers: a column wide, for print, reproducible to the byte."""

from howdah.report.paper.caption import caption_of, data_of, description_of
from howdah.report.paper.choice import Choice, check_choice
from howdah.report.paper.figures import NAMES, available, draw, needs_records
from howdah.report.paper.sheet import FORMATS, FigureSheet, parse_length_inches

__all__ = [
    "FORMATS",
    "NAMES",
    "Choice",
    "FigureSheet",
    "available",
    "caption_of",
    "check_choice",
    "data_of",
    "description_of",
    "draw",
    "needs_records",
    "parse_length_inches",
]
