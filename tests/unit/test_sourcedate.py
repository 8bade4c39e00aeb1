# SPDX-License-Identifier: Apache-2.0
"""SOURCE_DATE_EPOCH: a moment is taken, anything else is one message of every command that makes files with a date."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from howdah.command.main import main
from howdah.errors import UsageError
from howdah.sourcedate import source_date


def test_the_moment_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert source_date() == datetime(1970, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("text", ["tomorrow", "1e9", "9" * 30, "-" + "9" * 30])
def test_what_is_no_moment(text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    with pytest.raises(UsageError):
        source_date()
    assert main(["figure", "nothing"]) == 2
    assert f"SOURCE_DATE_EPOCH={text}" in capsys.readouterr().err
