# SPDX-License-Identifier: Apache-2.0
"""What a wrong profile is told: names of its place, where else a field lives, and what a profile cannot say."""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.figure import FigureSection
from howdah.profile.model import Scenario
from howdah.profile.reference import page
from howdah.profile.report import field_names
from howdah.profile.sweep import shape_of
from howdah.profile.unsayable import TITLE, Unsayable, table
from howdah.work.compiled import compile_plans
from tests.unit.profile_factory import make_one

ROWS = {row.what: row for row in table()}
HEAD = "howdah: 1\nname: mine\n"
PATH = "path: {rate: 20 Mbit/s, rtt: 40 ms}\n"
REST = "duration: 4 s\n"


def write(directory: Path, text: str, path: str = PATH) -> Path:
    file = directory / "mine.yaml"
    file.write_text(f"{HEAD}{path}{text}{REST}", encoding="utf-8")
    return file


def refused(directory: Path, text: str, path: str = PATH) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        compile_plans(load(write(directory, text, path)))
    return caught.value


def in_path(field: str) -> str:
    return f"path: {{rate: 20 Mbit/s, rtt: 40 ms, {field}}}\n"


@pytest.mark.parametrize(
    ("path", "text", "line", "hint"),
    [
        (in_path("outage: 1 s"), "", 3, "outage is a field of path.handover and path.schedule[…]"),
        (in_path("limit: 1000 packets"), "", 3, "did you mean delay_limit?"),
        (PATH, "background: [{connections: 5}]\n", 4, "connections is a field of groups[…]"),
        (PATH, "flows: [{connections: 5}]\n", 4, "connections is a field of groups[…]"),
        (PATH, "flows: [{think: 5 s}]\n", 4, "think is a field of groups[…]"),
        (PATH, "repetition: 5\n", 4, "did you mean repetitions?"),
        (PATH, "rtt: 20 ms\n", 4, "did you mean path.rtt?"),
        (PATH, "outage: 1 s\n", 4, "outage is a field of path.handover and path.schedule[…]"),
        (in_path("delay: 20 ms"), "", 3, "did you mean rtt?"),
        (in_path("bandwidth: 20 Mbit/s"), "", 3, "did you mean rate?"),
        (in_path("bufer: 1 bdp"), "", 3, "did you mean buffer?"),
        (in_path("policers: {rate: 10 Mbit/s, burst: 30 kB}"), "", 3, "did you mean policer?"),
        (in_path("txqueuelen: 100"), "", 3, "did you mean queue?"),
        (in_path("queue: codell"), "", 3, "did you mean codel?"),
        (PATH, "flows: [{initcwnd: 10}]\n", 4, "did you mean initial_window?"),
        (
            "path: [{rate: 20 Mbit/s, rtt: 40 ms}, {rate: 1 Mbit/s, rtt: 40 ms}]\n",
            "",
            3,
            "path: {like: [paths/geo, paths/leo]}",
        ),
    ],
)
def test_a_suggestion_fits_its_place(tmp_path: Path, path: str, text: str, line: int, hint: str) -> None:
    error = refused(tmp_path, text, path)
    assert str(error.where).endswith(f"mine.yaml:{line}")
    assert hint in str(error.hint)


def test_a_name_that_nothing_is_like_gets_the_fields_of_its_section(tmp_path: Path) -> None:
    assert str(refused(tmp_path, "collect: {zebra: 1 s}\n").hint).startswith("known fields: tcp_probe, slow_start")


