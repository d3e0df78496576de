"""Queue connectors whose server is away for a minute, and that are paused for longer than the server waits for them.

``AWAY`` has the seconds for which the server is away. One task runs in the test's process, so that its status can be read.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from sluiceway.config.worker import WorkerConfig
from sluiceway.metrics.registry import registry
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.factory import open_source_offsets
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.eventually import eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow, Row
from support.kafka import Kafka
from support.queues.gate import GATE, Gate, shut
from support.queues.publishers import KafkaFeeder, Publisher
from support.queues.sinks import SINKS, Sink
from support.queues.sources import PREFETCH, SOURCES, Source, numbers_in
from support.queues.systems import System
from support.source_process import task_config

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1800)]

AWAY = float(os.environ.get("AWAY", "60"))
MORE = 50  # numbers that are sent at least when the server is back
SENT = 4 * PREFETCH  # numbers around a pause
TAKEN = 20  # messages that another client takes during a pause
KAFKA_DEADLINE = 6.0  # seconds, the shortest that the broker takes
SLICE = ("NatsConsumerSource", "RedisSink")  # for some seconds only, in `make test`


def _kinds(kinds: Mapping[str, object]) -> list[object]:
    long = [pytest.param(kind, AWAY, id=kind) for kind in kinds]
    return [*long, *(pytest.param(kind, 3.0, id=f"{kind} for 3 s", marks=pytest.mark.slice) for kind in SLICE if kind in kinds)]


@contextmanager
def source_task(
    source: Source, bootstrap: str, unique: Callable[[str], str], more: Mapping[str, str] | None = None
) -> Iterator[RunningTask]:
    """Run the source's only task with the offsets in Kafka, exactly once if it can."""
    config = {"name": source.topic, "connector.class": source.connector.__name__.removesuffix("Connector"), **source.config}
    worker = {**exactly_once_worker(bootstrap, unique), "offset.flush.interval.ms": "200"}
    if not source.once:
        worker["exactly.once.source.support"] = "disabled"
    given = {**task_config(source.connector, config), **(more or {})}
    store = open_source_offsets(WorkerConfig.of(worker), given)
    store.start()
    with ExitStack() as stack:
        stack.callback(store.stop)
        yield stack.enter_context(RunningTask(given, worker, store=store, sink=False))


@contextmanager
def sink_task(sink: Sink, bootstrap: str, more: Mapping[str, str] | None = None) -> Iterator[RunningTask]:
    """Run a task of the sink."""
    given = {
        "name": sink.topic,
        "connector.class": type(sink).__name__,
        "topics": sink.topic,
        "key.converter": "StringConverter",
        "value.converter": sink.converter,
        **sink.config,
        **(more or {}),
    }
    with RunningTask(given, {"bootstrap.servers": bootstrap, "offset.flush.interval.ms": "500"}) as task:
        yield task


def waits(task: RunningTask, system: System) -> bool:
    """Return whether the task's status says that it waits, and for what."""
    assert task.result is None, task.result
    text = task.reports.trace or ""
    return text.startswith("Waiting since") and system.says in text


def be_away(task: RunningTask, system: System, publisher: Publisher, seconds: float) -> None:
    """Let the server be away, and check the status of the task meanwhile."""
    if system.forgets:
        publisher.rest()
    system.away()
    ends = time.monotonic() + seconds
    eventually(lambda: waits(task, system), what="the reason in the status")
    if system.is_slow:
        publisher.rest()
    threading.Event().wait(ends - time.monotonic())  # the outage itself
    assert waits(task, system)
    system.back()


def written(kafka: Kafka, sink: Sink) -> int:
    """Return the number of records of the topic that the sink's task has written and committed, or -1 if Kafka does not say."""
    reader = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"connect-{sink.topic}"})
    try:
        [found] = reader.committed([TopicPartition(sink.topic, 0)], timeout=10)
        return max(0, found.offset)
    except KafkaException:  # the group's coordinator is being loaded
        return -1
    finally:
        reader.close()


