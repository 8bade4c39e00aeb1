# SPDX-License-Identifier: Apache-2.0
"""Write a first profile from a few answers: commented, and checked before it is saved."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from howdah.algorithm import ALGORITHMS
from howdah.errors import HowdahError, ProfileError, did_you_mean, explain, remedy
from howdah.place import CHECKOUT
from howdah.profile.field import Buffer, Bytes, PositiveDuration, Rate, Ratio
from howdah.profile.load import load
from howdah.profile.model import MOST_FLOWS
from howdah.profile.profile import Profile
from howdah.profile.schema import SCHEMA
from howdah.profile.sizes import PUBLISHED_SIZES, read_sizes
from howdah.quantity import format_duration, parse_duration

MOST_REPETITIONS = 1000
_PLAIN = re.compile(r"[^\s%#?]+")
_NAME = re.compile(r"[\w./-]+")  # a name that needs no quotes in YAML
_BACKGROUND = "cubic"  # algorithm of background flows
_LAST_START_PART = 3  # the last flow starts after this fraction (1/3) of the run
_DRAWN = f"or a .csv of sizes, or one of {', '.join(PUBLISHED_SIZES)}"
_LISTED = "'howdah list algorithms' shows them"
_CONNECTIONS, _PAIRS = 200, 10  # defaults of a group with drawn sizes


@dataclass(frozen=True)
class Draft:
    """A user's answers, as typed. ``like`` names a path to copy instead of giving ``rate`` and ``rtt``."""

    name: str
    rate: str = "100 Mbit/s"
    rtt: str = "100 ms"
    buffer: str = "1 bdp"
    like: str | None = None
    algorithms: tuple[str, ...] = ("cubic", "reno")
    flows: int = 1
    repetitions: int = 3
    duration: str = "20 s"
    reverse_rate: str = ""
    loss: str = ""
    outage: str = ""
    sizes: str = ""
    background: str = ""


def _quantity(annotation: Any) -> Callable[[str], str]:
    adapter = TypeAdapter(annotation)

    def check(text: str) -> str:
        try:
            adapter.validate_python(text)
        except ValidationError as error:
            cause = error.errors()[0].get("ctx", {}).get("error")
            raise ProfileError(str(cause or error.errors()[0]["msg"])) from None
        return " ".join(text.split())

    return check


def _several_quantities(annotation: Any) -> Callable[[str], str]:
    """A check of one quantity, or of several separated by commas, which make a sweep."""
    check = _quantity(annotation)

    def each(text: str) -> str:
        return ", ".join(check(part) for part in text.split(","))

    return each


check_rate, check_duration = _several_quantities(Rate), _quantity(PositiveDuration)
check_rtt, check_buffer = _several_quantities(PositiveDuration), _several_quantities(Buffer)
check_loss, _check_listed = _several_quantities(Ratio), _several_quantities(Bytes)


def is_drawn(text: str) -> bool:
    """Whether sizes are drawn from a distribution: a published one, or a .csv file."""
    return text in PUBLISHED_SIZES or text.lower().endswith(".csv")


def check_sizes(text: str) -> str:
    """Check one size, several separated by commas, or the name of a distribution. Raises ProfileError."""
    text = text.strip()
    if is_drawn(text):
        if text not in PUBLISHED_SIZES:
            read_sizes(Path(text), text)
        return text
    try:
        return _check_listed(text)
    except ProfileError as error:
        raise ProfileError(error.what, hint=did_you_mean(text, PUBLISHED_SIZES, _DRAWN)) from None


