# SPDX-License-Identifier: Apache-2.0
"""What was found, in a few sentences: for the top of a page and for the end of a command.

The sentences answer the profile. Where transfers have a size the question is how long they take (completion.py), else
where flows left their start-up (startup.py). Sides are compared within one place of the sweep (ratio.py).
"""

from __future__ import annotations

from collections import Counter

from howdah.number import listed
from howdah.report.acted import acted
from howdah.report.completion import completion, is_transfer
from howdah.report.effect import without_effect
from howdah.report.heldback import held_over
from howdah.report.startup import has_exit, has_start, startup
from howdah.report.subject import subjects
from howdah.report.table import Block, Table


def found(table: Table) -> list[str]:
    """Sentences: what the runs show, then what limits what they say. At least one."""
    said = subjects(table)
    transfers = [each for each in said if is_transfer(each)]
    flows = [each for each in said if has_start(each)]
    if transfers and not any(has_exit(each) for each in flows):
        flows = [each for each in flows if not is_transfer(each)]
    told = {id(each) for each in flows}
    held = held_over([each for each in transfers if id(each) not in told], left=True)
    others = [each for each in said if not is_transfer(each)]
    sentences = [*completion(transfers, others), *held, *startup(flows), *acted(said), *without_effect(said)]
    if any(" … " in sentence for sentence in sentences):
        sentences.append(f"In brackets: {table.spread_words}.")
    sentences += [*table.cautions, *_modelled(table), *_left_out(table)]
    return list(dict.fromkeys(sentences)) or ["No run has a number that says how the flows started."]


def _modelled(table: Table) -> list[str]:
    """Which numbers are a simulator's."""
    if not table.models:
        return []
    names = listed(list(table.models))
    if table.all_modelled:
        return [f"No kernel ran: the numbers are those of a {names}."]
    return [f"Some of the numbers are those of a {names}, where no kernel ran."]


def _left_out(table: Table) -> list[str]:
    """How many runs count in none of it, and why."""
    blocks: list[Block] = [block for _, blocks in table.points for block in blocks]
    out = [each for block in blocks for each in block.excluded]
    if not out:
        return []
    total = sum(block.total for block in blocks)
    verdicts = Counter(verdict for _, verdict, _ in out)
    counts = listed([f"{count} {verdict}" for verdict, count in verdicts.most_common()])
    reasons = list(dict.fromkeys(why for _, _, why in out if why))
    why = f" ({reasons[0]}{' and others' if len(reasons) > 1 else ''})" if reasons else ""
    if len(out) == total:
        return [f"No run counts, so nothing is said of the algorithms: {counts}{why}."]
    return [f"{len(out)} of {total} runs do not count: {counts}{why}."]
