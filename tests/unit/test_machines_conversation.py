# SPDX-License-Identifier: Apache-2.0
"""The engine and the agents talk: words in order, time limits, and agents that fail, fall silent or die."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.session import AgentSession, SessionQuestion, SessionWord
from howdah.engine.machines.clock import LocalClock
from howdah.engine.machines.conversation import AgentConversation, await_messages
from howdah.errors import RunFailedError

_ROOT = Path(__file__).resolve().parents[2]
_PROLOGUE = """
import sys, time
from howdah.agent.session import AgentSession, SessionWord
from howdah.record.agent import AgentFailure
session = AgentSession.of_standard_streams()
"""
Start = Callable[..., AgentConversation]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(body: str, name: str = "m") -> AgentConversation:
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                [sys.executable, "-c", _PROLOGUE + textwrap.dedent(body)],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=_ROOT,
            )
            conversation = AgentConversation(name, process, tmp_path / f"{name}.log")
            stack.callback(conversation.end)
            return conversation

        yield begin


def nothing(_machine: str, _message: SessionWord) -> None:
    pass


def test_a_whole_conversation(start: Start) -> None:
    conversations = [
        start(
            """
            session.say(SessionWord("hello"))
            session.say(SessionWord("ready"))
            epoch = session.wait("start").epoch_monotonic_ns
            session.say(SessionWord("progress", phase="flows", time_us=epoch, of_us=2))
            session.say(SessionWord("done", ok=True, error=None))
            session.wait("end")
            """,
            name,
        )
        for name in ("a", "b")
    ]
    await_messages(conversations, "hello", 30, nothing)
    assert await_messages(conversations, "ready", 30, nothing).keys() == {"a", "b"}
    for conversation in conversations:
        found = conversation.offset(10, LocalClock())
        assert abs(found.offset_ns) <= found.uncertainty_ns, "it is the same clock"
        conversation.ask(SessionQuestion("start", epoch_monotonic_ns=7))
    told: list[tuple[str, Any]] = []
    heard = await_messages(conversations, "done", 30, lambda name, message: told.append((name, message.time_us)))
    assert sorted(told) == [("a", 7), ("b", 7)]
    assert all(message.ok for message in heard.values())
    for conversation in conversations:
        conversation.offset(3, LocalClock())
        conversation.ask(SessionQuestion("end"))
        conversation.end()


def test_an_agent_that_fails_is_named_with_what_it_did(start: Start) -> None:
    good = start("session.say(SessionWord('hello')); session.wait('end')", "good")
    bad = start("session.say(SessionWord('done', error=AgentFailure('operation 3', 'no')))", "bad")
    with pytest.raises(RunFailedError, match='bad: the agent stopped during "operation 3": no'):
        await_messages([good, bad], "ready", 30, nothing)


def test_an_agent_that_dies_is_told_with_its_last_lines(start: Start) -> None:
    with pytest.raises(RunFailedError, match="ended with status 3 and without its final message") as caught:
        await_messages([start("sys.stderr.write('out of luck\\n'); sys.exit(3)")], "ready", 30, nothing)
    assert "out of luck" in str(caught.value)


def test_an_agent_that_stays_silent_is_given_up(start: Start) -> None:
    with pytest.raises(RunFailedError, match="not ready within 1 s: m"):
        await_messages([start("session.wait('end')")], "ready", 1, nothing)


def test_what_is_no_word_of_an_agent_is_shown(start: Start) -> None:
    import_it = "import os; os.write(session._says, b'bash: no such thing\\n'); session.wait('end')"
    with pytest.raises(RunFailedError, match="said 'bash: no such thing'"):
        await_messages([start(import_it)], "ready", 30, nothing)


def test_print_does_not_reach_the_engine(start: Start) -> None:
    conversation = start("print('*** Mininet says'); session.say(SessionWord('ready')); session.wait('end')")
    assert await_messages([conversation], "ready", 30, nothing)


def _session() -> tuple[AgentSession, int, int]:
    asks, ask = os.pipe()
    heard, says = os.pipe()
    return AgentSession(asks, says), ask, heard


def test_the_clock_is_told_while_the_loop_runs() -> None:
    session, ask, heard = _session()
    loop = Loop(virtual_time=False)
    session.watch(loop)
    os.write(ask, b'{"ask":"clock","number":4}\n{"ask":"clo')
    answers: list[bytes] = []

    def listen() -> None:
        answers.append(os.read(heard, 1000))
        os.write(ask, b'ck","number":5}\n')
        answers.append(os.read(heard, 1000))

    thread = threading.Thread(target=listen)
    thread.start()
    loop.run_until(time.monotonic_ns() + 10**10, finished=lambda: len(answers) == 2)
    thread.join()
    assert [b'"number":4' in answers[0], b'"number":5' in answers[1]] == [True, True]


def test_an_engine_that_is_gone_ends_the_run() -> None:
    session, ask, _heard = _session()
    loop = Loop(virtual_time=False)
    session.watch(loop)
    os.close(ask)
    with pytest.raises(AgentError, match="the engine is gone"):
        loop.run_until(2**62)


def test_the_engine_can_stop_it() -> None:
    session, ask, _heard = _session()
    os.write(ask, b'{"ask":"stop","why":"another machine failed"}\n')
    with pytest.raises(AgentError, match="stopped by the engine: another machine failed"):
        session.wait("start")
