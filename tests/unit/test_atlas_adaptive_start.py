# SPDX-License-Identifier: Apache-2.0
"""The Adaptive Start paper in the atlas: its entries, its runs, and every number that it prints."""

from __future__ import annotations

import pytest

from tests.unit.atlas_paper import Paper, profile

# Runs of the full atlas and of the quick one, controls included.
RUNS = {
    "adaptive-start-rtt": (270, 34),
    "adaptive-start-table2": (50, 6),
    "adaptive-start-rate": (310, 24),
    "adaptive-start-buffer": (160, 12),
    "adaptive-start-five-flows": (10, 3),
    "adaptive-start-reno": (10, 3),
    "adaptive-start-udp": (20, 20),
    "adaptive-start-satellite": (20, 4),
    "adaptive-start-geo": (10, 2),
    "adaptive-start-fairness": (20, 2),
    "adaptive-start-friendly": (10, 1),
    "adaptive-start-friendly-ten": (10, 1),
    "adaptive-start-load-rate": (60, 4),
    "adaptive-start-load-rtt": (60, 2),
    "adaptive-start-machines": (20, 4),
    "adaptive-start-tcpw": (20, 2),
    "adaptive-start-third": (30, 3),
    "adaptive-start-timeout": (40, 4),
    "adaptive-start-ten-flows": (10, 1),
    "adaptive-start-liw-overflow": (60, 3),
}
PAPER = Paper("Astart_", "adaptive-start", tuple(RUNS))
PRINTED = {
    "Astart_tab1": ["95.6 %", "71.8 %", "23.2 %", "11.9 %", "7.2 %"],
    "Astart_tab2": ["77.1 %", "45.9 %", "23.2 %", "9.3 %", "4.7 %"],
    "Astart_tab3": ["0.384", "0.192", "0.096", "0.101"],
    "Astart_fig2": ["500 packets", "12.90 Mbit/s"],
    "Astart_fig3": ["13.9 s", "3.61 Mbit/s", "9 %"],
    "Astart_fig4": ["96 packets"],
    "Astart_fig12": ["2.80 Mbit/s", "9.33 Mbit/s"],
    "Astart_fairness": ["0.9949", "0.9944"],
    "Astart_fig14": ["1.6"],
    "Astart_fig15": ["11.16"],
    "Astart_fig17": ["['15 %', '25 %']", "3 s"],
}


def test_every_entry_is_claimed_or_says_why_not() -> None:
    PAPER.check()


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str) -> None:
    PAPER.check_runs(name, *RUNS[name])


@pytest.mark.parametrize("entry", PRINTED)
def test_what_is_printed_is_expected(entry: str) -> None:
    assert set(PRINTED[entry]) <= PAPER.expected(entry)


def test_table_3_has_the_ratio_of_each_rate() -> None:
    found = {
        str(claim.value.at["path.rate"]): str(claim.expect.equals)
        for claim in profile("adaptive-start-rate").claims
        if "Astart_tab3" in claim.entry and claim.value and claim.expect and claim.expect.equals
    }
    assert found == {
        "10 Mbit/s": "0.384",
        "20 Mbit/s": "0.192",
        "40 Mbit/s": "0.192",
        "80 Mbit/s": "0.096",
        "150 Mbit/s": "0.101",
    }


@pytest.mark.parametrize("name", [name for name in RUNS if name != "adaptive-start-machines"])
def test_a_packet_has_1000_bytes_with_its_headers(name: str) -> None:
    """MTU and 14 bytes of Ethernet; 40 Mbit/s x 100 ms are then the paper's 500 packets."""
    cell = next(iter(profile(name).cells()))
    assert cell.scenario.path.mtu + 14 == 1000


def test_the_rate_that_contradicts_the_table_is_judged_with_other_thresholds() -> None:
    [claim] = [claim for claim in PAPER.claims if "12.90" in claim.says]
    assert claim.expect is not None and str(claim.expect.equals) == "12.90 Mbit/s"
    assert profile("adaptive-start-reno").unknown is not None
