"""The base class of queue sources: when messages are acknowledged, given back, and forgotten, and what ends a task."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.api import Message, QueueLimits, SourceRecord, queue_source
from sluiceway.errors import ConnectError
from sluiceway.runtime.memory import MemorySourceContext
from support.eventually import LIMIT, NEVER, eventually
from support.queue_server import GenerousSource, QueueServer, Source, record


@contextmanager
def running(task: Source) -> Iterator[Source]:
    task.initialize(MemorySourceContext())
    task.start({})
    try:
        yield task
    finally:
        task.stop()
    assert not task.server.connected


def polled(task: Source, count: int) -> list[SourceRecord]:
    records: list[SourceRecord] = []

    def enough() -> bool:
        records.extend(task.poll() or ())
        return len(records) >= count

    eventually(enough)
    return records


def confirm(task: Source, *records: SourceRecord) -> None:
    for each in records:
        task.commit_record(each, 0, 0)


def test_messages_are_acknowledged_in_the_order_of_their_receipt_once_kafka_has_all_of_their_records() -> None:
    server = QueueServer("a2", "b1", "c0", "d1", "e0")
    with running(Source(server)) as task:
        first, second, third, fourth = polled(task, 4)
        confirm(task, fourth, third, second)
        assert server.acknowledged == [], "what came first is not in Kafka"
        confirm(task, first)
        eventually(lambda: len(server.acknowledged) == 5)
    assert server.acknowledged == ["a2", "b1", "c0", "d1", "e0"]


def test_messages_whose_order_does_not_matter_are_acknowledged_as_soon_as_kafka_has_all_of_their_records() -> None:
    server, task = QueueServer("a2", "b2"), Source(QueueServer())
    task.server, task.acknowledges_in_order = server, False
    with running(task):
        first, second, third, fourth = polled(task, 4)
        confirm(task, first, third)
        eventually(lambda: task.metrics()["messages-held"] == 2)
        confirm(task, fourth)
        eventually(lambda: server.acknowledged == ["b2"])
        confirm(task, second)
        eventually(lambda: server.acknowledged == ["b2", "a2"])


def test_messages_without_records_are_acknowledged_at_once() -> None:
    server = QueueServer("a0", "b0")
    with running(Source(server)) as task:

        def acknowledged() -> bool:
            assert not task.poll()
            return server.acknowledged == ["a0", "b0"]

        eventually(acknowledged)


def test_a_task_holds_no_more_messages_than_allowed() -> None:
    server = QueueServer(*(f"{number}-1" for number in range(50)))
    with running(Source(server, QueueLimits(held=7, messages=3, wait=0.01))) as task:
        left = 50
        while left:
            records = task.poll() or ()
            confirm(task, *records)
            left -= len(records)
        eventually(lambda: len(server.acknowledged) == 50)
    assert 4 <= server.most_handed_out <= 7


class PatientSource(GenerousSource):
    """Waits for messages, and while it may have no more, until it is woken."""

    def __init__(self, server: QueueServer, limits: QueueLimits) -> None:
        super().__init__(server, limits)
        self.woken = threading.Event()

    def receive(self, most: int, seconds: float) -> Sequence[Message[int]]:
        found = super().receive(most, 0.0)
        if not found:
            self.idle(seconds)
        return found

    def idle(self, seconds: float) -> None:
        assert self.woken.wait(LIMIT), "nothing has woken the task"
        self.woken.clear()

    def wake(self) -> None:
        self.woken.set()


@pytest.mark.parametrize("held", [2, 10], ids=["which has as many as it may", "which waits for more"])
def test_a_task_is_woken_to_acknowledge_to_pause_and_to_stop(held: int) -> None:
    server = QueueServer("a1", "b1")
    with running(PatientSource(server, QueueLimits(held=held))) as task:
        first, second = polled(task, 2)
        confirm(task, first)
        eventually(lambda: server.acknowledged == ["a1"])
        confirm(task, second)
        eventually(lambda: server.acknowledged == ["a1", "b1"])
        server.waiting.append("c1")
        task.paused()
        task.resumed()
        assert [each.value for each in polled(task, 1)] == ["c1.0"]
    assert server.waiting == deque(["c1"]), "what Kafka does not have is given back"


def test_what_a_lost_connection_received_is_forgotten_and_read_again() -> None:
    server = QueueServer("a1", "b1", "c1")
    with running(Source(server)) as task:
        first = polled(task, 3)
        server.broken = True
        again = polled(task, 3)
        confirm(task, *first)  # of tags that the new connection does not know
        eventually(lambda: task.metrics()["messages-held"] == 3)
        assert server.acknowledged == []
        confirm(task, *again)
        eventually(lambda: len(server.acknowledged) == 3)
        assert task.metrics()["connections-lost"] == 1


def test_handles_that_outlive_connections_are_acknowledged_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    server = QueueServer("a1", "b1")
    monkeypatch.setattr(Source, "handles_outlive_connections", True)
    monkeypatch.setattr(server, "disconnect", lambda: setattr(server, "connected", False))
    monkeypatch.setattr(server, "connect", lambda: setattr(server, "connected", True))
    with running(Source(server)) as task:
        records = polled(task, 2)
        server.broken = True
        eventually(lambda: task.metrics()["connections-lost"] == 1)
        confirm(task, *records)
        eventually(lambda: server.acknowledged == ["a1", "b1"])


def test_a_paused_task_gives_back_what_it_has_not_sent() -> None:
    server = QueueServer("a1", "b1", "c1")
    with running(GenerousSource(server, QueueLimits(messages=1, wait=0.01))) as task:
        (first,) = polled(task, 1)
        eventually(lambda: task.metrics()["messages-held"] == 3)
        task.paused()
        eventually(lambda: server.returned == ["c1", "b1"])
        confirm(task, first)
        eventually(lambda: server.acknowledged == ["a1"])
        server.waiting.append("d1")
        assert not task.poll()
        task.resumed()
        assert [each.value for each in polled(task, 3)] == ["b1.0", "c1.0", "d1.0"]


def test_a_task_that_resumes_while_it_gives_back_does_not_send_what_others_get(monkeypatch: pytest.MonkeyPatch) -> None:
    server = QueueServer("a1", "b1")
    with running(GenerousSource(server)) as task:
        eventually(lambda: task.metrics()["messages-held"] == 2)
        give_back, sent = task.give_back, list[SourceRecord]()

        def slowly(handles: Sequence[int]) -> None:
            task.resumed()
            sent.extend(task.poll() or ())
            give_back(handles)

        monkeypatch.setattr(task, "give_back", slowly)
        task.paused()
        eventually(lambda: len(server.returned) == 2)
        assert sent == []
        assert [each.value for each in polled(task, 2)] == ["a1.0", "b1.0"]


def test_a_paused_task_whose_system_has_no_way_to_give_back_keeps_what_it_has_received() -> None:
    server = QueueServer("a1", "b1")
    with running(Source(server)) as task:
        eventually(lambda: task.metrics()["messages-held"] == 2)
        task.paused()
        task.resumed()
        assert [each.value for each in polled(task, 2)] == ["a1.0", "b1.0"]
        assert server.connection == 1


def test_a_task_that_stops_acknowledges_what_kafka_has_and_gives_back_the_rest() -> None:
    server = QueueServer("a1", "b1", "c1")
    with running(GenerousSource(server, QueueLimits(messages=2, wait=0.01))) as task:
        first, _second = polled(task, 2)
        eventually(lambda: task.metrics()["messages-held"] == 3)
        confirm(task, first)
        task.stop()
        assert (server.acknowledged, sorted(server.returned)) == (["a1"], ["b1", "c1"])
        task.stop()
        assert not server.connected


def test_what_could_not_be_given_back_is_still_held(monkeypatch: pytest.MonkeyPatch) -> None:
    server = QueueServer("a1", "b1")
    with running(GenerousSource(server)) as task:
        eventually(lambda: task.metrics()["messages-held"] == 2)
        task.handles_outlive_connections = True
        monkeypatch.setattr(server, "disconnect", lambda: setattr(server, "connected", False))
        server.broken = True
        task.paused()
        eventually(lambda: len(server.returned) == 2 or task.metrics()["connections-lost"])
        task.resumed()
        assert len(polled(task, 2)) == 2


def test_acknowledgements_while_the_system_is_away_do_not_hurry_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_source, "_FIRST_PAUSE", NEVER)
    server = QueueServer(*(f"{number}-1" for number in range(20)))
    with running(Source(server, QueueLimits(wait=0.01, longest_pause=NEVER))) as task:
        records = polled(task, 20)
        server.away = True
        eventually(lambda: task.metrics()["connections-lost"] == 1)
        for each in records:
            confirm(task, each)
            threading.Event().wait(0.005)  # in which the thread would try again
        assert task.metrics()["connections-lost"] == 1


def test_a_record_twice_in_a_message_is_acknowledged_once_kafka_has_it_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    server, same = QueueServer("a1"), record("a1", 0)
    receive = server.receive
    monkeypatch.setattr(Source, "receive", lambda _self, most, _seconds: [Message(tag, [same, same]) for tag, _ in receive(most)])
    with running(Source(server)) as task:
        polled(task, 2)
        confirm(task, same)
        assert task.metrics()["messages-held"] == 1
        confirm(task, same)
        eventually(lambda: server.acknowledged == ["a1"])


def test_deadlines_of_all_that_is_held_are_extended() -> None:
    server = QueueServer("a1", "b1")
    with running(Source(server, QueueLimits(messages=1, wait=0.01, extend=0.01))) as task:
        polled(task, 1)
        eventually(lambda: {"a1", "b1"} <= set(server.extended))


def test_a_system_that_is_away_is_waited_for_and_the_reason_shown() -> None:
    server = QueueServer("a1")
    server.away = True
    with running(Source(server)) as task:
        context: MemorySourceContext = task.context  # type: ignore[assignment]
        eventually(lambda: "gone" in context.waits_for)
        assert not task.poll()
        server.away = False
        polled(task, 1)
        eventually(lambda: context.waits_for[-1] is None)


def test_a_system_that_is_away_for_too_long_fails_the_task() -> None:
    server = QueueServer()
    server.away = True
    with (
        running(Source(server, QueueLimits(longest_pause=0.01, unreachable=0.05))) as task,
        pytest.raises(ConnectError, match="gone"),
    ):
        eventually(lambda: task.poll())


@pytest.mark.parametrize("error", [ConnectError("wrong password"), PermissionError("no right"), FileNotFoundError("no file")])
def test_what_waiting_does_not_mend_fails_the_task(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Source) -> None:
        raise error

    monkeypatch.setattr(Source, "connect", refuse)
    with running(Source(QueueServer())) as task, pytest.raises(type(error), match=str(error)):
        eventually(lambda: task.poll())


def test_a_task_that_was_not_started_says_so() -> None:
    task = Source(QueueServer())
    task.stop()
    assert task.metrics() == {}
    with pytest.raises(ConnectError, match="has not been started"):
        task.poll()


ACTIONS = st.lists(st.sampled_from(["poll", "poll", "confirm", "confirm", "lose", "pause", "resume", "add"]), max_size=40)


@settings(deadline=None, max_examples=25)
@given(
    actions=ACTIONS,
    generous=st.booleans(),
    ordered=st.booleans(),
    seed=st.integers(0, 2**32),
    limits=st.sampled_from([(3, 1), (5, 3), (100, 10)]),
)
def test_whatever_happens_nothing_is_acknowledged_too_early_or_left_behind(
    actions: list[str], generous: bool, ordered: bool, seed: int, limits: tuple[int, int]
) -> None:
    choose = random.Random(seed)  # noqa: S311
    server = QueueServer()
    known: list[str] = []
    unconfirmed: list[SourceRecord] = []
    in_kafka: set[str] = set()
    acknowledge: Callable[[Sequence[int]], None] = server.acknowledge
    early: list[str] = []

    def checked(tags: Sequence[int]) -> None:
        for tag in tags:
            message = server.handed_out[tag][1]
            wanted = {f"{message}.{part}" for part in range(int(message[-1]))}
            early.extend([message] if not wanted <= in_kafka else [])
        acknowledge(tags)

    server.acknowledge = checked  # type: ignore[method-assign]

    def put_some() -> None:
        for _ in range(choose.randrange(6)):
            known.append(f"{len(known)}-{choose.choice('01123')}")
            with server.lock:
                server.waiting.append(known[-1])

    def confirm_some(task: Source, share: float) -> None:
        for each in [each for each in unconfirmed if choose.random() < share]:
            unconfirmed.remove(each)
            in_kafka.add(each.value)
            confirm(task, each)

    put_some()
    made = (GenerousSource if generous else Source)(server, QueueLimits(*limits, wait=0.001, longest_pause=0.002))
    made.acknowledges_in_order = ordered
    with running(made) as task:
        for action in actions:
            if action == "poll":
                unconfirmed += task.poll() or ()
            elif action == "confirm":
                confirm_some(task, 0.6)
            elif action == "lose":
                server.broken = True
            elif action == "add":
                put_some()
            else:
                (task.paused if action == "pause" else task.resumed)()
        task.resumed()

        def settled() -> bool:
            unconfirmed.extend(task.poll() or ())
            confirm_some(task, 1)
            return set(server.acknowledged) == set(known)

        eventually(settled)
    assert early == []
    assert not server.handed_out
    assert not server.waiting
    assert task._owners == {}
