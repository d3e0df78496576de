"""Writes the scenario recorded from Kafka Connect 4.3.0 through our stores, and compares the three topics with the recording.

data/internal_topics.json is the recording: a source and a sink are created, paused, resumed, restarted, stopped, their
offsets edited, a third connector is created stopped, a fourth fails, all are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError
from sluiceway.kafka.admin import beginning_offsets, create_topic, end_offsets, partition_count, topic_settings
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.kafka_based_log import LogRecord, TopicTail
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.model import RestartRequest, State, Status, TargetState, TaskId

RECORDED = json.loads((Path(__file__).parent / "data" / "internal_topics.json").read_text())["topics"]
# Records that Connect's workers write for themselves: their session key and their log levels.
NOT_OURS = ("session-key", "logger-cluster-")
SOURCE, SINK, STOPPED, FAIL = "scn-source", "scn-sink", "scn-stopped", "scn-fail"

pytestmark = pytest.mark.kafka


def recorded(topic: str) -> list[dict[str, Any]]:
    return [record for record in RECORDED[topic]["records"] if not record["key"].startswith(NOT_OURS)]


def properties(key: str) -> dict[str, str]:
    """Return the config in the first record of a key, as the request had it: without the name at its end."""
    value = next(record["value"] for record in recorded("connect-configs") if record["key"] == key)
    config = json.loads(value)["properties"]
    assert isinstance(config, dict)
    return config


def request(name: str) -> dict[str, str]:
    return {key: value for key, value in properties(f"connector-{name}").items() if key != "name"}


def task_config(name: str, task_class: str) -> dict[str, str]:
    """Return what the engine hands over for a task: the stored config, and the task's class."""
    return {**properties(f"connector-{name}"), "task.class": task_class}


def read(worker: WorkerConfig, topic: str) -> list[LogRecord]:
    """Return all that a reader of committed records finds, in the order of partition and offset."""
    admin = admin_client(worker)
    partitions = RECORDED[{"c": "connect-configs", "o": "connect-offsets", "s": "connect-status"}[topic[0]]]["partitions"]
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    ends = end_offsets(admin, places)
    tail = TopicTail(worker, "reader", beginning_offsets(admin, places))
    records: list[LogRecord] = []
    last: dict[int, int] = {}
    # A marker follows each transaction, so the end may be one behind the last record.
    while any(last.get(place.partition, -2) < end - 2 for place, end in ends.items() if end):
        for record in tail.poll(10.0):
            records.append(record)
            last[record.partition] = record.offset
    tail.close()
    return sorted(records, key=lambda record: (record.partition, record.offset))


def masked(value: str | None) -> str | None:
    """Blank out the time at which a topic was discovered: the only value of ours that differs from run to run."""
    fields = json.loads(value) if value else None
    if isinstance(fields, dict) and "topic" in fields:
        fields["topic"]["discoverTimestamp"] = 0
        return json.dumps(fields)
    return value


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Callable[[str], str]) -> WorkerConfig:
    factor = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    topics = {f"{kind}.storage.topic": unique(kind[0]) for kind in ("config", "offset", "status")}
    return WorkerConfig.of({"bootstrap.servers": kafka_bootstrap, "group.id": unique("group"), **factor, **topics})


@pytest.fixture
def stores(worker: WorkerConfig) -> Iterator[Stores]:
    with open_stores(worker) as opened:
        yield opened


def test_the_config_topic_has_the_recorded_keys_and_values_in_the_recorded_order(stores: Stores, worker: WorkerConfig) -> None:
    configs = stores.config
    source_task = "org.apache.kafka.connect.file.FileStreamSourceTask"
    sink_task = "org.apache.kafka.connect.file.FileStreamSinkTask"
    configs.put_connector(SOURCE, request(SOURCE))
    configs.put_task_configs(SOURCE, [task_config(SOURCE, source_task)])
    configs.put_connector(SINK, request(SINK))
    configs.put_task_configs(SINK, [task_config(SINK, sink_task)] * 2)
    for state in (TargetState.PAUSED, TargetState.STARTED):
        configs.put_target_state(SOURCE, state)
        configs.put_target_state(SINK, state)
    configs.put_restart_request(RestartRequest(SOURCE, only_failed=False, include_tasks=True))
    configs.put_target_state(SOURCE, TargetState.STOPPED)
    configs.put_target_state(SINK, TargetState.STOPPED)
    configs.put_target_state(SOURCE, TargetState.STARTED)
    configs.put_task_configs(SOURCE, [task_config(SOURCE, source_task)])
    configs.put_connector(STOPPED, request(STOPPED), TargetState.STOPPED)
    configs.put_connector(FAIL, request(FAIL))
    configs.put_task_configs(FAIL, [task_config(FAIL, source_task)])
    for name in (SOURCE, SINK, STOPPED, FAIL):
        configs.remove_connector(name)

    written = [(text(record.key), text(record.value)) for record in read(worker, worker.config_topic)]
    assert written == [(record["key"], record["value"]) for record in recorded("connect-configs")]
    assert configs.snapshot().connectors == {}


