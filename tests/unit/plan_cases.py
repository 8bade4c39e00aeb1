# SPDX-License-Identifier: Apache-2.0
"""Small profiles that together ask for everything a plan can hold, and some that no plan can be made of."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.linux.netlink.discipline import queues

TRACE = """\
time, rate, forward_delay, loss
0 s, 8 Mbit/s, 20 ms, 0 %
500 ms, 12 Mbit/s, 30 ms, 1 %
1 s, 4 Mbit/s, 25 ms, 0 %
"""
PAIR = "server: {command: [nginx]}, client: {command: [curl]}"
_SENDS = "sender: {stack: smoltcp}\nalgorithm: reno\n"


@dataclass(frozen=True)
class Asked:
    """``extra`` follows the base profile of profile_factory.py, from its line 7 on."""

    extra: str = ""
    overrides: tuple[str, ...] = ()
    engine: str | None = None


PLANNED = {
    "base": Asked(),
    "flows": Asked(
        "flows: [{}, {start: 1 s, stop: 2 s, algorithm: reno, initial_window: 20, rtt: 90 ms}, {size: 1 MB, name: up, "
        "opener: receiver, port: 80}]\nbackground: [{}, {direction: reverse, algorithm: bbr}]\n",
        ("path.reverse_rate=5 Mbit/s", "path.reverse_buffer=2 bdp", "repetitions=2"),
    ),
    "path": Asked(
        "flows: [{}, {}]\n",
        (
            *("path.loss=1 %", "path.reorder={share: 20 %, gap: 10}", "path.mtu=9000", "path.tick=100 us"),
            *("path.sender_interface=1 Gbit/s", "path.gso_max_segs=kernel", "path.reverse_rate=1 Mbit/s"),
            *("path.reverse_buffer=50 packets", "path.burst=none"),
        ),
    ),
    "middlebox": Asked(
        "",
        (
            "path.middlebox={mtu: 1400, clear_ecn: true, strip: [sack, timestamps], lose: [20, 30-32], duplicate: 1 %, "
            "corrupt: 0.5 %}",
        ),
    ),
    "both ways": Asked(
        "",
        (
            *("path.reverse_rate=1 Mbit/s", "path.reverse_loss=1 %", "path.reverse_loss_burst=3"),
            "path.schedule=[{at: 1 s, reverse_rate: 500 kbit/s, loss: 5 %, loss_for: 1 s}, {at: 1500 ms, outage: 1 s}]",
        ),
    ),
    "drawn delays": Asked(
        "",
        (
            "path.delay_variation={distribution: pareto, order: broken, standard_deviation: 2 ms, source: x}",
            "path.delay_limit=50",
        ),
    ),
    "tunnel": Asked("", ("path.middlebox={overhead: gre}", "path.reverse_rate=1 Mbit/s")),
    "hops": Asked("", ("path.hops=[{rate: 30 Mbit/s}, {rate: 25 Mbit/s, place: after}]",)),
    "schedule": Asked(
        "", ("path.schedule=[{at: 1 s, rate: 5 Mbit/s}, {at: 2 s, rtt: 60 ms}, {at: 3 s, forward_delay: 5 ms}]",)
    ),
    "trace": Asked("", ("path.trace={file: trace.csv, repeat: 1500 ms, scale: 50 %}",)),
    **{
        name: Asked(
            "",
            (f"path.queue={name}", "path.buffer=4 bdp", "path.ecn=true", *["kernel=debian-newest"] * bool(kind.since)),
        )
        for name, kind in queues().items()
        if not kind.unmarked
    },
    "fq at the sender": Asked("", ("sender.queue={kind: fq, flow_limit: 50}", "topology.pairs=2")),
    "pfifo_fast at the sender": Asked("", ("sender.queue=pfifo_fast", "calibrate=false")),
    "gred": Asked("", ("path.queue={kind: gred, dscp: 10}", "path.buffer=4 bdp")),
    "policed": Asked("", ("path.policer={rate: 5 Mbit/s, burst: 100 kB}",)),
    "jitter": Asked("perturbation: {jitter: 2 ms}\nrepetitions: 2\n", ("duration=100 ms",)),
    "groups": Asked(
        "groups:\n- {name: short, connections: 3, interval: 100 ms, start: 200 ms, size: 30 kB, pairs: 2}\n"
        "- {name: many, connections: 3, spread: 2 s, lifetime: 1 s, algorithm: bbr, initial_window: 4}\n"
        "- {name: ask, connections: 2, request: 300 B, size: 10 kB, requests: 3, think: 100 ms}\n"
        "- {name: back, role: background, direction: reverse, connections: 2, size: 9 kB, rtt: 90 ms}\n"
        "- {name: udp, role: background, connections: 2, start: 500 ms, interval: 1 s, lifetime: 2 s, "
        "udp: {rate: 1 Mbit/s, on_off: {on: 300 ms, off: 600 ms}}}\n",
        ("path.reverse_rate=20 Mbit/s",),
    ),
    "http": Asked("groups:\n- {name: web, connections: 2, http: {object: 20 kB, requests: 3}}\n"),
    "mix": Asked("flows: [{}]\ngroups:\n- {name: mid, role: background, mix: {rate: 5 Mbit/s}}\n", ("duration=1 s",)),
    "receivers": Asked("flows: [{}, {receiver_behaviour: windows-xp}, {receiver_behaviour: delayed-ack}]\n"),
    "kernels": Asked("flows: [{}, {receiver_kernel: debian-5.10}]\nsplit: true\n"),
    "processors": Asked(
        "sender: {processor: {model: of-2007, searched: 0.4 us, queue: 300}}\n"
        "receiver: {behaviour: linux, processor: {packet: 1500 ns}}\n"
    ),
    "stack": Asked("receiver: {stack: lwip}\nflows: [{}, {receiver_stack: linux}]\n"),
    "stack that sends": Asked(f"{_SENDS}flows: [{{}}, {{sender_stack: linux}}]\n"),
    "program": Asked(f"flows:\n- {{traffic: {{{PAIR}, sends: client, ports: [8080]}}}}\n- {{size: 1 MB}}\n"),
    "quic": Asked("traffic: {quic: ngtcp2}\n"),
    "iperf3": Asked("traffic: {source: iperf3, sink: iperf3}\nflows: [{size: 1 MB}]\n"),
    "settings": Asked(
        "host: {tcp_rmem: 4096 131072 6291456, tcp_wmem: 4096 16384 4194304, ipv6: true, sysctls: {net.ipv4.tcp_sack: "
        "0}}\nalgorithm: mine\nalgorithms: {mine: {like: standard, parameters: {init_ssthresh: 32}}}\n"
        "collect: {pcap: ['r1:r1-eth0'], cpu: true, tcp_info: 20 ms, qdisc: 50 ms}\nmeasure: {window: {start: 1 s}}\n"
        "calibrate: false\n"
    ),
    "sender of 2007": Asked("sender: of-2007\nalgorithm: standard\n"),
    "vm": Asked("", (), "vm"),
    "host": Asked("flows: [{}, {}]\n", (), "host"),
    "machines": Asked("", (), "machines"),
    "ns2": Asked("flows: [{size: 100 kB}]\nalgorithm: standard\n", (), "ns2"),
}

REFUSED = {
    "an engine that is not there": Asked("", (), "qemu"),
    "an interface": Asked("collect: {pcap: [r1-eth7]}\n"),
    "kernels on one that has one": Asked("split: true\n", (), "vm"),
    "kernels and overtaking": Asked("split: true\n", ("path.reorder={share: 1 %}",)),
    "kernels too near": Asked("split: true\nflows: [{rtt: 15 ms}]\n"),
    "kernels that share a host": Asked(
        "topology: {pairs: 1}\nflows: [{}, {receiver_kernel: debian-5.10, start: 1 s}]\n"
    ),
    "kernels and a way back": Asked(
        "flows: [{}, {receiver_kernel: debian-5.10}]\nsplit: true\n", ("path.reverse_rate=1 Mbit/s",)
    ),
    "kernels and time of the processor": Asked("split: true\ncollect: {cpu: true}\n"),
    "kernels and a capture": Asked("split: true\ncollect: {pcap: ['right:right-eth0']}\n"),
    "kernels and programs": Asked(f"traffic: {{{PAIR}}}\nsplit: true\n"),
    "a host": Asked("flows: [{receiver: r7}]\n"),
    "delays of one host": Asked("topology: {pairs: 1}\nflows: [{}, {rtt: 90 ms}]\n"),
    "datagrams of python": Asked(
        "flows: [{}]\ngroups: [{name: u, role: background, connections: 1, udp: {rate: 1 Mbit/s}}]\n", (), "host"
    ),
    "a datagram beyond the MTU": Asked(
        "flows: [{}]\ngroups: [{name: u, role: background, connections: 1, udp: {rate: 1 Mbit/s, packet: 3000 B}}]\n"
    ),
    "a server in real time": Asked("groups: [{name: web, connections: 2, http: {object: 20 kB}}]\n", (), "host"),
    "iperf3 and its receiver": Asked("traffic: {source: iperf3}\nflows: [{opener: receiver}]\n"),
    "a port of senders": Asked("flows:\n  - {}\n  - {port: 40002}\n"),
    "a port twice": Asked("topology: {pairs: 1}\nflows:\n  - {}\n  - {port: 443}\n  - {port: 443}\n"),
    "flent in real time": Asked("traffic: {source: flent}\n", (), "host"),
    "flent of a size": Asked("traffic: {source: flent}\nflows: [{size: 1 MB}]\n"),
    "too many connections": Asked(
        "groups:\n" + "".join(f"- {{name: {each}, connections: 40000, spread: 1 s, size: 1 kB}}\n" for each in "abc")
    ),
    "nothing in time": Asked("groups: [{name: a, connections: 1, start: 3999999 us, size: 1 kB}]\n"),
    "what a model lacks": Asked("host: {sysctls: {net.ipv4.tcp_sack: 0}}\n", (), "ns2"),
    "an algorithm that a model lacks": Asked("algorithm: bbr\nflows: [{size: 1 MB}]\n", (), "ns2"),
    "HyStart in a model": Asked("algorithm: cubic\nflows: [{size: 1 MB}]\n", (), "ns2"),
    "a receiver that a model lacks": Asked("receiver: windows-xp\nalgorithm: reno\nflows: [{size: 1 MB}]\n", (), "ns2"),
    "a processor that filters": Asked("receiver: {behaviour: windows-xp, processor: {packet: 1500 ns}}\n"),
    "a processor in real time": Asked("sender: {processor: of-2007}\n", (), "host"),
    "programs elsewhere": Asked(f"traffic: {{{PAIR}}}\n", (), "vm"),
    "programs and an opener": Asked(f"flows: [{{opener: receiver, traffic: {{{PAIR}}}}}]\n"),
    "a stack of QUIC": Asked("traffic: {quic: aioquic}\nalgorithm: hystart-plus-plus\n"),
    "a size that is not given": Asked("traffic: {server: {command: [nginx]}, client: {command: [curl, '{bytes}']}}\n"),
    "files of one name": Asked(
        "traffic: {server: {command: [nginx]}, client: {command: [curl], files: [trace.csv, ./trace.csv]}}\n"
    ),
    "a file that is not there": Asked(
        "traffic: {server: {command: [nginx]}, client: {command: [curl], files: [gone.py]}}\n"
    ),
    "a buffer that takes hours": Asked("", ("path.rate=10 kbit/s", "path.buffer=4600 kB")),
    "thresholds": Asked("", ("path.queue={kind: red, least: 50 packets, most: 20 packets}",)),
    "receivers that share a host": Asked(
        "topology: {pairs: 1}\nflows: [{}, {receiver_behaviour: no-sack, start: 1 s}]\n"
    ),
    "a receiver in real time": Asked("receiver: windows-xp\n", (), "host"),
    "no burst in real time": Asked("", ("path.burst=none",), "host"),
    "a middlebox on a host": Asked("", ("path.middlebox={mtu: 1400}",), "host"),
    "a middlebox between kernels": Asked("split: true\n", ("path.middlebox={mtu: 1400}",)),
    "a middlebox in a model": Asked("", ("path.middlebox={mtu: 1400}",), "ns2"),
    "a tick in real time": Asked("", ("path.tick=100 us",), "host"),
    "too much delay taken": Asked("flows: [{rtt: 10 ms}]\n", ("path.schedule=[{at: 1 s, rtt: 1 ms}]",)),
    "a stack and its sender": Asked("receiver: {stack: lwip}\ntraffic: {source: iperf3}\n"),
    "a stack that listens": Asked("receiver: {stack: lwip}\nflows: [{opener: receiver}]\n"),
    "a stack and a behaviour": Asked("receiver: {stack: lwip, behaviour: no-sack}\n"),
    "a stack and a kernel": Asked("receiver: {stack: lwip, kernel: debian-6.1}\n"),
    "two stacks": Asked(f"{_SENDS}receiver: {{stack: lwip}}\n"),
    "a stack in the place of iperf3": Asked(f"{_SENDS}traffic: {{source: iperf3}}\n"),
    "a stack that connects": Asked(f"{_SENDS}flows: [{{opener: receiver}}]\n"),
    "a stack and a window": Asked(f"{_SENDS}flows: [{{initial_window: 20}}]\n"),
    "a stack and an algorithm": Asked("sender: {stack: lwip}\n"),
    "a kernel and a stack that sends": Asked("sender: {stack: gvisor, kernel: debian-6.1}\nalgorithm: reno\n"),
    "a stack on another engine": Asked("receiver: {stack: lwip}\n", (), "vm"),
    "a stack and groups": Asked("receiver: {stack: lwip}\ngroups: [{name: a, connections: 1, size: 1 MB}]\n"),
    "a stack that sends and groups": Asked(f"{_SENDS}groups: [{{name: a, connections: 1, size: 1 MB}}]\n"),
    "a stack that sends elsewhere": Asked(_SENDS, (), "vm"),
    "a stack that sends in two kernels": Asked(f"{_SENDS}split: true\n"),
    "a size that a program has not": Asked(
        "traffic: {server: {command: [nginx], environment: {SIZE: '{bytes}'}}, client: {command: [curl]}}\n"
    ),
    "a placeholder": Asked("traffic: {server: {command: [nginx]}, client: {command: [curl, '{bytess}']}}\n"),
    "time of the processor in real time": Asked("collect: {cpu: true}\nmachine: {time: real}\n", (), "vm"),
    "a machine that a guest lacks": Asked("machines: {receiver: {kernel: debian-6.1}}\n"),
    "too many bursts": Asked(
        "flows: [{}]\ngroups: [{name: u, role: background, connections: 1, udp: {rate: 1 Mbit/s, on_off: {on: 1 us, "
        "off: 1 us}}}]\n"
    ),
    "a parameter that a model lacks": Asked(
        "algorithm: low\nalgorithms: {low: {like: standard, parameters: {burst: 1}}}\nflows: [{size: 1 MB}]\n",
        (),
        "ns2",
    ),
    "too much jitter": Asked("perturbation: {jitter: 90000 s}\nrepetitions: 2\n"),
    "an initial receive window between two hosts": Asked(
        "topology: {pairs: 1}\nflows: [{}, {initial_receive_window: 20}]\n"
    ),
    "a sender of 2007 in the kernel": Asked("sender: of-2007\nalgorithm: reno\n"),
    "thresholds that do not fit": Asked("", ("path.queue={kind: red, burst: 1}",)),
    "a file of a topology": Asked("topology: {file: gone.py, class: Gone}\n"),
    "initial windows between two hosts": Asked(
        "topology: {pairs: 1}\nflows: [{initial_window: 10}, {initial_window: 20}]\n"
    ),
}
