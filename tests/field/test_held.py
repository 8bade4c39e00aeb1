# SPDX-License-Identifier: Apache-2.0
"""Questions of people whose flows were held back by something else than their congestion control.

Each expected number is the kernel's own counter, the program's own report, or window over RTT; the comments say which.
"""

from __future__ import annotations

import pytest

from howdah.held import HeldBy
from tests.field.answer import FieldRun, ask, says

pytestmark = pytest.mark.guest

HEAD = "howdah: 1\nname: held\n"
IPERF3 = """flows:
  - traffic:
      client: {{command: [iperf3, -c, "{{server_address}}", -p, "{{port}}", -w, {window}, -t, "4", -J, --logfile,
                         "{{output}}/iperf3.json"]}}
      server: {{command: [iperf3, -s, "-1", -p, "{{port}}"]}}
duration: 6 s
"""
MSS = 1448


def shares(run: FieldRun, flow: int | None = 1, **more: str) -> dict[str, float]:
    """Of every kind; together they are all of the flow's time."""
    found = {kind.value: float(run.value(kind.metric, flow, **more)) for kind in HeldBy}
    assert sum(found.values()) == pytest.approx(1)
    return found


def counted_share(run: FieldRun, column: str, until_s: float) -> float:
    """What the kernel counted until then, of the time since its first reading with data outstanding."""
    rows = [row for row in run.info() if row["time_ns"] <= until_s * 1e9]
    return float(rows[-1][column]) / float(rows[-1]["busy_time_us"])


def rate_bits_per_second(run: FieldRun, from_s: float, to_s: float) -> float:
    """What was acknowledged between the readings in an interval, by the kernel's count."""
    rows = [row for row in run.info() if from_s <= row["time_ns"] / 1e9 <= to_s]
    acked = rows[-1]["bytes_acked_bytes"] - rows[0]["bytes_acked_bytes"]
    return float(acked * 8e9 / (rows[-1]["time_ns"] - rows[0]["time_ns"]))


