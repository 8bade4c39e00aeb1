# SPDX-License-Identifier: Apache-2.0
"""Wrong profiles: the place, what was expected, the nearest valid name."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.profile import load
from howdah.profile.source import parse_yaml
from tests.unit.profile_factory import BASE, make_plans, write_profile


def _error(tmp_path: Path, extra: str = "", overrides: list[str] | None = None, base: str = BASE) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        load(write_profile(tmp_path, extra, base), overrides or [])
    return caught.value


@pytest.mark.parametrize(
    ("extra", "line", "what", "hint"),
    [
        ("algoritm: cubic\n", 7, "there is no field 'algoritm'", "did you mean algorithm?"),
        ("rate: 5 Mbit/s\n", 7, "there is no field 'rate'", "did you mean path.rate?"),
        ("collect:\n  tcp_prob: true\n", 8, "there is no field 'tcp_prob' in collect", "did you mean tcp_probe?"),
        ("host: {qqqqqq: 1}\n", 7, "there is no field 'qqqqqq' in host", "known fields: sysctls, tcp_rmem"),
        ("algorithm: cubci\n", 7, "there is no algorithm 'cubci'", "did you mean cubic?"),
        ("traffic: {source: kernal}\n", 7, "kernel, iperf3, python or flent, not 'kernal'", "did you mean kernel?"),
        ("duration: 4\n", 6, "duration: expected a duration such as 120 ms", None),
        ("seed: x\n", 7, "seed: expected a whole number, not 'x'", None),
        ("seed: 1.5\n", 7, "seed: expected a whole number, not 1.5", None),
        ("seed: -1\n", 7, "seed: input should be greater than or equal to 0, not -1", None),
        ("calibrate: 1\n", 7, "calibrate: expected true or false, not 1", None),
        ("flows: 3\n", 7, "flows: expected a list, not 3", None),
        ("flows: []\n", 7, "flows: nothing is measured", None),
        ("flows: [x]\n", 7, "flows.1: expected a mapping of fields, not 'x'", None),
        ("collect: true\n", 7, "collect: expected a mapping of fields, not True", "its fields: tcp_probe, slow_start"),
        ("collect: {qdisc: 10 us}\n", 7, "collect.qdisc: expected an interval of at least 1 ms", None),
        ("flows:\n  - {start: 5 s}\n", 8, "flows.1.start: the flow starts at or after the end", None),
        ("flows:\n  - {stop: 5 s}\n", 8, "flows.1.stop: the flow stops after the end", None),
        ("flows:\n  - {stop: 1 s, size: 1 MB}\n", 8, "flows.1.stop: stop and size are both given", None),
        ("flows:\n  - {start: 2 s,\n     stop: 1 s}\n", 9, "flows.1.stop: the flow stops before it starts", None),
        ("flows:\n  - name: a\n  - name: a\n", 8, "two flows are called 'a'", None),
        ("traffic: {source: iperf3, sink: python}\n", 7, "source and sink must both be iperf3", None),
        ("measure:\n  window: {start: 3 s, stop: 2 s}\n", 8, "the window is empty", None),
        ("measure:\n  window: {stop: 9 s}\n", 8, "the window ends after the run", None),
        ("topology: {file: x.py}\n", 7, "file and class belong together", None),
        ("topology: {name: ring}\n", 7, "expected dumbbell or chain, not 'ring'", None),
        ("perturbation: {rtt: 20 %}\n", 7, "at most 10 %", None),
        ("host: {tcp_rmem: 5 MB}\n", 7, "'5 MB' does not have the form LEAST INITIAL LARGEST in bytes", None),
        ("kernel: ./no/such/tree\n", 7, "there is no kernel tree", None),
        ("modules: [tcp_x.c]\n", 7, "there is no file", "paths start at the profile's directory"),
        ("modules: [tcp_x.py]\n", 7, "expected a kernel module's .c, .ko or .bpf.c file", None),
        ("algorithms: {x: {kernel: a_name_of_16_cha}}\n", 7, "algorithms.x.kernel: 'a_name_of_16_cha'", None),
        ("algorithms: {x: {kernel: y, parameters: {a: 1}}}\n", 7, "has parameters but no module", None),
    ],
)  # fmt: skip
def test_wrong_fields(tmp_path: Path, extra: str, line: int, what: str, hint: str | None) -> None:
    base = BASE if "duration" not in extra else BASE.replace("duration: 4 s\n", "")
    error = _error(tmp_path, extra, base=base)
    assert error.where == f"{tmp_path / 'small.yaml'}:{line}"
    assert what in error.what
    if hint is not None:
        assert error.hint is not None
        assert error.hint.startswith(hint)


@pytest.mark.parametrize(
    ("path", "line", "what"),
    [
        ("rate: 20 Mbit/s", 3, "the delay is missing: give rtt, or one_way_delay with forward and reverse"),
        ("rate: 20 Mbit/s\n  rtt: 40 ms\n  one_way_delay: {forward: 20 ms, reverse: 20 ms}", 6, "both given; give one"),
        (
            "rate: 20 Mbit/s\n  one_way_delay: {forward: 20 ms}",
            5,
            "the field 'reverse' is missing in path.one_way_delay",
        ),
        ("rate: 20 Mbit/s\n  one_way_delay: 20 ms", 5, "path.one_way_delay: expected a mapping of fields"),
        ("rate: 20 Mbit/s\n  one_way_delay: {forward: 0, reverse: 0}", 5, "a path has a round-trip time"),
        ("rate: 20 Mbit/s\n  delay: 40 ms", 5, "there is no field 'delay' in path"),
        ("rtt: 40 ms", 3, "the field 'rate' is missing in path"),
        ("rate: 20\n  rtt: 40 ms", 4, "path.rate: expected a rate such as 400 Mbit/s"),
        ("rate: 20 MB/s\n  rtt: 40 ms", 4, "path.rate: expected a rate such as 400 Mbit/s"),
        ("rate: 0 Mbit/s\n  rtt: 40 ms", 4, "expected a rate between 1 kbit/s and 1 Tbit/s"),
        ("rate: 20 Mbit/s\n  rtt: 40", 5, "path.rtt: expected a duration such as 120 ms"),
        ("rate: 20 Mbit/s\n  rtt: 0 ms", 5, "path.rtt: expected a duration longer than 0"),
        ("rate: 20 Mbit/s\n  rtt: 2000 min", 5, "at most one day"),
        ("rate: 20 Mbit/s\n  rtt: 40 ms\n  buffer: 1", 6, "path.buffer: expected a buffer such as 1 bdp"),
        ("rate: 20 Mbit/s\n  rtt: 40 ms\n  loss: 60 %", 6, "a loss of at most 50 %"),
        ("rate: 20 Mbit/s\n  rtt: 40 ms\n  gso_max_segs: 0", 6, "between 1 and 65535 segments, or kernel"),
        (
            "rate: 20 Mbit/s\n  rtt: 40 ms\n  delay_variation: {distribution: uniform, correlation_time: 0, source: x}",
            6,
            "distribution uniform needs amplitude",
        ),
    ],
)
def test_wrong_paths(tmp_path: Path, path: str, line: int, what: str) -> None:
    error = _error(tmp_path, base=f"howdah: 1\nname: small\npath:\n  {path}\nduration: 4 s\n")
    assert error.where == f"{tmp_path / 'small.yaml'}:{line}"
    assert what in error.what


def test_every_finding_is_reported_unknown_names_first(tmp_path: Path) -> None:
    error = _error(tmp_path, "sead: 3\n", base=BASE.replace("rate: 20 Mbit/s", "rate: 20"))
    file = tmp_path / "small.yaml"
    assert error.what == "there is no field 'sead'"
    assert str(error).splitlines() == [
        f"{file}:7: there is no field 'sead'",
        "  did you mean seed?",
        f"  also {file}:4: path.rate: expected a rate such as 400 Mbit/s (bit/s, kbit/s, Mbit/s or Gbit/s), "
        "not 20 (the unit is missing)",
    ]


@pytest.mark.parametrize(
    ("override", "what", "hint"),
    [
        ("path.rte=100Mbit/s", "there is no field 'rte' in path", "did you mean rate?"),
        ("path.rate=fast", "path.rate: expected a rate such as 400 Mbit/s", None),
        ("path.rate", "expected FIELD=VALUE", "for example --set path.rate=100Mbit/s"),
        ("=3", "expected FIELD=VALUE", None),
        ("path..rate=3", "expected FIELD=VALUE", None),
        ("path.rate.x=3", "path.rate is a single value and has no field 'x'", None),
        ("flows.2.start=1 s", "flows is a list; expected a number from 1 to 1", None),
        (
            "flows[0].start=1 s",
            "'flows[0].start' is not the name of a field",
            "members of lists count from 1, or have a name: flows.1.start",
        ),
        (
            "flows[a].start=1 s",
            "'flows[a].start' is not the name of a field",
            "members of lists count from 1, or have a name: flows.a.start",
        ),
        (
            "flows[…].start=1 s",
            "'flows[…].start' is not the name of a field",
            "members of lists count from 1, or have a name: flows.1.start",
        ),
        ("flows.first.start=1 s", "flows: expected a list, not a mapping", None),
        ("algorithm=[cubic, cubik]", "there is no algorithm 'cubik'", "did you mean cubic?"),
        ("algorithm=[cubic", "this is not YAML", None),
        ("seed=!!python/name:os.system", "tags", None),
    ],
)
def test_errors_in_overrides_point_at_the_command_line(
    tmp_path: Path, override: str, what: str, hint: str | None
) -> None:
    error = _error(tmp_path, overrides=[override])
    assert error.where == f"--set {override}"
    assert what in error.what
    if hint is not None:
        assert error.hint is not None
        assert error.hint.startswith(hint)


def test_overrides_apply_in_order_and_reach_every_kind_of_field(tmp_path: Path) -> None:
    file = write_profile(tmp_path, "flows:\n  - {start: 0 s}\n  - {start: 1 s}\n")
    profile = load(
        file,
        [
            "path.rate=100Mbit/s",
            "path.rate=50 Mbit/s",
            "flows.2.start=2 s",
            "flows.3.size=3 MB",
            "host.sysctls.net.ipv4.tcp_sack=0",
            "algorithm=[cubic, reno]",
            "collect.pcap=[s1:s1-eth0]",
            "kernel=6.10",
        ],
    )
    first, second = profile.cells()
    assert first.scenario.path.rate == 50_000_000
    assert [flow.start for flow in first.scenario.flows] == [0, 2_000_000, 0]
    assert first.scenario.flows[2].size == 3_000_000
    assert first.scenario.host.sysctls == {"net.ipv4.tcp_sack": "0"}
    assert (first.scenario.algorithm, second.scenario.algorithm) == ("cubic", "reno")
    assert first.scenario.kernel == "6.10"
    written = parse_yaml(profile.text, "x")[0]
    assert written["kernel"] == "6.10"
    (tmp_path / "again.yaml").write_text(profile.text)
    again = load(tmp_path / "again.yaml")
    assert [cell.scenario for cell in again.cells()] == [first.scenario, second.scenario]
    assert [cell.run for cell in again.cells()] == [first.run, second.run]


def test_a_path_of_the_command_line_starts_at_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_profile(tmp_path)
    here = tmp_path / "here"
    here.mkdir()
    (here / "tcp_mine.c").touch()
    monkeypatch.chdir(here)
    cell = next(iter(load(file, ["algorithm=mine", "modules=[./tcp_mine.c]"]).cells()))
    assert cell.absolute("./tcp_mine.c", "modules", 0) == here / "tcp_mine.c"
    below = ["algorithm=mine", "modules=[here/tcp_mine.c]"]
    assert next(iter(load(file, below).cells())).absolute("here/tcp_mine.c", "modules", 0) == here / "tcp_mine.c"
    error = _error(tmp_path, overrides=["algorithm=mine", "modules=[tcp_mine.c]"])
    assert "there is no file" in error.what
    assert "./" in str(error.hint)


def test_without_overrides_the_text_is_kept_as_written(tmp_path: Path) -> None:
    file = write_profile(tmp_path, "# a comment\n")
    assert load(file).text == file.read_text()


def test_one_way_delay_and_rtt_mean_what_they_say(tmp_path: Path) -> None:
    (cell,) = load(write_profile(tmp_path)).cells()
    assert (cell.scenario.path.forward_delay_us, cell.scenario.path.reverse_delay_us) == (20_000, 20_000)
    base = BASE.replace("rtt: 40 ms", "one_way_delay: {forward: 10 ms, reverse: 30 ms}")
    (cell,) = load(write_profile(tmp_path, base=base)).cells()
    assert (cell.scenario.path.forward_delay_us, cell.scenario.path.reverse_delay_us) == (10_000, 30_000)
    base = BASE.replace("rtt: 40 ms", "rtt: 3 us")
    (cell,) = load(write_profile(tmp_path, base=base)).cells()
    assert (cell.scenario.path.forward_delay_us, cell.scenario.path.reverse_delay_us) == (1, 2), "nothing is lost"


@pytest.mark.parametrize(
    "field",
    [
        "kernel: {name}",
        "kernel: ./{name}",
        "modules: [{name}.c]",
        "topology: {{file: {name}}}",
        "path: {{like: {name}}}",
        "path: {{rate: 1 Mbit/s, rtt: 20 ms, trace: {{file: {name}}}}}",
        "receiver: {{stack: ./{name}}}",
        "traffic: {{client: [./{name}], server: [./{name}]}}",
    ],
)
@pytest.mark.parametrize("length", [253, 300, 5000])
def test_a_name_that_no_file_can_have_is_refused_in_words(tmp_path: Path, field: str, length: int) -> None:
    with pytest.raises(ProfileError) as refused:
        make_plans(tmp_path, field.format(name="x" * length) + "\n")
    assert refused.value.where