def check_algorithms(text: str) -> tuple[str, ...]:
    """Split names at commas. Raises ProfileError for a name that is unknown or given twice."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ProfileError("expected the name of an algorithm", hint=_LISTED)
    for index, name in enumerate(names):
        if name not in ALGORITHMS:
            raise ProfileError(
                f"there is no algorithm {name!r}", hint=did_you_mean(name, ALGORITHMS, _LISTED, both=True)
            )
        if name in names[:index]:
            raise ProfileError(f"{name} is given twice")
    return names


def check_count(text: str, most: int) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text) <= most:
        raise ProfileError(f"expected a whole number from 1 to {most}, not {text!r}")
    return int(text)


def check_outage(text: str) -> str:
    """Check an outage, its length and its begin: ``100 ms at 3 s``. Raises ProfileError."""
    length, word, begins = text.partition(" at ")
    if not word:
        raise ProfileError(f"expected how long and when, not {text!r}", hint="for example: 100 ms at 3 s")
    return f"{check_duration(length)} at {check_duration(begins)}"


def check_background(text: str) -> str:
    """Check how many flows there are, or a distribution of sizes. Empty means no background."""
    text = text.strip()
    if is_drawn(text):
        return check_sizes(text)
    if text == "0":
        return ""
    try:
        return str(check_count(text, MOST_FLOWS))
    except ProfileError as error:
        raise ProfileError(error.what, hint=did_you_mean(text, PUBLISHED_SIZES, _DRAWN)) from None


def check_flows(text: str) -> int:
    return check_count(text, MOST_FLOWS)


def check_repetitions(text: str) -> int:
    return check_count(text, MOST_REPETITIONS)


def write(draft: Draft, file: Path) -> Profile:
    """Write the profile of a draft; see :func:`write_text`."""
    return write_text(text(draft, file), file)


def write_text(content: str, file: Path) -> Profile:
    """Write a profile to a new file, and load it.

    A profile that would be refused is not written. Raises ProfileError, and HowdahError if the file exists or cannot be
    written.
    """
    if os.path.lexists(file):
        raise _exists(file)
    # Write under a temporary name, so that the final name only ever holds a complete, valid profile.
    attempt = file.with_name(f".{file.stem[:40]}-{secrets.token_hex(4)}.yaml")
    try:
        attempt.write_text(content, encoding="utf-8")
        try:
            load(attempt)
        except ProfileError as error:
            # A place in the temporary file would not help.
            where = None if str(error.where).startswith(str(attempt)) else error.where
            raise ProfileError(f"{file.name} is not written: {error.what}", where=where, hint=error.hint) from None
        os.link(attempt, file)
    except FileExistsError:
        raise _exists(file) from None
    except OSError as error:
        said = f"the profile cannot be written: {explain(error)}"
        raise HowdahError(said, where=str(file), hint=remedy(error)) from error
    finally:
        with suppress(OSError):
            attempt.unlink(missing_ok=True)
    return load(file)


def _exists(file: Path) -> HowdahError:
    return HowdahError("this file exists already", where=str(file), hint="Choose another name, or --output FILE.")


def text(draft: Draft, file: Path) -> str:
    """The profile as YAML, with a comment on every line that a user may want to change."""
    lines = [
        f"# yaml-language-server: $schema={_schema_from(file.parent)}",
        "#",
        "# A list in a field is a sweep: one run for each value, and every combination of several lists.",
        f"# 'howdah plan {file.name}' prints what a run does; an editor that reads the schema shows every field.",
        "howdah: 1",
        f"name: {draft.name} # results go to runs/{draft.name}",
        f"description: {_description(draft)}",
        "",
        *_path(draft),
        "",
        f"algorithm: {_one_or_list(list(draft.algorithms))}",
        *_flows(draft, file),
        f"duration: {draft.duration} # simulated time, from the first start to the end",
        f"repetitions: {draft.repetitions} # {_repetition_comment(draft.repetitions)}",
        "",
        "# What the runs are expected to show is a claim; without one they are only reported (docs/claims.md).",
        "# claims:",
        *_example_claim(draft),
    ]
    return "\n".join(align_comment(line) for line in lines) + "\n"


def _schema_from(directory: Path) -> str:
    """The schema's address for an editor: relative within a checkout, so that the profile can be committed there.

    Editors read the address up to the first space, so a path with spaces is given as a URI.
    """
    directory = directory.resolve()
    if CHECKOUT is not None and directory.is_relative_to(CHECKOUT):
        return os.path.relpath(SCHEMA, directory)
    return str(SCHEMA) if _PLAIN.fullmatch(str(SCHEMA)) else SCHEMA.as_uri()


def _description(draft: Draft) -> str:
    where = f"the path {draft.like}" if draft.like else f"{draft.rate} and {draft.rtt}"
    several = f"{draft.flows} flows" if draft.flows > 1 else "One flow"
    several = "Transfers of many sizes" if is_drawn(draft.sizes) else several
    return f"{several} of {', '.join(draft.algorithms)} over {where}".replace(": ", " ")


def _path(draft: Draft) -> list[str]:
    if draft.like:
        return [
            "path:",
            f"  like: {draft.like} # every field not given here is that path's",
            *([f"  buffer: {_one_or_list(draft.buffer.split(', '))}"] if draft.buffer else []),
            *_more_of_path(draft),
        ]
    return [
        "path:",
        f"  rate: {_one_or_list(draft.rate.split(', '))} # of the bottleneck, with all headers",
        f"  rtt: {_one_or_list(draft.rtt.split(', '))} # without any queue, half of it each way",
        f"  buffer: {_one_or_list(draft.buffer.split(', '))} # 1 bdp = rate x rtt; also 500 kB, 100 packets",
        *_more_of_path(draft),
    ]


def _more_of_path(draft: Draft) -> list[str]:
    lines = []
    if draft.reverse_rate:
        lines.append(f"  reverse_rate: {_one_or_list(draft.reverse_rate.split(', '))} # of the way back, where ACKs go")
    if draft.loss:
        lines.append(f"  loss: {_one_or_list(draft.loss.split(', '))} # of all packets, forward, at random")
    if draft.outage:
        length, _, begins = draft.outage.partition(" at ")
        lines.append(f"  schedule: [{{at: {begins}, outage: {length}}}] # both directions lose everything")
    return lines


def _flows(draft: Draft, file: Path) -> list[str]:
    drawn, others = is_drawn(draft.sizes), is_drawn(draft.background)
    groups = [
        *([_group(draft, "transfers", draft.sizes, file)] if drawn else []),
        *([_group(draft, "others", draft.background, file)] if others else []),
    ]
    lines = [] if drawn else _single(draft, written=others)
    if draft.background and not others:
        lines += ["background: # not measured, whatever algorithm is"]
        lines += [f"  - {{algorithm: {_BACKGROUND}}}"] * int(draft.background)
    return [
        *lines,
        *(["groups: # connections that start at random, of sizes that are drawn", *groups] if groups else []),
    ]


def _single(draft: Draft, *, written: bool) -> list[str]:
    """The flows outside groups. With ``written``, also the one flow that a profile without groups has by default."""
    size = f"size: {_one_or_list(draft.sizes.split(', '))}" if draft.sizes else ""
    if draft.flows == 1:
        if size:
            return [f"flows: [{{{size}}}] # ends with its last byte"]
        return ["flows: [{}] # one, from the start to the end"] if written else []
    apart_us = _rounded_down(parse_duration(draft.duration) // (_LAST_START_PART * (draft.flows - 1)))
    starts = [format_duration(index * apart_us) for index in range(draft.flows)]
    return ["flows: # each begins on the path that those before it have filled",
            *(f"  - {{start: {start}{', ' + size if size else ''}}}" for start in starts)]  # fmt: skip


def _group(draft: Draft, name: str, sizes: str, file: Path) -> str:
    """A group whose connections start within the first two thirds of the run, on average."""
    count = draft.flows if draft.flows > 1 and name == "transfers" else _CONNECTIONS
    apart_us = max(_rounded_down(2 * parse_duration(draft.duration) // (_LAST_START_PART * count)), 1)
    kind = "published" if sizes in PUBLISHED_SIZES else "file"
    source = sizes if kind == "published" else os.path.relpath(Path(sizes).resolve(), file.resolve().parent)
    source = source if _NAME.fullmatch(source) else json.dumps(source)
    others = "" if name == "transfers" else f", role: background, algorithm: {_BACKGROUND}"
    return (
        f"  - {{name: {name}{others}, connections: {count}, arrivals: poisson, interval: {format_duration(apart_us)}, "
        f"pairs: {_PAIRS}, sizes: {{{kind}: {source}}}}}"
    )


def _rounded_down(duration_us: int) -> int:
    """Round down to whole seconds, or to whole milliseconds if it is less than a second."""
    whole_us = next((unit for unit in (1_000_000, 1000) if duration_us >= unit), 1)
    return duration_us - duration_us % whole_us


def _example_claim(draft: Draft) -> list[str]:
    at = _first_point(draft)
    if is_drawn(draft.sizes):
        return [
            "#   - id: fast-enough",
            f"#     says: with {draft.algorithms[0]} nine of ten transfers take less than a second",
            f"#     value: {{metric: completion_time_p90_s, flow: transfers{at}}}",
            "#     expect: {below: 1 s}",
        ]
    return [
        "#   - id: leaves-early",
        f"#     says: {draft.algorithms[0]} leaves slow start below twice the BDP",
        f"#     value: {{metric: exit_cwnd_bdp, flow: 1{at}}}",
        "#     expect: {below: 2}",
    ]


def _repetition_comment(repetitions: int) -> str:
    if repetitions == 1:
        return "one run is the path as it is; several differ by +-0.5 % of RTT and by their starts"
    return "they differ by +-0.5 % of RTT and by when the flows start"


def _first_point(draft: Draft) -> str:
    """The claim's ``at``: the first value of every swept field, because a claim without ``each`` is about one point."""
    lists = {"algorithm": list(draft.algorithms), "path.buffer": draft.buffer.split(", ")}
    lists |= {"path.reverse_rate": draft.reverse_rate.split(", "), "path.loss": draft.loss.split(", ")}
    if not is_drawn(draft.sizes):
        lists |= {f"flows.{flow}.size": draft.sizes.split(", ") for flow in range(1, draft.flows + 1)}
    if draft.like is None:
        lists |= {"path.rate": draft.rate.split(", "), "path.rtt": draft.rtt.split(", ")}
    swept = ", ".join(f"{name}: {values[0]}" for name, values in lists.items() if len(values) > 1)
    return f", at: {{{swept}}}" if swept else ""


def _one_or_list(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"[{', '.join(values)}]"


_COMMENT_AT = 34


def align_comment(line: str) -> str:
    """Align comments to one column, or two spaces after a longer line."""
    code, mark, comment = line.partition(" # ")
    if not mark or not code.strip() or code.lstrip().startswith("#"):
        return line
    return f"{code.rstrip():<{_COMMENT_AT}} # {comment.strip()}"