def held(connector: str) -> float:
    """Return the number of messages that a queue source's task holds."""
    beans = [each for each in registry.beans() if each.type == "task-plugin-metrics" and each.tags["connector"] == connector]
    return sum(float(each.values["messages-held"]) for each in beans)


def judge(made: Row, found: Mapping[int, int], known: set[int], what: str, most: int) -> None:
    """Fill in a row: all that is known must be found, and not more than so many of it twice."""
    total = sum(found.values())
    made.lost, made.duplicated = len(known - set(found)), total - len(found)
    made.seen = f"{total} records of {len(known)} {what}"
    assert made.lost == 0, sorted(known - set(found))[:10]
    assert made.duplicated <= most


@pytest.mark.parametrize(("kind", "seconds"), _kinds(SOURCES))
def test_a_source_waits_for_a_server_that_is_away(
    kafka_bootstrap: str, unique: Callable[[str], str], row: NewRow, kind: str, seconds: float
) -> None:
    kafka, most = Kafka(kafka_bootstrap), 0 if SOURCES[kind].once else PREFETCH
    made = row(f"2: {kind}, its server restarted and away for {seconds:g} s", f"0 lost, at most {most} duplicated")
    with (
        closing(SOURCES[kind](kafka.create(unique("away"), retention_ms="-1"))) as source,
        source_task(source, kafka_bootstrap, unique) as task,
    ):

        def found() -> Counter[int]:
            return numbers_in(kafka_bootstrap, source.topic, source.number_of)

        eventually(source.is_ready, what="the task's session")
        with source.publisher() as publisher:
            eventually(lambda: kafka.count(source.topic) > 0, what="the first record")
            be_away(task, source, publisher, seconds)
            began, before, last = time.monotonic(), kafka.count(source.topic), publisher.number
            if source.forgets:
                eventually(lambda: task.reports.trace is None, what="the end of the wait")
            publisher.resume()
            eventually(lambda: max(publisher.known) > last + MORE, what="more that the server has")
            eventually(lambda: kafka.count(source.topic) > before, what="new records")
            made.recovered(time.monotonic() - began)
        eventually(lambda: publisher.known <= set(found()), what="all that the server had")
        eventually(lambda: task.reports.trace is None, what="a status without a wait")
        assert set(task.reports.states) == {State.RUNNING}
        task.stop()
        judge(made, found(), publisher.known, "confirmed messages", most)


