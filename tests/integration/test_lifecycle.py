"""Connector lifecycle on real topics: restarts, task changes, two drivers of one connector, compacted topics."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import FencedError
from sluiceway.kafka.admin import topic_settings
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord
from sluiceway.kafka.topic_writer import TopicWriter
from sluiceway.runtime.task import TaskResult
from sluiceway.storage.codec import encode_commit, encode_connector, encode_task
from sluiceway.storage.factory import open_stores
from sluiceway.storage.heartbeats import Heartbeat, decode_heartbeat, heartbeat_key, is_heartbeat
from sluiceway.storage.model import State, TaskId
from sluiceway.worker.connector_runner import RunnerOutcome
from sluiceway.worker.executor import TaskAssignment, Work
from sluiceway.worker.kafka_channel import KafkaChannels, KafkaControlChannel
from sluiceway.worker.task_launcher import ThreadLauncher
from support import peer
from support.driver import worker_of, worker_properties
from support.driver_bench import Bench, open_bench
from support.eventually import LIMIT, eventually
from support.runner_bench import WATCHED, Script

pytestmark = pytest.mark.kafka


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("lifecycle")


@pytest.fixture
def bench(tmp_path: Path, kafka_bootstrap: str, group: str) -> Iterator[Bench]:
    with open_bench(kafka_bootstrap, group, tmp_path) as made:
        yield made


def watched(name: str, tasks_max: int = 3) -> dict[str, str]:
    return {"name": name, "connector.class": WATCHED, "tasks.max": str(tasks_max)}


def begin(bench: Bench, name: str, *tasks: str) -> Script:
    """Create a connector whose tasks have these values of ``n``."""
    Script.current = script = Script(tasks=[{"n": n} for n in tasks])
    bench.herder.create(name, watched(name))
    return script


def started(script: Script) -> dict[str, int]:
    return {call.removeprefix("task "): count for call, count in script.calls.items() if call.startswith("task ")}


def running(bench: Bench, name: str, tasks: int) -> None:
    eventually(lambda: bench.states(name) == ("RUNNING", ["RUNNING"] * tasks), what=f"{tasks} tasks RUNNING")


def records(worker: WorkerConfig, topic: str, partitions: int = 1) -> list[LogRecord]:
    """Return a topic's records, in order within each partition."""
    found: list[LogRecord] = []
    log = KafkaBasedLog(worker, topic, partitions, "test", found.append)
    log.start()
    log.stop()
    return found


def channel_of(bench: Bench, name: str, worker_id: str) -> KafkaControlChannel:
    return KafkaChannels(bench.worker, worker_id, bench.stores, name).channel(name)


# Restarts and changes of tasks.


def test_a_restart_request_restarts_only_its_tasks(bench: Bench, unique: Callable[[str], str]) -> None:
    name = unique("source")
    script = begin(bench, name, "a", "b")
    bench.driver(name, "one:1")
    running(bench, name, 2)
    bench.herder.restart_task(TaskId(name, 1))
    eventually(lambda: started(script) == {"a": 1, "b": 2}, what="task b again")
    bench.herder.restart(name)
    eventually(lambda: script.calls["start"] == 2, what="the connector again")
    bench.herder.restart(name, include_tasks=True)
    eventually(lambda: (script.calls["start"], started(script)) == (3, {"a": 2, "b": 3}), what="all again")
    running(bench, name, 2)


def test_a_driver_ignores_restart_requests_from_before_its_start(bench: Bench, unique: Callable[[str], str]) -> None:
    name = unique("source")
    script = begin(bench, name, "a")
    driver, outcome = bench.driver(name, "one:1")
    running(bench, name, 1)
    bench.herder.restart_task(TaskId(name, 0))
    eventually(lambda: started(script) == {"a": 2}, what="the restart")
    driver.stop("for the test")
    assert outcome.result(timeout=LIMIT) == [RunnerOutcome.DONE]
    with open_stores(bench.worker) as stores:
        assert stores.config.take_restart_requests() == []
    assert any(b"\x1f" in (record.key or b"") for record in records(bench.worker, bench.worker.config_topic))


def test_new_inputs_get_tasks_while_other_tasks_continue(bench: Bench, unique: Callable[[str], str]) -> None:
    name = unique("source")
    script = begin(bench, name, "a", "b")
    bench.driver(name, "one:1")
    running(bench, name, 2)
    before = len(records(bench.worker, bench.worker.config_topic))
    script.tasks = [{"n": "a"}, {"n": "changed"}, {"n": "c"}]
    assert script.connector is not None
    script.connector.context.request_task_reconfiguration()
    eventually(lambda: started(script) == {"a": 1, "b": 1, "changed": 1, "c": 1}, what="the new tasks")
    running(bench, name, 3)
    written = records(bench.worker, bench.worker.config_topic)[before:]
    assert [record.key for record in written] == [
        *(f"task-{name}-{number}".encode() for number in range(3)),
        f"commit-{name}".encode(),
    ]
    assert json.loads(written[-1].value or b"") == {"tasks": 3}
    script.tasks = [{"n": "a"}]
    script.connector.context.request_task_reconfiguration()
    running(bench, name, 1)
    assert started(script)["a"] == 1