def test_the_status_topic_has_the_recorded_keys_values_and_partitions(stores: Stores, worker: WorkerConfig) -> None:
    for record in recorded("connect-status"):
        replay_status(stores, record["key"], record["value"])
    written = read(worker, worker.status_topic)
    assert [(record.partition, text(record.key), masked(text(record.value))) for record in written] == [
        (record["partition"], record["key"], masked(record["value"]))
        for record in sorted(recorded("connect-status"), key=lambda record: (record["partition"], record["offset"]))
    ]


def replay_status(stores: Stores, key: str, value: str | None) -> None:
    """Do what led to a recorded status record."""
    fields = json.loads(value) if value else None
    if key.startswith("status-topic-"):
        topic, _, connector = key.removeprefix("status-topic-").partition(":connector-")
        if fields:
            stores.status.put_topic(connector, fields["topic"]["task"], topic)
        elif stores.status.topics(connector):
            stores.status.remove_topics(connector)
        else:
            write_again(stores, key)
        return
    status = Status(**{**fields, "state": State(fields["state"])}) if fields else None
    kind, _, name = key.removeprefix("status-").partition("-")
    if kind == "connector" and status:
        stores.status.put_connector(name, status)
    elif kind == "task":
        connector, _, number = name.rpartition("-")
        task = TaskId(connector, int(number))
        if status:
            stores.status.put_task(task, status)
        else:
            stores.status.remove_task(task)
    elif stores.status.connector(name) and not stores.status.tasks(name):
        stores.status.remove_connector(name)
    else:
        write_again(stores, key)


def write_again(stores: Stores, key: str) -> None:
    """Connect wrote some tombstones twice, or in another order than ours; the bytes are what is compared."""
    stores.status._put([(key.encode(), None)])  # type: ignore[attr-defined]


def test_the_offsets_topic_has_the_recorded_keys_values_and_partition(stores: Stores, worker: WorkerConfig) -> None:
    for record in recorded("connect-offsets"):
        name, partition = json.loads(record["key"])
        stores.offsets.put(name, [(partition, json.loads(record["value"]) if record["value"] else None)])
    written = read(worker, worker.offset_topic)
    expected = [(record["key"], record["value"]) for record in recorded("connect-offsets")]
    assert [(text(record.key), text(record.value)) for record in written] == expected
    partition = next(int(number) for number, end in RECORDED["connect-offsets"]["end_offsets"].items() if end)
    assert {record.partition for record in written} == {partition}
    assert stores.offsets.get(SOURCE, [{"filename": "/data/in.txt"}]) == [{"position": 12}]


@pytest.mark.parametrize("kind", ["connect-configs", "connect-offsets", "connect-status"])
def test_the_topics_are_created_as_connect_creates_them(stores: Stores, worker: WorkerConfig, kind: str) -> None:
    name = {"c": worker.config_topic, "o": worker.offset_topic, "s": worker.status_topic}[kind.removeprefix("connect-")[0]]
    admin = admin_client(worker)
    settings = topic_settings(admin, name)
    expected = RECORDED[kind]["selected_configs"]
    assert {key: settings[key] for key in expected} == expected
    assert partition_count(admin, name) == RECORDED[kind]["partitions"]


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
@pytest.mark.parametrize(
    ("part", "purpose"),
    [("config", "connector configurations"), ("offset", "source connector offsets"), ("status", "connector and task statuses")],
)
def test_a_topic_that_is_not_only_compacted_is_refused(worker: WorkerConfig, part: str, purpose: str, policy: str) -> None:
    name = worker.text(f"{part}.storage.topic")
    create_topic(admin_client(worker), name, 1, 1, {"cleanup.policy": policy})
    stores = open_stores(worker)
    store = {"config": stores.config, "offset": stores.offsets, "status": stores.status}[part]
    message = (
        f"Topic '{name}' supplied via the '{part}.storage.topic' property is required to have 'cleanup.policy=compact' to "
        f"guarantee consistency and durability of {purpose}, but found the topic currently has 'cleanup.policy="
    )
    with pytest.raises(InternalTopicError) as caught:
        store.start()
    assert str(caught.value).startswith(message)


def test_a_config_topic_of_two_partitions_is_refused(worker: WorkerConfig) -> None:
    create_topic(admin_client(worker), worker.config_topic, 2, 1, {"cleanup.policy": "compact"})
    with pytest.raises(InternalTopicError) as caught:
        open_stores(worker).config.start()
    assert str(caught.value) == (
        f"Topic '{worker.config_topic}' supplied via the 'config.storage.topic' property is required to have a single partition "
        "in order to guarantee consistency of connector configurations, but found 2 partitions."
    )


def test_more_replicas_than_brokers_are_refused_by_the_key_to_change(worker: WorkerConfig) -> None:
    three = WorkerConfig.of({**worker.raw, "config.storage.replication.factor": "3"})
    with pytest.raises(InternalTopicError, match=r"3 replicas.*'config\.storage\.replication\.factor'"):
        open_stores(three).config.start()


def test_the_brokers_default_of_replicas_is_used_for_minus_one(worker: WorkerConfig) -> None:
    default = WorkerConfig.of({**worker.raw, "status.storage.replication.factor": "-1", "status.storage.partitions": "-1"})
    store = open_stores(default).status
    store.start()
    store.stop()
