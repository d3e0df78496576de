"""Fenced writers, topic tails and committed offsets of groups on a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, InternalTopicError
from sluiceway.kafka.admin import create_topic, end_offsets
from sluiceway.kafka.clients import TopicPartitionOffset, admin_client, consumer, consumer_config
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.kafka.group_offsets import ConsumerGroups
from sluiceway.kafka.kafka_based_log import LogRecord, TopicTail
from sluiceway.kafka.topic_writer import TopicWriter
from support.eventually import eventually

pytestmark = pytest.mark.kafka
Open = Callable[[Any], Any]


def test_readers_see_nothing_of_a_fenced_writers_records(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    topic = unique("fenced")
    admin = admin_client(worker)
    create_topic(admin, topic, 2, 1)
    old, new = (FencedWriter(worker, topic, topic) for _ in range(2))
    old.fence()
    assert old.write([(topic, b"a", b"1")])
    new.fence()
    for _ in range(2):
        with pytest.raises(ConnectError):
            old.write([(topic, b"a", b"stale"), (topic, b"b", b"stale")])
    new.write([(topic, b"a", b"2"), (topic, b"b", None)])
    tail = TopicTail(worker, topic, {TopicPartition(topic, partition): 0 for partition in range(2)})
    records: list[LogRecord] = []
    eventually(lambda: records.extend(tail.poll(1.0)) or len(records) >= 3)
    assert {(record.key, record.value) for record in records} == {(b"a", b"1"), (b"a", b"2"), (b"b", None)}
    tail.close()
    old.fence()  # a fenced writer may fence in turn
    old.write([(topic, b"a", b"3")])
    old.close()
    new.close()


def test_a_writer_that_is_fenced_between_two_records_is_told_so(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    topic = unique("fenced")
    create_topic(admin_client(worker), topic, 1, 1)
    old, new = (FencedWriter(worker, topic, topic) for _ in range(2))
    old.fence()
    new.fence()
    with pytest.raises(FencedError):
        old.write([(topic, b"a", b"stale")] * 50_000)  # the answer to the first one arrives meanwhile
    old.close()
    new.close()


def test_more_records_than_the_clients_buffer_has_are_written_at_once(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    topic, count = unique("many"), 100_001  # queue.buffering.max.messages is 100,000
    create_topic(admin_client(worker), topic, 1, 1)
    writer, fenced = TopicWriter(worker, topic), FencedWriter(worker, topic, topic)
    assert writer.write([(topic, b"a", None)] * count) == {TopicPartition(topic, 0): count}
    fenced.fence()
    assert fenced.write([(topic, b"a", None)] * count) == {TopicPartition(topic, 0): 2 * count}
    writer.close()
    fenced.close()


def test_a_tail_starts_at_given_offsets_and_follows_several_topics(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    admin = admin_client(worker)
    topics = [unique("tail") for _ in range(2)]
    writer = TopicWriter(worker, "w")
    for topic in topics:
        create_topic(admin, topic, 1, 1)
        writer.write([(topic, b"before", None)])
    tail = TopicTail(worker, "tail", end_offsets(admin, [TopicPartition(topic, 0) for topic in topics]))
    assert tail.poll(0.3) == []
    for number in range(10):
        topic = topics[number % 2]
        writer.write([(topic, b"k", b"%d" % number)])
        [record] = eventually(lambda: tail.poll(1.0))
        assert (record.topic, record.key, record.value) == (topic, b"k", b"%d" % number)
    tail.close()


def test_a_tail_from_an_offset_out_of_range_is_an_error(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    topic = unique("tail")
    create_topic(admin_client(worker), topic, 1, 1)
    tail = TopicTail(worker, "tail", {TopicPartition(topic, 0): 1000})
    with pytest.raises(InternalTopicError, match=topic):
        eventually(lambda: tail.poll(1.0))
    tail.close()


def test_group_offsets_are_the_committed_ones(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    admin, topic, group = admin_client(worker), unique("groups"), unique("connect-sink")
    create_topic(admin, topic, 3, 1)
    groups = ConsumerGroups(worker)
    assert groups.offsets(group) == {}
    member = consumer(consumer_config(worker, "c", group))
    member.commit(offsets=[TopicPartitionOffset(topic, 0, 5), TopicPartitionOffset(topic, 2, 7)], asynchronous=False)
    member.close()
    assert groups.offsets(group) == {TopicPartition(topic, 0): 5, TopicPartition(topic, 2): 7}
