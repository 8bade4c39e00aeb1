# SPDX-License-Identifier: Apache-2.0
"""Guests get processors of their own, as long as there are some."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from howdah.engine.processor import own_processor


def test_no_two_guests_have_one_processor(tmp_path: Path) -> None:
    there = sorted(os.sched_getaffinity(0))
    with ExitStack() as guests:
        given = [guests.enter_context(own_processor(tmp_path)) for _ in there]
        assert given == there
        with own_processor(tmp_path) as one_too_many:
            assert one_too_many is None
    with own_processor(tmp_path) as again:
        assert again == there[0]


def test_a_file_that_cannot_be_opened_is_left_alone(tmp_path: Path) -> None:
    for processor in os.sched_getaffinity(0):
        (tmp_path / f"howdah-processor-{os.geteuid()}-{processor}.lock").symlink_to("/nowhere")
    with own_processor(tmp_path) as given:
        assert given is None