def test_task_configs_left_by_compaction_are_not_started(bench: Bench, unique: Callable[[str], str]) -> None:
    """Three tasks were deleted with their connector; after it was created again, one task was committed."""
    name = unique("source")
    Script.current = script = Script(tasks=[{"n": "new"}])
    old = [encode_task(TaskId(name, number), {"n": "old", "task.class": "old"}) for number in (1, 2)]
    new = encode_task(TaskId(name, 0), {"n": "committed", "task.class": "new"})
    left = [*old, encode_connector(name, watched(name)), new, encode_commit(name, 1)]
    writer = TopicWriter(bench.worker, "test")
    writer.write([(bench.worker.config_topic, key, value) for key, value in left])
    writer.close()
    entry = bench.stores.config.refresh().entry(name)
    assert entry is not None
    assert [config["n"] for config in entry.task_configs] == ["committed"]
    bench.driver(name, "one:1")
    running(bench, name, 1)
    assert started(script) == {"new": 1}


# Fencing.


def test_of_two_drivers_started_at_once_one_is_fenced(bench: Bench, unique: Callable[[str], str]) -> None:
    name = unique("source")
    script = begin(bench, name, "a")
    outcomes = [bench.driver(name, worker_id)[1] for worker_id in ("one:1", "two:2")]
    fenced = eventually(lambda: [each for each in outcomes if each.done()], what="one of them is fenced")
    assert [each.result() for each in fenced] == [[RunnerOutcome.FENCED]]
    running(bench, name, 1)
    assert 1 <= started(script)["a"] <= 2


def test_two_drivers_of_an_exactly_once_source_write_each_number_once(
    tmp_path: Path, kafka_bootstrap: str, group: str, unique: Callable[[str], str]
) -> None:
    """The tasks are threads that nothing kills: only Kafka's fencing stops the older driver's writes."""
    name, topic = unique("source"), unique("numbers")
    config = {
        "connector.class": "sluiceway.connectors.verifiable.source.VerifiableSourceConnector",
        "topic": topic,
        "throughput": "500",
        "records.max": "5000",
        "record.schema.enable": "false",
        "exactly.once.support": "required",
    }
    with open_bench(kafka_bootstrap, group, tmp_path, **{"exactly.once.source.support": "enabled"}) as bench:
        bench.herder.create(name, config)
        outcomes = [bench.driver(name, worker_id)[1] for worker_id in ("one:1", "two:2")]
        eventually(lambda: [each for each in outcomes if each.done()], what="one of them is fenced")
        running(bench, name, 1)
        third = bench.driver(name, "three:3")[1]
        eventually(lambda: all(each.done() for each in outcomes), what="the other one is fenced too")
        assert [each.result() for each in outcomes] == [[RunnerOutcome.FENCED]] * 2
        assert not third.done()
        eventually(lambda: len(records(bench.worker, topic)) >= 5000, what="all numbers")
        assert sorted(int(record.value or b"-1") for record in records(bench.worker, topic)) == list(range(5000))


def test_a_fenced_driver_can_write_nothing_at_all(bench: Bench, unique: Callable[[str], str]) -> None:
    """Every write of the old driver is rejected, and none of its records follows the new driver's first one."""
    name = unique("source")
    old, new = (channel_of(bench, name, worker_id) for worker_id in ("old:1", "new:2"))
    old.acquire()
    old.publish_connector(State.RUNNING)
    old.publish_tasks([0, 1], State.RUNNING)
    new.acquire()
    assert new.generation == old.generation + 1
    new.publish_connector(State.RUNNING)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: old.publish_connector(State.RUNNING),
        lambda: old.publish_tasks([0], State.FAILED, "old"),
        lambda: old.remove_task(1),
        old.remove_connector,
        lambda: old.publish_connector(State.UNASSIGNED),
    )
    for attempt in attempts:
        with pytest.raises(FencedError):
            attempt()
    new.publish_tasks([0], State.RUNNING)
    old.close()
    new.close()
    read = records(bench.worker, bench.worker.status_topic, bench.worker.number("status.storage.partitions"))
    by_key: dict[bytes | None, list[str]] = {}
    for record in read:
        by_key.setdefault(record.key, []).append(json.loads(record.value or b"{}").get("worker_id", "removed"))
    assert by_key == {
        f"status-connector-{name}".encode(): ["old:1", "new:2"],
        f"status-task-{name}-0".encode(): ["old:1", "new:2"],
        f"status-task-{name}-1".encode(): ["old:1"],
    }


def test_a_driver_renews_a_lease_that_no_other_driver_has_taken(bench: Bench, unique: Callable[[str], str]) -> None:
    name = unique("source")
    channel = channel_of(bench, name, "one:1")
    channel.acquire()
    channel.publish_connector(State.RUNNING)
    channel._lease._writer.close()  # as after an error in the cluster
    channel.publish_connector(State.FAILED, "still here")
    assert bench.stores.status.connector(name).trace == "still here"  # type: ignore[union-attr]
    newer = channel_of(bench, name, "two:2")
    newer.acquire()
    newer.publish_connector(State.RUNNING)
    channel._lease._writer.close()
    with pytest.raises(FencedError, match="two:2 has taken"):
        channel.publish_connector(State.RUNNING)
    newer.publish_connector(State.RUNNING)  # and was not fenced itself
    channel.close()
    newer.close()


