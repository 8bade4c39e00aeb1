# SPDX-License-Identifier: Apache-2.0
"""The agent's event loop: instants of the timeline, intervals of collectors, and descriptors, in one thread.

A timer interrupt of the agent's own would change the measurement. After every interrupt the kernel reprograms its clock
event device, relative to a clock that a user-mode kernel reads in steps of 256 ns and with a minimum distance of 500
ns. Later packets then leave up to half a microsecond earlier or later. Repeated intervals are therefore aligned to the
kernel's periodic tick: such a timer expires in the tick's own interrupt. Each reading of the clock also takes 256 ns of
virtual time, during which packets move. In virtual time a timer's wake-up therefore reads no clock: it happens exactly
when it was due.
"""

from __future__ import annotations

import heapq
import itertools
import select
from collections.abc import Callable

from collectors.accounting import traffic_marks
from howdah.linux.clock import TICK_NS, Alarm, now_ns
from howdah.linux.namespace import Namespace

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_WRITABLE = select.POLLOUT | select.POLLHUP | select.POLLERR

Action = Callable[[int], None]  # receives the time of the wake-up


def _among(ready: dict[int, int], table: dict[int, tuple[int, Action]], mask: int) -> list[tuple[int, int, Action]]:
    """Return number, descriptor and action of the few ready registrations (of thousands), in order of registration."""
    found = [(*table[each], each) for each, events in ready.items() if events & mask and each in table]
    return sorted(((number, each, action) for number, action, each in found), key=lambda item: item[0])


def align_to_tick(time_ns: int) -> int:
    """Return the first tick at or after an instant."""
    return -(-time_ns // TICK_NS) * TICK_NS


class Loop:
    """An event loop that runs actions in order of time; at equal times single actions before repeated ones, each in
    order of registration."""

    def __init__(self, virtual_time: bool) -> None:
        self._virtual_time = virtual_time
        self._alarm = Alarm()
        self._single: list[tuple[int, int, Action]] = []
        self._repeated: list[tuple[int, int, int, Action]] = []  # due, number, interval, action
        self._poll = select.poll()  # select() takes only descriptors below 1024
        self._poll.register(self._alarm.descriptor, select.POLLIN)
        self._readable: dict[int, tuple[int, Action]] = {}  # by descriptor: number of the registration, action
        self._writable: dict[int, tuple[int, Action]] = {}
        self._number = itertools.count()

    def at(self, time_ns: int, action: Action) -> None:
        """Run ``action`` once, at exactly this instant (or at once when it has passed)."""
        heapq.heappush(self._single, (time_ns, next(self._number), action))

    def every(self, interval_ns: int, first_ns: int, action: Action) -> int:
        """Run ``action`` at ``first_ns + k * interval_ns``, both rounded up to ticks; missed runs are skipped.

        An interval shorter than a tick is kept, at the cost that the module's docstring names. Return a number for
        ``cancel``.
        """
        if interval_ns >= TICK_NS:
            interval_ns, first_ns = align_to_tick(interval_ns), align_to_tick(first_ns)
        number = next(self._number)
        heapq.heappush(self._repeated, (first_ns, number, interval_ns, action))
        return number

    def cancel(self, number: int) -> None:
        self._repeated = [item for item in self._repeated if item[1] != number]
        heapq.heapify(self._repeated)

    def when_readable(self, descriptor: int, action: Action | None) -> None:
        """Run ``action`` whenever the descriptor is readable; None stops watching."""
        self._watch(self._readable, descriptor, action)

    def when_writable(self, descriptor: int, action: Action | None) -> None:
        self._watch(self._writable, descriptor, action)

    def _watch(self, table: dict[int, tuple[int, Action]], descriptor: int, action: Action | None) -> None:
        known = descriptor in self._readable or descriptor in self._writable
        if action is None:
            table.pop(descriptor, None)
        else:
            number = table[descriptor][0] if descriptor in table else next(self._number)
            table[descriptor] = number, action
        mask = select.POLLIN if descriptor in self._readable else 0
        mask |= select.POLLOUT if descriptor in self._writable else 0
        if mask:
            self._poll.register(descriptor, mask)
        elif known:
            self._poll.unregister(descriptor)

    def run_until(self, time_ns: int, finished: Callable[[], bool] = lambda: False) -> int:
        """Serve events until ``time_ns``, or until ``finished`` returns True after one of them; return the time."""
        reached: list[int] = []
        end = reached.append
        self.at(time_ns, end)
        now: int | None = None
        while not reached and not finished():
            now = self._serve()
        self._single = [item for item in self._single if item[2] is not end]
        heapq.heapify(self._single)
        return now_ns() if now is None else now

    def _serve(self) -> int:
        """Wait for the next event, run every action that is due, and return the time."""
        due = min(queue[0][0] for queue in (self._single, self._repeated) if queue)
        self._alarm.set(due)
        ready = dict(self._poll.poll())
        only_alarm = list(ready) == [self._alarm.descriptor]
        readable, writable = _among(ready, self._readable, _READABLE), _among(ready, self._writable, _WRITABLE)
        now = due if only_alarm and self._virtual_time else now_ns()
        while self._single and self._single[0][0] <= now:
            heapq.heappop(self._single)[2](now)
        # An action may close a descriptor, and another action may open a new one with the same number.
        for table, found in ((self._readable, readable), (self._writable, writable)):
            for number, descriptor, action in found:
                if table.get(descriptor) == (number, action):
                    action(now)
        while self._repeated and self._repeated[0][0] <= now:
            due, number, interval, action = self._repeated[0]
            missed = (now - due) // interval
            heapq.heapreplace(self._repeated, (due + (missed + 1) * interval, number, interval, action))
            action(now)
        return now


def wait_for_silence(namespaces: dict[str, Namespace], loop: Loop, quiet_ns: int, deadline_ns: int) -> bool:
    """Return True once no namespace has sent or queued a packet for ``quiet_ns``, or False at the deadline."""
    marks = traffic_marks(namespaces)
    now = now_ns()
    while now < deadline_ns:
        now = loop.run_until(min(now + quiet_ns, deadline_ns))
        previous, marks = marks, traffic_marks(namespaces)
        if marks == previous and not marks.queued:
            return True
    return False
