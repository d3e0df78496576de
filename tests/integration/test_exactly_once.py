"""Exactly-once sources on a real broker: transaction boundaries and the topics that tasks create."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from sluiceway.api import SourceRecord
from sluiceway.data import STRING_SCHEMA
from sluiceway.kafka.producer_transactions import ProducerTransactions
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.engine_connectors import ACKNOWLEDGED_SOURCE, script
from support.eventually import eventually
from support.exactly_once import (
    PARTITION,
    Names,
    Worker,
    config_of,
    exactly_once_worker,
    opened_stores,
    records,
    stored,
    values,
)
from support.transactions import FIBONACCI, fibonacci_transaction, seen

pytestmark = pytest.mark.kafka


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Names) -> Worker:
    return exactly_once_worker(kafka_bootstrap, unique)


@pytest.fixture
def stores(worker: Worker) -> Iterator[Callable[[dict[str, str]], Any]]:
    with opened_stores(worker) as opened:
        yield opened


def test_each_poll_is_one_transaction(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("poll")
    made = script(name, records(name, 1), records(name, 2, 3), None)
    with RunningTask(config_of(name), worker, offsets=stores({})) as task:
        eventually(lambda: made.names().count("commit") == 2)
        found = seen(worker["bootstrap.servers"], name)
        assert [(message.offset(), message.value()) for message in found] == [(0, b"1"), (2, b"2"), (3, b"3")]
        assert stored(stores({}), name) == {"position": 3}
        assert task.reports.states == [State.RUNNING]


def test_an_interval_combines_polls_in_one_transaction(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("interval")
    made = script(name, records(name, 1), records(name, 2), None, records(name, 3))
    config = config_of(
        name, transaction_boundary="interval", transaction_boundary_interval_ms="500000", producer_override_linger_ms="0"
    )
    with RunningTask(config, worker, offsets=stores({})) as task:
        eventually(lambda: made.steps == [] and task.reports.topics == [name])
        eventually(lambda: len(values(worker, name, committed=False)) == 3)
        assert values(worker, name) == []
        assert made.names().count("commit") == 0
        task.stop()
    assert values(worker, name) == [1, 2, 3]
    assert stored(stores({}), name) == {"position": 3}


def test_an_elapsed_interval_commits_even_without_new_records(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("interval")
    script(name, records(name, 1))
    config = config_of(name, transaction_boundary="interval", transaction_boundary_interval_ms="50")
    with RunningTask(config, worker, offsets=stores({})):
        eventually(lambda: stored(stores({}), name) == {"position": 1})
        assert values(worker, name) == [1]


@pytest.mark.parametrize("by_batch", ["false", "true"])
def test_a_connector_defines_its_transaction_boundaries(worker: Worker, stores: Any, unique: Names, by_batch: str) -> None:
    name, end = unique("fibonacci"), 200
    config = config_of(
        name,
        FIBONACCI,
        transaction_boundary="connector",
        records_max=str(end),
        by_batch=by_batch,
        value_converter="LongConverter",
    )
    with RunningTask(config, worker, offsets=stores({}), bounded=True) as task:
        result = task.join()
    assert not result.failed, result.trace
    complete = end if by_batch == "true" else max(number + 1 for number in range(end) if fibonacci_transaction(number)[1] <= end)
    assert complete > 140, "there are fewer transactions than meant"
    wanted = [number for number in range(complete) if fibonacci_transaction(number)[0]]
    assert [int.from_bytes(message.value() or b"", "big") for message in seen(worker["bootstrap.servers"], name)] == wanted
    assert stores({}).get(name, [{"id": 0}]) == [{"seqno": complete - 1}], "aborted records are not read again"


def test_a_transaction_that_is_aborted_right_after_a_commit_keeps_the_producer(kafka_bootstrap: str, unique: Names) -> None:
    name = unique("aborted")
    for number in range(10):
        identity = f"{name}-{number}"
        client = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": identity})
        transactions = ProducerTransactions(client, identity)
        transactions.fence(lambda: None)
        for milliseconds in (0, 2, 3, 5, 8):
            transactions.begin()
            transactions.send([(name, None, b"committed")], lambda: None)
            transactions.commit(lambda: None)
            transactions.begin()
            transactions.send([(name, None, b"aborted")], lambda: None)
            client.poll(milliseconds / 1000)  # at any moment of the request that adds the partition
            transactions.await_delivery()
            transactions.abort(lambda: None)
    assert [message.value() for message in seen(kafka_bootstrap, name)] == [b"committed"] * 50


def test_offsets_of_dropped_records_are_committed_in_a_transaction_without_records(
    worker: Worker, stores: Any, unique: Names
) -> None:
    name = unique("dropped")
    nothing_left = {"transforms": "f", "transforms.f.type": "Filter"}
    script(name, records(name, 1, 2))
    with RunningTask({**config_of(name), **nothing_left}, worker, offsets=stores({}), bounded=True) as task:
        assert not task.join().failed
    assert stored(stores({}), name) == {"position": 2}
    assert task.reports.topics == []


def test_commit_record_is_called_after_the_transaction_is_committed(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("heard")
    made = script(name, records(name, 1, 2))
    with RunningTask(config_of(name, ACKNOWLEDGED_SOURCE), worker, offsets=stores({}), bounded=True) as task:
        assert not task.join().failed
    assert made.calls == [("start",), ("commit_record", "1", 0, 0), ("commit_record", "2", 0, 1), ("commit",), ("stop",)]


def test_a_failed_batch_is_rolled_back_and_earlier_batches_stay_committed(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("failing")
    bad = SourceRecord(PARTITION, {"position": 4}, name, object(), STRING_SCHEMA)
    made = script(name, records(name, 1, 2), [*records(name, 3), bad])
    json = {"value.converter": "JsonConverter"}
    with RunningTask({**config_of(name), **json}, worker, offsets=stores({})) as task:
        result = task.join()
    assert result.failed
    assert task.reports.states == [State.RUNNING, State.FAILED]
    assert len(seen(worker["bootstrap.servers"], name)) == 2
    assert stored(stores({}), name) == {"position": 2}
    assert made.names().count("commit") == 1


def test_topics_are_created_with_the_settings_of_their_group(worker: Worker, stores: Any, unique: Names) -> None:
    name, compacted = unique("made"), unique("compact")
    made = config_of(
        name,
        topic_creation_default_partitions="2",
        topic_creation_default_replication_factor="-1",
        topic_creation_groups="c",
        topic_creation_c_include="compact-.*",
        topic_creation_c_partitions="3",
        topic_creation_c_cleanup_policy="compact",
    )
    made["topic.creation.c.cleanup.policy"] = made.pop("topic.creation.c.cleanup.policy")
    script(name, [*records(name, 1), *records(compacted, 2, key="k")])
    with RunningTask(made, worker, offsets=stores({}), bounded=True) as task:
        result = task.join()
    assert not result.failed, result.trace
    admin = AdminClient({"bootstrap.servers": worker["bootstrap.servers"]})
    assert [len(admin.list_topics(topic, timeout=10).topics[topic].partitions) for topic in (name, compacted)] == [2, 3]
    policies = []
    for topic in (name, compacted):
        resource = ConfigResource(ResourceType.TOPIC, topic)
        policies.append(admin.describe_configs([resource])[resource].result()["cleanup.policy"].value)
    assert policies == ["delete", "compact"]


def test_a_topic_that_cannot_be_created_fails_the_task_with_advice(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("unmade")
    config = config_of(name, topic_creation_default_partitions="1", topic_creation_default_replication_factor="9")
    script(name, records(name, 1))
    with RunningTask(config, worker, offsets=stores({}), bounded=True) as task:
        result = task.join()
    assert result.failed
    assert f"could not create topic '{name}' with the settings of group 'default'" in str(result.trace)
    assert stored(stores({}), name) is None