@pytest.mark.parametrize(
    ("path", "text", "what", "nearest"),
    [
        (in_path("loss: 1 % in bursts"), "", "burst loss in which", "path.loss_burst"),
        (in_path("loss: gemodel 1% 16.7%"), "", "burst loss in which", "path.loss_burst"),
        (in_path("queue: l4s"), "", "queue of L4S", "path.queue: dualpi2"),
        (in_path("reverse_queue: fq_codel, ack_drop: 1 %"), "", "thinning of ACKs", "path.reverse_queue"),
        (in_path("ack_decimation: 4"), "", "thinning of ACKs", "stretch-ack"),
        (in_path("hops: [{rate: 50 Mbit/s, mtu: 1420}]"), "", "MTU of one of several hops", "path.middlebox.mtu"),
        (in_path("receiver_gro: true"), "", "offload", "path.gso_max_segs"),
        (in_path("jitter_correlation: 25 %"), "", "mixture of distributions", "path.delay_variation"),
        (in_path("trace: [a.csv, b.csv]"), "", "sweep over several traces", "path.like"),
        (in_path("trace: {file: [a.csv, b.csv]}"), "", "sweep over several traces", "path.like"),
        (PATH, "flows: [{protocol: mptcp, subflows: 2}]\n", "MPTCP", "several flows"),
        (PATH, "flows: [{size: pareto}]\n", "distribution of sizes", "groups[…].mix"),
        (
            PATH,
            "groups: [{name: a, connections: 9, size: 1 kB, rate: 200}]\n",
            "rate of arrivals",
            "groups[…].interval",
        ),
        (
            PATH,
            "groups: [{name: a, connections: 9, size: 1 kB, weight: 3}]\n",
            "weight of a group",
            "groups[…].connections",
        ),
        (
            PATH,
            "claims: [{id: a, says: b, value: {metric: goodput, flow: all, take: p95}, expect: {below: 1 s}}]\n",
            "percentile",
            "cdf",
        ),
        (
            PATH,
            "claims: [{id: a, says: it, value: {metric: p99_of_goodput}, expect: {below: 1 s}}]\n",
            "percentile",
            "take: max",
        ),
    ],
)
def test_what_cannot_be_said_is_said_with_what_is_nearest(
    tmp_path: Path, path: str, text: str, what: str, nearest: str
) -> None:
    error = refused(tmp_path, text, path)
    assert re.search(r"mine\.yaml:[34]$", str(error.where))
    assert f"a profile has no {what}" in str(error.hint) or what in str(error.hint).partition("; nearest")[0]
    assert nearest in str(error.hint).partition("; nearest: ")[2]


def test_a_metric_that_is_almost_there_is_offered_though_it_is_a_percentile(tmp_path: Path) -> None:
    claim = "claims: [{id: a, says: it, value: {metric: completion_time_p90}, expect: {below: 1 s}}]\n"
    assert refused(tmp_path, claim).hint == "did you mean completion_time_p90_s?"


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    def below(model: type[BaseModel], name: str) -> Iterator[tuple[str, type[BaseModel]]]:
        yield name, model
        for field, info in model.model_fields.items():
            shape, inner = shape_of(info.annotation)
            where = f"{name}.{info.alias or field}".removeprefix(".")
            if shape == "list":
                where, (shape, inner) = f"{where}[…]", shape_of(inner)
            if shape == "section":
                yield from below(inner, where)

    yield from below(Scenario, "")
    yield from below(ClaimSection, "claims[…]")
    yield from below(FigureSection, "figures[…]")


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_names_fields_that_there_are_and_speaks_of_none(row: Unsayable) -> None:
    known = dict(sections())
    named = re.findall(r"`([a-z0-9_.[\]…-]+)[^`]*`", row.nearest)
    assert named
    for name in named:
        section, _, field = name.rpartition(".")
        listed = field.removesuffix("[…]") in field_names(known[section]) if section in known else False
        assert listed or name in ("howdah.load", "android-lte", "loss", "mean", "completion_time_p90_s"), name
    assert row.words or row.at
    for place, words in [*row.at.items(), *((place, row.words) for place in known)]:
        fields = {" ".join(re.split(r"[^a-z0-9]+", name)) for name in field_names(known[place])}
        assert not fields & set(words), f"{place} has a field of that name: it can be said"


def test_the_reference_lists_every_row() -> None:
    listed = page().partition(f"## {TITLE}")[2]
    for row in ROWS.values():
        assert f"| {row.what} | {row.nearest} |" in listed


