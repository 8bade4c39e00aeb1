# SPDX-License-Identifier: Apache-2.0
"""Web sessions and the mix of middle-sized transfers: numbers, sizes and times against their models."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from statistics import fmean, median

import pytest

from howdah.plan.mix import mean_bytes, mix_connections, size_bytes, web_connections
from howdah.profile.group import MixSection, WebSection
from tests.unit.profile_factory import make_one, make_plans

_LONG_US = 10**12
_MIX = MixSection.model_validate({"rate": "50 Mbit/s"})


def test_a_web_session_as_the_paper_has_it(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "groups:\n- {name: web, web: {}}\n", ["duration=200 s"])
    assert 500 < len(plan.flows) < 2000  # 50 sessions x 5 pages x 4 objects, heavy-tailed
    assert {flow.request_bytes for flow in plan.flows} == {300}
    assert {flow.opener for flow in plan.flows} == {"receiver"}
    assert all(flow.size_bytes and flow.size_bytes % 1448 == 0 for flow in plan.flows if flow.size_bytes != 10_000_000)
    starts = [flow.start_us for flow in plan.flows]
    assert starts == sorted(starts) and starts[0] == 0


def test_the_sender_may_open_a_web_connection_without_a_request(tmp_path: Path) -> None:
    """The same objects at the same times, as ns-2 needs them."""
    profile = "groups:\n- {name: web, web: {}, opener: %s}\n"
    asked, sent = (make_one(tmp_path, profile % end).flows for end in ("receiver", "sender"))
    assert {(flow.request_bytes, flow.opener) for flow in sent} == {(None, "sender")}
    assert [(flow.start_us, flow.size_bytes) for flow in sent] == [(flow.start_us, flow.size_bytes) for flow in asked]


def test_the_means_of_the_web_model() -> None:
    web = WebSection(sessions=400, objects_shape=3.0, object_shape=3.0)
    found = web_connections(web, 0, _LONG_US, 1448, Random(1))
    # Rounding, with 1 as the least, adds a few per cent to counts and sizes.
    assert len(found) == pytest.approx(400 * 5 * 4, rel=0.1)
    assert fmean(each.size_bytes or 0 for each in found) / 1448 == pytest.approx(4, rel=0.1)


def test_the_sizes_of_web_objects_are_heavy_tailed() -> None:
    found = web_connections(WebSection(sessions=400), 0, _LONG_US, 1000, Random(1))
    packets = [(each.size_bytes or 0) / 1000 for each in found]
    # F(x) = 1 - (1 + x / 0.8)^-1.2 at 10.5, and the median 0.63, which becomes 1.
    assert sum(size > 10 for size in packets) / len(packets) == pytest.approx((1 + 10.5 / 0.8) ** -1.2, rel=0.08)
    assert median(packets) == 1
    assert max(packets) > 1000


def test_times_of_one_page_are_exponential() -> None:
    web = WebSection(sessions=1, pages=1, objects=1000, objects_shape=50.0)
    gaps = []
    for seed in range(30):
        starts = [each.start_us for each in web_connections(web, 0, _LONG_US, 1448, Random(seed))]
        gaps += [after - before for before, after in itertools.pairwise(starts)]
    assert fmean(gaps) == pytest.approx(50_000, rel=0.03)
    assert sum(gap > 50_000 for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.015)


def test_nothing_starts_too_late() -> None:
    assert max(each.start_us for each in web_connections(WebSection(), 0, 1_000_000, 1448, Random(1))) < 1_000_000


def test_sizes_of_the_mix_have_the_computed_mean() -> None:
    draw = Random(5)
    sizes = [size_bytes(_MIX, draw) for _ in range(40_000)]
    assert fmean(sizes) == pytest.approx(mean_bytes(_MIX), rel=0.03)
    assert 50_000 <= min(sizes) < 51_000
    assert 4_000_000 < max(sizes) <= 5_000_000


def test_body_alone_and_tail_alone() -> None:
    body = MixSection.model_validate({"rate": "1 Mbit/s", "least": "1 kB", "most": "100 kB"})
    draw = Random(5)
    sizes = [size_bytes(body, draw) for _ in range(20_000)]
    assert fmean(sizes) == pytest.approx(mean_bytes(body), rel=0.03)
    # The median of the whole body is exp(9.357); between 1 kB and 100 kB there is 3 % below and 5 % above.
    assert median(sizes) == pytest.approx(11_300, rel=0.06)


def test_the_mix_offers_its_rate() -> None:
    loads = []
    for seed in range(20):
        found = mix_connections(_MIX, 0, 100_000_000, 1500, Random(seed))
        loads.append(sum(each.size_bytes or 0 for each in found) * 8 * 1514 / 1448 / 100)
    assert fmean(loads) == pytest.approx(50e6, rel=0.05)


def test_the_mix_is_drawn_from_seed_and_repetition(tmp_path: Path) -> None:
    extra = "repetitions: 2\nflows: [{}]\ngroups:\n- {name: mid, role: background, mix: {rate: 5 Mbit/s}}\n"
    one, two = make_plans(tmp_path, extra)
    again, _ = make_plans(tmp_path, extra)
    assert [flow.size_bytes for flow in one.flows] == [flow.size_bytes for flow in again.flows]
    assert [flow.size_bytes for flow in one.flows] != [flow.size_bytes for flow in two.flows]
    assert {flow.role for flow in one.flows[1:]} == {"background"}
