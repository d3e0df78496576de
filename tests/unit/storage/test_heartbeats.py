from __future__ import annotations

import pytest

from sluiceway.errors import DataError
from sluiceway.storage.codec import decode_status_record
from sluiceway.storage.heartbeats import Heartbeat, decode_heartbeat, encode_heartbeat, is_heartbeat
from sluiceway.storage.model import LeaseOwner, TaskId


def test_a_heartbeat_is_read_as_it_was_written_and_is_no_status() -> None:
    heartbeat = Heartbeat("w:1", {"a": 3, "b-0": 4}, {TaskId("a", 0): 5, TaskId("a", 11): 3, TaskId("b-0", 1): 4})
    key, value = encode_heartbeat("application-small", heartbeat)
    assert is_heartbeat(key)
    assert decode_heartbeat(value or b"") == heartbeat
    assert decode_status_record(key, value) is None
    assert encode_heartbeat("application-small", None) == (key, None)


def test_a_heartbeat_may_say_where_metrics_are() -> None:
    heartbeat = Heartbeat("w:1", {"a": 3}, metrics="http://host:9404")
    assert decode_heartbeat(encode_heartbeat("d", heartbeat)[1] or b"") == heartbeat
    assert b"metrics" not in (encode_heartbeat("d", Heartbeat("w:1"))[1] or b"")


@pytest.mark.parametrize("index", [-1, 0, 12])
def test_a_heartbeat_may_say_which_task_started_the_driver(index: int) -> None:
    heartbeat = Heartbeat("w:1", {"a": 3}, owner=LeaseOwner("d", "manual__1", "t", index))
    assert decode_heartbeat(encode_heartbeat("d", heartbeat)[1] or b"") == heartbeat
    assert b"owner" not in (encode_heartbeat("d", Heartbeat("w:1"))[1] or b"")


def test_other_records_are_no_heartbeats() -> None:
    assert not is_heartbeat(None)
    assert not is_heartbeat(b"status-connector-sluiceway-host-heartbeat-x")
    assert not is_heartbeat(b"sluiceway-host-orders-x")


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"{}",
        b'{"worker_id":"w","connectors":{"a":"x"},"tasks":{}}',
        b'{"worker_id":"w","connectors":{},"tasks":{},"owner":[1]}',
    ],
)
def test_bytes_that_are_no_heartbeat_are_refused(value: bytes) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        decode_heartbeat(value)