def test_one_stream_gets_less_the_farther_away_the_other_end_is() -> None:
    """A receive buffer of 64 KiB: what it offers, over RTT, is all that there can be."""
    profile = f"""{HEAD}path: {{rate: 100 Mbit/s, rtt: [40 ms, 100 ms], buffer: 100 packets}}
host: {{tcp_rmem: 4096 16384 65536}}
duration: 4 s
"""
    answer = ask(profile)
    for rtt, rtt_s in (("40 ms", 0.04), ("100 ms", 0.1)):
        run = answer.run(path__rtt=rtt)
        assert run.failed == {}
        assert run.value("held_back_by") == "receive-buffer"
        held = shares(run)
        assert held["receive-buffer"] > 0.9
        assert held["unknown"] < 0.01
        window = run.value("held_window_bytes")
        assert window == max(row["snd_wnd_bytes"] for row in run.info()) <= 65536
        counted = counted_share(run, "rwnd_limited_us", 4)
        assert run.value("held_receive_window_share") == pytest.approx(counted, abs=0.03)
        # Whole segments of the window each round trip.
        assert rate_bits_per_second(run, 2, 4) == pytest.approx(window // MSS * MSS * 8 / rtt_s, rel=0.03)


def test_a_claim_on_the_time_that_a_window_holds_a_flow_is_answered() -> None:
    profile = f"""{HEAD}path: {{rate: 50 Mbit/s, rtt: 80 ms, buffer: 100 packets}}
host: {{tcp_rmem: 4096 131072 131072}}
duration: 4 s
claims:
  - {{id: window, says: The receive window holds the flow back, value: {{metric: receive_window_limited_s}},
     expect: {{at_least: 2 s}}}}
  - {{id: share, says: for most of its time, value: {{metric: held_receive_window_share}}, expect: {{above: 50 %}}}}
  - {{id: why, says: by its buffer, value: {{metric: held_back_by}}, expect: {{is: receive-buffer}}}}
"""
    answer = ask(profile)
    (run,) = answer.runs
    assert answer.status == 0
    assert "3 pass" in answer.said
    assert run.value("receive_window_limited_s") == max(row["rwnd_limited_us"] for row in run.info()) / 1e6


def test_a_claim_on_what_needs_a_capture_is_refused_before_anything_runs() -> None:
    profile = f"""{HEAD}path: {{rate: 50 Mbit/s, rtt: 80 ms, buffer: 100 packets}}
duration: 4 s
claims:
  - {{id: lag, says: It lags, value: {{metric: autotuning_lag_s}}, expect: {{above: 1 s}}}}
"""
    answer = ask(profile)
    assert answer.runs == ()
    assert answer.status != 0
    assert "autotuning_lag_s" in answer.complained
    assert "held_autotuning_share" in answer.complained
    assert "question.yaml:6" in answer.complained


def test_a_socket_buffer_of_iperf3_is_its_own_limit() -> None:
    """What is in flight when the buffer is full, over the RTT, is what iperf3 reports of its last seconds."""
    answer = ask(f"{HEAD}path: {{rate: 500 Mbit/s, rtt: 60 ms, buffer: 1000 packets}}\n{IPERF3.format(window='512K')}")
    (run,) = answer.runs
    assert run.failed == {}
    assert run.value("held_back_by") == "send-buffer"
    held = shares(run)
    # The time before it is that of slow start: 20, 40, 80, 160 and 320 segments, the last of which fill the buffer.
    assert held["congestion-window"] == pytest.approx(4 * 0.06 / 4, abs=0.02)
    assert held["send-buffer"] > 0.85
    assert max(row["rwnd_limited_us"] for row in run.info()) == 0 == held["receive-buffer"]
    report = run.program_json("program/1-client/iperf3.json")
    seconds = [each["sum"]["bits_per_second"] for each in report["intervals"]]
    flight = [row["unacked_packets"] for row in run.info() if 1e9 < row["time_ns"] < 4e9]
    rtt = [row["rtt_us"] for row in run.info() if 1e9 < row["time_ns"] < 4e9]
    by_arithmetic = sorted(flight)[len(flight) // 2] * MSS * 8e6 / sorted(rtt)[len(rtt) // 2]
    assert seconds[-1] == pytest.approx(by_arithmetic, rel=0.05)


def test_fixed_buffers_of_iperf3_at_a_long_distance() -> None:
    """iperf3 fills its buffer in the first second and writes nothing in the next three; slow start takes ten rounds."""
    path = "path: {rate: 1 Gbit/s, rtt: 300 ms, buffer: 5000 packets, sender_interface: 1 Gbit/s}\n"
    answer = ask(f"{HEAD}{path}{IPERF3.format(window='25M')}")
    (run,) = answer.runs
    assert run.failed == {}
    intervals = run.program_json("program/1-client/iperf3.json")["intervals"]
    assert [round(each["sum"]["bits_per_second"] / 1e6) for each in intervals[1:]] == [0, 0, 0]
    held = shares(run)
    assert held["congestion-window"] > 0.5
    assert max(row["rwnd_limited_us"] for row in run.info()) == 0 == run.value("held_receive_window_share")


def test_a_window_that_is_tuned_late_is_a_result() -> None:
    """bbr over a satellite: the kernel counts the time, and the largest window is far below the buffer's maximum."""
    profile = f"""{HEAD}path: {{rate: 50 Mbit/s, rtt: 600 ms, buffer: 1 bdp, loss: 0.5 %}}
algorithm: bbr
duration: 12 s
"""
    (run,) = ask(profile).runs
    assert run.failed == {}
    held = shares(run)
    assert run.value("held_back_by") in ("autotuning", "recovery")
    counted = counted_share(run, "rwnd_limited_us", 12)
    assert counted > 0.05
    assert held["autotuning"] == pytest.approx(counted, abs=0.03)
    assert held["receive-buffer"] == held["handshake-window"] == 0
    assert run.value("receive_window_peak_bytes") < 0.2 * 268435456


def test_a_first_flight_of_70_meets_the_window_of_the_handshake() -> None:
    """Of 65 535 bytes 45 whole segments; the rest of the flight waits a round trip, 100 of some 2000 ms."""
    profile = f"""{HEAD}path: {{rate: 50 Mbit/s, rtt: 100 ms, buffer: 1 bdp}}
flows: [{{size: 10 MB, initial_window: 70, initial_receive_window: 100}}]
duration: 4 s
"""
    (run,) = ask(profile).runs
    assert run.failed == {}
    first = run.table("tcp_probe")[0]
    assert first["snd_nxt_bytes"] == 45 * MSS
    assert first["cwnd_packets"] == 70
    held = shares(run)
    took_s = run.value("transfer_time_s")
    assert held["handshake-window"] == pytest.approx(0.1 / took_s, rel=0.1)
    assert run.value("held_receive_window_share") == pytest.approx(
        max(row["rwnd_limited_us"] for row in run.info()) / 1e6 / took_s, abs=0.02
    )


def test_a_send_buffer_that_the_profile_sets_is_a_result() -> None:
    """bbr with a buffer of 1 000 000 bytes: the kernel counts the time."""
    profile = f"""{HEAD}path: {{rate: 100 Mbit/s, rtt: 100 ms, buffer: 1 bdp}}
host: {{tcp_wmem: 4096 87380 1000000}}
algorithm: bbr
duration: 4 s
"""
    (run,) = ask(profile).runs
    assert run.failed == {}
    assert run.value("held_back_by") == "send-buffer"
    assert run.value("held_send_buffer_share") >= counted_share(run, "sndbuf_limited_us", 4) - 0.02 > 0.05


def test_a_connection_that_is_kept_alive_begins_anew_after_each_pause() -> None:
    """Four answers with 1.5 s between: 4.5 s of pauses, and three restarts of the window, which the kernel shows."""
    profile = f"""{HEAD}path: {{rate: 100 Mbit/s, rtt: 100 ms, buffer: 1 bdp}}
groups:
  - {{name: api, connections: 1, request: 300 B, size: 200 kB, requests: 4, think: 1500 ms}}
host: {{sysctls: {{net.ipv4.tcp_slow_start_after_idle: ["1", "0"]}}}}
duration: 8 s
"""
    answer = ask(profile)
    restarts, stays = (answer.run(host__sysctls__net__ipv4__tcp_slow_start_after_idle=each) for each in "10")
    for run in (restarts, stays):
        assert run.failed == {}
        assert run.value("think_time_s") == pytest.approx(4.5, abs=1e-4)
        whole = run.value("completion_time_s")
        assert run.value("completion_without_think_s") == pytest.approx(whole - 4.5, abs=1e-4)
        # What is left is the handshake and the four answers, by the client's own record.
        made = run.agent()["transactions"]
        answers = sum(each["end_ns"] - each["start_ns"] for each in made) / 1e9
        assert run.value("completion_without_think_s") == pytest.approx(answers, abs=0.11)
        held = shares(run, None, group="api")
        assert held["think"] == pytest.approx(4.5 / (whole - 0.1), rel=0.03)
    assert restarts.value("idle_restarts", None, group="api") == 3
    assert stays.value("idle_restarts", None, group="api") == 0
    windows = [row["cwnd_packets"] for row in restarts.info()]
    assert restarts.value("idle_restart_before_packets", None, group="api") == max(windows)
    assert restarts.value("idle_restart_after_packets", None, group="api") == 10
    assert restarts.value("held_back_by", None, group="api") == "idle-restart"
    # The pauses are no part of it: what the restarts cost is a share of the rest.
    rest = 1 - shares(restarts, None, group="api")["think"]
    told = restarts.value("held_back_share", None, group="api")
    assert told == pytest.approx(shares(restarts, None, group="api")["idle-restart"] / rest)
    assert says(answer.sentence, 100 * told, "%")
    assert shares(stays, None, group="api")["idle-restart"] == 0


def test_acks_on_a_thin_way_back_hold_the_flow_back() -> None:
    """100 kbit/s carry 189 ACKs of 66 bytes a second: of two segments each, 4.4 of 10 Mbit/s."""
    profile = f"""{HEAD}path: {{rate: 10 Mbit/s, reverse_rate: 100 kbit/s, rtt: 20 ms, buffer: 100 packets,
       reverse_buffer: 15 kB}}
algorithm: bbr
duration: 5 s
"""
    (run,) = ask(profile).runs
    assert run.value("held_back_by") == "way-back"
    assert shares(run)["way-back"] > 0.9
    assert rate_bits_per_second(run, 2, 5) == pytest.approx(100e3 / 8 / 66 * 2 * MSS * 8, rel=0.03)


def test_a_window_is_cut_once_for_each_recovery() -> None:
    profile = f"""{HEAD}path: {{rate: 100 Mbit/s, rtt: 50 ms, buffer: [0.25 bdp, 1 bdp]}}
duration: 5 s
"""
    answer = ask(profile)
    for buffer in ("0.25 bdp", "1 bdp"):
        run = answer.run(path__buffer=buffer)
        assert run.value("window_cuts") == run.counter("TcpExtTCPSackRecovery") > 0
        held = shares(run)
        assert held["unknown"] < 0.01
        assert held["congestion-window"] + held["bandwidth"] > 0.8