def test_several_traces_are_a_sweep_of_profiles_that_have_one_each(tmp_path: Path) -> None:
    """The row's own advice."""
    for name, rate in (("first", 5), ("second", 8)):
        (tmp_path / f"{name}.csv").write_text(f"time,rate\n0 s,{rate} Mbit/s\n1 s,{rate + 1} Mbit/s\n")
        path = f"path: {{rate: 20 Mbit/s, rtt: 40 ms, trace: {{file: {name}.csv}}}}\n"
        write(tmp_path, "", path).rename(tmp_path / f"{name}.yaml")
    plans = compile_plans(load(write(tmp_path, "", "path: {like: [first.yaml, second.yaml]}\n")))
    rates = [[rate for _, rate in plan.path.rate_steps][:2] for plan in plans]
    assert rates == [[5_000_000, 6_000_000], [8_000_000, 9_000_000]]


IPERF3 = json.dumps({"start": {"version": "iperf 3.18"}, "intervals": [], "end": {}})


@pytest.mark.parametrize(
    ("name", "content", "is_"),
    [
        ("result.json", IPERF3.encode(), "a result of iperf3 (JSON)"),
        ("result.csv", b"\xef\xbb\xbf  " + IPERF3.encode(), "a result of iperf3 (JSON)"),
        ("flent.json", b'{"version": 4, "metadata": {}, "results": {}, "x_values": []}', "a result of flent (JSON)"),
        ("a.qlog", b'{"qlog_version": "0.3", "traces": []}', "a qlog (JSON)"),
        ("cut.json", IPERF3[:-5].encode(), "JSON, or something like it"),
        ("list.json", b"[1, 2]", "JSON"),
        ("a.pcap", struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1), "a capture of packets (pcap)"),
        ("big.pcap", struct.pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1), "a capture of packets (pcap)"),
        ("a.pcapng", struct.pack("<III", 0x0A0D0D0A, 28, 0x1A2B3C4D), "a capture of packets (pcapng)"),
        ("down.gz", b"\x1f\x8b\x08\x00", "packed by gzip"),
        ("page.html", b"<html>", "XML or HTML"),
    ],
)
def test_a_file_that_is_no_trace_is_called_what_it_is(tmp_path: Path, name: str, content: bytes, is_: str) -> None:
    (tmp_path / name).write_bytes(content)
    error = refused(tmp_path, "", in_path(f"trace: {{file: {name}}}"))
    assert error.what.endswith(f"{name} is {is_}, not a trace of a path")
    assert str(error.where).endswith("mine.yaml:3")
    assert "a column time" in str(error.hint)
    assert "Mahimahi's: one time in milliseconds" in str(error.hint)


@pytest.mark.parametrize(("name", "text"), [("a.down", "\n\n0\n2\n5\n"), ("a.csv", "\ntime,loss\n0 s,0 %\n1 s,1 %\n")])
def test_a_trace_that_begins_with_empty_lines_is_one(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    make_one(tmp_path, overrides=[f"path.trace={{file: {name}}}"])


def test_a_line_that_is_no_time_says_what_a_trace_is(tmp_path: Path) -> None:
    (tmp_path / "rates.txt").write_text("0 5.2\n1 5.4\n")
    error = refused(tmp_path, "", in_path("trace: {file: rates.txt}"))
    assert str(error.where).endswith("rates.txt:1")
    assert "one time in milliseconds" in str(error.hint)


def test_a_quic_stack_is_not_said_to_lack_what_only_howdah_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, "traffic: {quic: ngtcp2}\n", ["algorithm=bbr"])
    assert caught.value.what == "howdah does not run the QUIC stack ngtcp2 with 'bbr'"
    assert "it runs it with cubic" in str(caught.value.hint)


WRONG = [
    "path.policer=1 Mbit/s",
    "path.rate",
    "=1",
    "path.queue={a: b}",
    "path.schedule=[1]",
    "path=[1, 2]",
    "algorithm=[]",
    "algorithm=[cubic, cubic]",
    "claims=[{id: a}]",
    "duration=-1 s",
    "repetitions=0",
    "path.like=nothing",
    "path.rate: 1 Mbit/s",
    "path.rate=[1 Mbit/s",
    "groups=[{name: a}]",
    "unknown=1",
]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_set_is_one_message_with_its_words(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "")
    begun = time.process_time()
    assert main(["plan", str(file), "--set", text]) == 2
    assert time.process_time() - begun < 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"howdah: --set {text}")
    assert said.err.count("howdah:") == 1
