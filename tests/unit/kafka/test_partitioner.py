from __future__ import annotations

import pytest
from confluent_kafka import murmur2

from sluiceway.kafka.partitioner import partition_of


@pytest.mark.parametrize(
    "key", [b"", b"2", b"21", b"foo", b"foobar", b"status-task-orders-17", "Straße".encode(), bytes(range(256))]
)
def test_a_key_has_the_partition_that_the_client_chooses(key: bytes) -> None:
    assert [partition_of(key, count) for count in (1, 5, 25, 1000)] == [murmur2(key, count) for count in (1, 5, 25, 1000)]


def test_a_key_of_kafkas_own_test_vectors_has_its_partition() -> None:
    assert partition_of(b"foobar", 1 << 31) == -790332482 & 0x7FFFFFFF
