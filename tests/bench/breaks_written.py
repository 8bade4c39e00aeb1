# SPDX-License-Identifier: Apache-2.0
"""The experiment of the atlas that shows where start-ups break on one path: claims have the bounds that were set."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.bench.breaks_path import EARLY, LEAST_BDP, MOST_BDP, MOST_TIMES, OVER, SLOW, TIME, Break, Place

WORDS = {EARLY: "leaves-early", OVER: "overshoots", SLOW: "is-slow"}
ENTRIES = {EARLY: "Breaks_early", OVER: "Breaks_overshoot", SLOW: "Breaks_slow"}
REASON = {EARLY: "-without-loss", OVER: "-stays-until-a-loss", SLOW: "-is-held-back"}
SOURCE = "make breaks"
ALL_OVERSHOOT = "all-overshoot"  # of every start-up of a path
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# yaml-language-server: $schema=../../docs/profile.schema.json
#
# Written by make breaks (docs/search.md): of the paths it tries, in the order of their size, this is the first on which
# these start-ups break. Each is alone on the path, and the receiver takes what comes.
"""


def profile_name(place: Place) -> str:
    return f"breaks-{place.name}"


def main_claim(one: Break) -> str:
    """The claim that says that a start-up breaks; those of all start-ups of a path may stand for it."""
    return f"{one.start_up}-{WORDS[one.way]}"


def profile_text(place: Place, some: Sequence[Break], failed: Collection[str] = ()) -> str:
    """``some`` is what breaks on this path for the first time, in one repetition at least.

    That one repetition alone broke is shown as a claim that ``failed``; a reason that failed, or of such a claim, is
    left out.
    """
    names = sorted({each.start_up for each in some} | {each.best for each in some if each.best})
    main = {main_claim(each) for each in some}
    reasons = {f"{each.start_up}{REASON[each.way]}" for each in some if main_claim(each) in failed}
    data = {
        "howdah": 1,
        "name": profile_name(place),
        "description": f"Start-ups that break on {place.words}",
        **place.document(names),
        "repetitions": 3,
        "keep": "first",
        "perturbation": {"rtt": "0.5 %", "start": "1 rtt"},
        "collect": {"tcp_info": "100 ms", "qdisc": "20 ms", "interfaces": "1 s", "ss": False},
        "quick": {"repetitions": 1, "algorithm": names[:1]},
    }
    lines = [f"{name}: {_flow(value)}" for name, value in data.items()] + ["claims:"]
    for claim in _claims(place, some, names):
        if claim["id"] in reasons or (claim["id"] in failed and claim["id"] not in main):
            continue
        lines += [f"  {'- ' if name == 'id' else '  '}{name}: {_flow(value)}" for name, value in claim.items()]
    return HEAD + "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """On one line."""
    written: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
    return written.removesuffix("\n...\n").strip()


def _claims(place: Place, some: Sequence[Break], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    over = [each for each in some if each.way == OVER]
    if len(over) == len(names) > 1:
        yield from _overshoots(place)
        over = []
    for one in [*over, *(each for each in some if each.way != OVER)]:
        yield from _one(place, one)


def _overshoots(place: Place) -> Iterator[dict[str, Any]]:
    """Of all start-ups of a path at once."""
    common = {"entry": ENTRIES[OVER], "source": SOURCE, "each": "algorithm"}
    yield {
        "id": ALL_OVERSHOOT,
        "says": "Each of these start-ups overshoots: its window is more than three times the BDP.",
        "value": {"metric": "peak_cwnd_packets", "flow": 1},
        "expect": {"at_least": _packets(place)},
        **common,
    }


def _packets(place: Place) -> str:
    return f"{MOST_BDP * place.bdp_packets:.1f} packets"


def _one(place: Place, one: Break) -> Iterator[dict[str, Any]]:
    name, at = one.start_up, {"algorithm": one.start_up}
    entry = {"entry": ENTRIES[one.way], "source": SOURCE}
    ended = {"metric": "exit_cause", "flow": 1, "at": at}
    if one.way == EARLY:
        yield {
            "id": main_claim(one),
            "says": f"{name} leaves slow start below a fifth of the BDP, alone on the path.",
            "value": {"metric": "exit_cwnd_bdp", "flow": 1, "at": at},
            "expect": {"below": LEAST_BDP},
            **entry,
        }
        yield {
            "id": f"{name}{REASON[one.way]}",
            "says": f"No loss does it. (The cause of the exit is {one.why}.)",
            "value": ended,
            "expect": {"is": one.why},
            **entry,
        }
    elif one.way == OVER:
        yield {
            "id": main_claim(one),
            "says": f"{name} overshoots: its window is more than three times the BDP.",
            "value": {"metric": "peak_cwnd_packets", "flow": 1, "at": at},
            "expect": {"at_least": _packets(place)},
            **entry,
        }
        yield {
            "id": f"{name}{REASON[one.way]}",
            "says": "Nothing ends its start-up before a loss does.",
            "value": ended,
            "expect": {"is": one.why},
            **entry,
        }
    else:
        yield {
            "id": main_claim(one),
            "says": f"{name} needs three times as long for 1 MB as {one.best}.",
            "value": {"metric": TIME, "flow": 1, "at": at},
            "than": {"at": {"algorithm": one.best}},
            "expect": {"ratio": {"at_least": MOST_TIMES}},
            **entry,
        }
        yield {
            "id": f"{name}{REASON[one.way]}",
            "says": f"What holds it back most is the {one.why.replace('-', ' ')}.",
            "value": {"metric": "held_back_by", "flow": 1, "at": at},
            "expect": {"is": one.why},
            **entry,
        }