def workers(status: dict[str, Any]) -> list[str]:
    """Return the workers of the connector and of its tasks."""
    return [status["connector"]["worker_id"], *(task["worker_id"] for task in status["tasks"])]


class SilentTasks(ThreadLauncher):
    """Tasks without heartbeats: Spark kills a fenced driver's tasks, but nobody can kill the bench's threads."""

    def launch(self, work: Work) -> Future[TaskResult]:
        assert isinstance(work, TaskAssignment)
        properties = {**work.worker.raw, "sluiceway.heartbeat.interval.ms": "600000"}
        return super().launch(replace(work, spec=replace(work.spec, worker=worker_of(properties))))


@pytest.mark.peer
def test_a_driver_does_not_run_beside_kafka_connect(
    tmp_path: Path, kafka_bootstrap: str, group: str, unique: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka Connect workers with the same group.id run the same connectors and ignore the lease."""
    name = unique("source")
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    worker = worker_of(worker_properties(kafka_bootstrap, group))
    topics = (worker.config_topic, worker.offset_topic, worker.status_topic)
    with ExitStack() as stack:
        bench = stack.enter_context(open_bench(kafka_bootstrap, group, tmp_path))
        bench.herder.create(name, {"connector.class": peer.FILE_SOURCE, "file": str(source), "topic": unique("lines")})
        _, outcome = bench.driver(name, "one:1", SilentTasks())
        running(bench, name, 1)
        bench.herder.restart_task(TaskId(name, 0))
        with peer.PeerDistributed(kafka_bootstrap, group, tmp_path / "peer", topics) as connect, caplog.at_level(logging.ERROR):
            assert outcome.result(timeout=LIMIT) == [RunnerOutcome.FENCED]
            assert f"Kafka Connect runs connector {name}: 1 worker(s) with group.id={group}" in caplog.text
            peer.wait_for_state(connect.rest, name, "RUNNING")
            _, second = bench.driver(name, "two:2", SilentTasks())
            assert second.result(timeout=LIMIT) == [RunnerOutcome.FENCED]
            bench.herder.restart_task(TaskId(name, 0))
            peer.restart(connect.rest, name)
            peer.wait_for_state(connect.rest, name, "RUNNING")
            eventually(lambda: workers(peer.get_status(connect.rest, name)) == [connect.rest.removeprefix("http://")] * 2)
            # A worker that receives our restart request for one task only logs it.
            told = [line.split()[2] for line in connect.log.read_text().splitlines() if "\x1f" in line]
            assert set(told) <= {"INFO"}


def test_a_created_status_topic_is_compacted_soon_unless_the_worker_overrides_it(
    bench: Bench, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    assert topic_settings(admin_client(bench.worker), bench.worker.status_topic)["segment.ms"] == "600000"
    own = worker_of(worker_properties(kafka_bootstrap, unique("own"), **{"status.storage.segment.ms": "7200000"}))
    with open_stores(own):
        assert topic_settings(admin_client(own), own.status_topic)["segment.ms"] == "7200000"
        assert topic_settings(admin_client(own), own.status_topic)["cleanup.policy"] == "compact"


def test_the_heartbeats_of_all_connectors_of_a_driver_are_one_record(bench: Bench, unique: Callable[[str], str]) -> None:
    """No status is written again, and no other topic gets a record."""
    sender = unique("application")
    channels = KafkaChannels(bench.worker, "one:1", bench.stores, sender)
    made = [unique("source") for _ in range(3)]
    opened = {name: channels.channel(name) for name in made}
    for channel in opened.values():
        channel.acquire()
        channel.publish_connector(State.RUNNING)
    partitions = bench.worker.number("status.storage.partitions")
    configs = len(records(bench.worker, bench.worker.config_topic))
    before = len(records(bench.worker, bench.worker.status_topic, partitions))
    written_at = {name: bench.stores.status.connector(name).timestamp for name in made}  # type: ignore[union-attr]

    def renewed() -> list[LogRecord]:
        for channel in opened.values():
            channel.renew_connector(State.RUNNING)
        found = records(bench.worker, bench.worker.status_topic, partitions)
        return [record for record in found if is_heartbeat(record.key)] if len(found) >= before + 3 else []

    heartbeats = eventually(renewed, what="three heartbeats")
    assert {record.key for record in heartbeats} == {heartbeat_key(sender)}
    assert all(decode_heartbeat(record.value or b"") == Heartbeat("one:1", dict.fromkeys(made, 1)) for record in heartbeats)
    assert len(records(bench.worker, bench.worker.status_topic, partitions)) - len(heartbeats) == before
    assert len(records(bench.worker, bench.worker.config_topic)) == configs
    bench.stores.status.refresh()
    assert all(bench.stores.status.connector(name).timestamp > written_at[name] for name in made)  # type: ignore[union-attr]
    for channel in opened.values():
        channel.close()
    channels.close()
