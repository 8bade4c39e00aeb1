# SPDX-License-Identifier: Apache-2.0
"""Instant and range queries against a Prometheus server, with the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

import numpy as np

from howdah.errors import HowdahError
from howdah.record.sample import Float64, Int64

_LIMIT_S = 120


@dataclass(frozen=True)
class Value:
    """One element of an instant vector. ``metric`` is its name, where the query keeps it."""

    labels: dict[str, str]
    value: float
    metric: str = ""


@dataclass(frozen=True)
class RangeSeries:
    """One series of a range query: ``time_ms`` since 1970, as asked for."""

    labels: dict[str, str]
    time_ms: Int64
    value: Float64


@dataclass(frozen=True)
class _Series:
    """One of an answer: each point is a time in seconds and a value."""

    name: str
    labels: dict[str, str]
    points: list[tuple[float, float]]


class Client:
    """Speaks the HTTP API at ``url``; proxies are ignored, because the server is on loopback.

    ``authorization`` is a header that the server wants to see.
    """

    def __init__(self, url: str, authorization: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        if authorization is not None:
            self._opener.addheaders.append(("Authorization", authorization))

    def instant(self, query: str, at_ms: int) -> list[Value]:
        """The vector a query has at one time."""
        result = self._call("query", {"query": query, "time": _seconds(at_ms)})
        return [Value(each.labels, each.points[0][1], each.name) for each in result]

    def range(self, query: str, start_ms: int, end_ms: int, step_ms: int) -> list[RangeSeries]:
        """Values of a query at ``start``, ``start + step`` … up to ``end``; instants without a value are left out."""
        arguments = {
            "query": query,
            "start": _seconds(start_ms),
            "end": _seconds(end_ms),
            "step": _seconds(step_ms),
        }
        answers = []
        for each in self._call("query_range", arguments):
            times, values = np.array(each.points, dtype=np.float64).T
            answers.append(RangeSeries(each.labels, np.rint(times * 1000).astype(np.int64), values))
        return answers

    def version(self) -> str:
        """The server's version."""
        try:
            with self._opener.open(f"{self.url}/api/v1/status/buildinfo", timeout=_LIMIT_S) as answer:
                return str(json.load(answer)["data"]["version"])
        except (urllib.error.URLError, OSError, json.JSONDecodeError, KeyError) as error:
            raise HowdahError(f"Prometheus does not answer: {error}", where=self.url) from error

    def _call(self, endpoint: str, arguments: dict[str, str]) -> list[_Series]:
        body = urllib.parse.urlencode(arguments).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{endpoint}", data=body)
        try:
            with self._opener.open(request, timeout=_LIMIT_S) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise HowdahError(f"Prometheus refused the query: {_reason(error)}", where=arguments["query"]) from error
        except (urllib.error.URLError, OSError, json.JSONDecodeError) as error:
            raise HowdahError(f"Prometheus does not answer: {error}", where=self.url) from error
        return [
            _Series(
                each["metric"].pop("__name__", ""),
                each["metric"],
                [(at_s, float(value)) for at_s, value in each.get("values") or [each["value"]]],
            )
            for each in found["data"]["result"]
        ]


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (json.JSONDecodeError, KeyError):
        return f"HTTP status {error.code}"


def matchers(labels: dict[str, str]) -> str:
    """Labels as the inside of a PromQL selector: ``algorithm="cubic",flow="1"``."""
    quoted = {
        key: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for key, value in labels.items()
    }
    return ",".join(f'{key}="{value}"' for key, value in sorted(quoted.items()))
