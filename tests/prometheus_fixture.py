# SPDX-License-Identifier: Apache-2.0
"""The real Prometheus for tests that need it."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from howdah.publish.endpoint import registry
from howdah.publish.metric import Families
from howdah.publish.prometheus import Prometheus, PrometheusUnavailableError, fetch


def prometheus_or_skip() -> Prometheus:
    """The programs, fetched where they are not there; without them and without a network the test is skipped."""
    try:
        return fetch()
    except PrometheusUnavailableError as error:
        pytest.skip(f"no Prometheus: {error.what}")


def exposition(found: Families) -> str:
    """What a scrape sees of them, in Prometheus' text format, which ``promtool check metrics`` reads."""
    return generate_latest(registry(lambda: found)).decode()
