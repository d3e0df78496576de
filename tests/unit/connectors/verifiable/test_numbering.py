from __future__ import annotations

import pytest

from sluiceway.connectors.verifiable.numbering import NumberedRecord, TopicRecord, from_topic, task_and_seqno
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, Schema, Struct
from sluiceway.errors import DataError

STRUCT = Schema.struct({"task": INT32_SCHEMA, "seqno": INT64_SCHEMA})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (3, 7),
        ("3", "7"),
        (b"3", b"7"),
        (None, {"task": 3, "seqno": 7}),
        (None, Struct(STRUCT, {"task": 3, "seqno": 7})),
        (b"anything", b'{"task":3,"seqno":7,"payload":"x"}'),
        (b'{"schema":{},"payload":3}', b'{"schema":{},"payload":7}'),
        (None, b'{"schema":{},"payload":{"task":3,"seqno":7}}'),
    ],
)
def test_numbers_are_read_from_every_form_of_a_record(key: object, value: object) -> None:
    assert task_and_seqno(key, value) == (3, 7)


@pytest.mark.parametrize(("key", "value"), [(None, 7), (3, None), ("a", "b"), (3, -1), (3, True), (3, 1.0), (3, b"\xff")])
def test_other_records_are_refused(key: object, value: object) -> None:
    with pytest.raises(DataError, match="Is another writer on this topic"):
        task_and_seqno(key, value)


def test_records_of_a_topic_have_their_topic_partition_and_errors_name_it() -> None:
    assert list(from_topic([TopicRecord("t", 4, b"3", b"7")])) == [NumberedRecord(3, 7, ("t", 4))]
    with pytest.raises(DataError, match="t-4: "):
        list(from_topic([TopicRecord("t", 4, None, b"x")]))