@pytest.mark.parametrize(("kind", "seconds"), _kinds(SINKS))
def test_a_sink_waits_for_a_server_that_is_away(
    kafka_bootstrap: str, unique: Callable[[str], str], row: NewRow, kind: str, seconds: float
) -> None:
    kafka, most = Kafka(kafka_bootstrap), SINKS[kind].most_doubled
    made = row(f"2: {kind}, its server restarted and away for {seconds:g} s", f"0 lost, at most {most} duplicated")
    with closing(SINKS[kind](kafka.create(unique("away"), retention_ms="-1"))) as sink, sink_task(sink, kafka_bootstrap) as task:
        with KafkaFeeder(kafka_bootstrap, sink.topic, sink.key_of, sink.value_of) as publisher:
            eventually(lambda: written(kafka, sink) > 0, what="the first record that is written")
            be_away(task, sink, publisher, seconds)
            began, before, last = time.monotonic(), written(kafka, sink), publisher.number
            publisher.resume()
            eventually(lambda: written(kafka, sink) > before, what="new records that are written")
            made.recovered(time.monotonic() - began)
            eventually(lambda: max(publisher.known) > last + MORE, what="more that Kafka has")
        eventually(lambda: written(kafka, sink) == len(publisher.known), what="all that Kafka has")
        eventually(lambda: task.reports.trace is None, what="a status without a wait")
        assert set(task.reports.states) == {State.RUNNING}
        task.stop()
        judge(made, sink.found(), publisher.known, "records", most)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_is_paused_for_longer_than_the_server_waits(
    kafka_bootstrap: str, unique: Callable[[str], str], row: NewRow, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    kafka, most, pause = Kafka(kafka_bootstrap), 0 if SOURCES[kind].once else PREFETCH, 2.5 * SOURCES[kind].deadline
    made = row(f"2: {kind}, paused for {pause:g} s while it holds messages", f"0 lost, at most {most} duplicated")
    shut()
    with closing(SOURCES[kind](kafka.create(unique("paused"), retention_ms="-1"), hasty=True)) as source:
        source.shorten(monkeypatch)
        with source_task(source, kafka_bootstrap, unique, GATE) as task:

            def found() -> Counter[int]:
                return numbers_in(kafka_bootstrap, source.topic, source.number_of)

            eventually(source.is_ready, what="the task's session")
            source.send(range(1))
            eventually(Gate.reached.is_set, what="the first record")
            source.send(range(1, SENT))
            if not source.once:
                eventually(lambda: held(source.topic) >= PREFETCH, what="all messages that the task may hold")
            task.commands.give(TaskCommand.PAUSE)
            Gate.opened.set()
            task.wait_for(State.PAUSED)
            began, before, taken = time.monotonic(), found(), set[int]()
            if source.gives_back and not source.once:
                eventually(lambda: taken.update(source.taken(TAKEN)) or len(taken) >= TAKEN, what="messages for another client")
                assert taken.isdisjoint(before)
            threading.Event().wait(began + pause - time.monotonic())  # longer than the server waits for the task
            source.before_resume()
            assert found() == before
            task.commands.give(TaskCommand.RUN)
            began, expected = time.monotonic(), set(range(SENT)) - taken
            eventually(lambda: expected <= set(found()), what="all that the server had")
            made.recovered(time.monotonic() - began)
            eventually(lambda: task.reports.trace is None, what="a status without a wait")
            assert list(dict.fromkeys(task.reports.states)) == [State.RUNNING, State.PAUSED]
            task.stop()
            assert taken.isdisjoint(found()), "another client has acknowledged them"
            judge(made, found(), expected, f"messages, {len(taken)} others taken by another client meanwhile", most)


@pytest.mark.parametrize("kind", SINKS)
def test_a_sink_is_paused_for_longer_than_kafka_and_the_server_wait(
    kafka_bootstrap: str, unique: Callable[[str], str], row: NewRow, kind: str
) -> None:
    kafka, most, pause = Kafka(kafka_bootstrap), SINKS[kind].most_doubled, 2.5 * KAFKA_DEADLINE
    made = row(f"2: {kind}, paused for {pause:g} s amid records", f"0 lost, at most {most} duplicated")
    deadline = str(int(KAFKA_DEADLINE * 1000))
    deadlines = {"consumer.override.session.timeout.ms": deadline, "consumer.override.max.poll.interval.ms": deadline}
    made_sink = SINKS[kind](kafka.create(unique("paused"), retention_ms="-1"), hasty=True)
    with closing(made_sink) as sink, sink_task(sink, kafka_bootstrap, deadlines) as task:
        with KafkaFeeder(kafka_bootstrap, sink.topic, sink.key_of, sink.value_of) as publisher:
            eventually(lambda: written(kafka, sink) > 0, what="the first record that is written")
            task.commands.give(TaskCommand.PAUSE)
            task.wait_for(State.PAUSED)
            before, last = written(kafka, sink), publisher.number
            eventually(lambda: max(publisher.known) > last + MORE, what="records of which the paused task knows nothing")
            if sink.is_slow:
                publisher.rest()
            threading.Event().wait(pause)  # longer than Kafka and the server wait for the task
            assert written(kafka, sink) == before
            task.commands.give(TaskCommand.RUN)
            publisher.resume()
            began = time.monotonic()
            eventually(lambda: written(kafka, sink) > before, what="new records that are written")
            made.recovered(time.monotonic() - began)
        eventually(lambda: written(kafka, sink) == len(publisher.known), what="all that Kafka has")
        eventually(lambda: task.reports.trace is None, what="a status without a wait")
        assert list(dict.fromkeys(task.reports.states)) == [State.RUNNING, State.PAUSED]
        task.stop()
        judge(made, sink.found(), publisher.known, "records", most)
