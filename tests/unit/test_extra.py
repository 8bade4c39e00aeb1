# SPDX-License-Identifier: Apache-2.0
"""How an extra is installed: into the environment that runs howdah, whatever the shell calls pip."""

from __future__ import annotations

import shlex
import sys

import pytest

import howdah.extra
from howdah.extra import install_extra


def test_pip_is_that_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(howdah.extra, "find_spec", lambda _name: object())
    monkeypatch.setattr(sys, "executable", "/opt/a place/bin/python")
    words = shlex.split(install_extra("figures"))
    assert words == ["/opt/a place/bin/python", "-m", "pip", "install", "howdah[figures]"]


def test_without_pip_it_is_a_tool_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(howdah.extra, "find_spec", lambda _name: None)
    assert shlex.split(install_extra("search")) == ["uv", "tool", "install", "howdah[guest,search]"]
