"""Makes records as the Kinesis Producer Library aggregates them, with Google's encoder of Protocol Buffers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_MAGIC = b"\xf3\x89\x9a\xc2"
_FIELD = descriptor_pb2.FieldDescriptorProto


@cache
def _message() -> Any:
    """Return the class of AggregatedRecord."""
    file = descriptor_pb2.FileDescriptorProto(name="aggregated.proto", package="test", syntax="proto2")
    tag = file.message_type.add(name="Tag")
    tag.field.add(name="key", number=1, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_REQUIRED)
    tag.field.add(name="value", number=2, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL)
    record = file.message_type.add(name="Record")
    record.field.add(name="partition_key_index", number=1, type=_FIELD.TYPE_UINT64, label=_FIELD.LABEL_REQUIRED)
    record.field.add(name="explicit_hash_key_index", number=2, type=_FIELD.TYPE_UINT64, label=_FIELD.LABEL_OPTIONAL)
    record.field.add(name="data", number=3, type=_FIELD.TYPE_BYTES, label=_FIELD.LABEL_REQUIRED)
    record.field.add(name="tags", number=4, type=_FIELD.TYPE_MESSAGE, label=_FIELD.LABEL_REPEATED, type_name=".test.Tag")
    whole = file.message_type.add(name="AggregatedRecord")
    whole.field.add(name="partition_key_table", number=1, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_REPEATED)
    whole.field.add(name="explicit_hash_key_table", number=2, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_REPEATED)
    whole.field.add(name="records", number=3, type=_FIELD.TYPE_MESSAGE, label=_FIELD.LABEL_REPEATED, type_name=".test.Record")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.AggregatedRecord"))


def aggregated(
    records: Sequence[tuple[str, bytes]], *, hash_keys: Sequence[str] = (), keys: Sequence[str] | None = None
) -> bytes:
    """Return an aggregated record of keys and data. ``keys`` replaces the table of keys; every record has a tag."""
    message = _message()()
    table = sorted({key for key, _data in records})
    message.partition_key_table.extend(table if keys is None else keys)
    message.explicit_hash_key_table.extend(hash_keys)
    for number, (key, data) in enumerate(records):
        made = message.records.add(partition_key_index=table.index(key), data=data)
        made.tags.add(key="t", value="v")
        if number < len(hash_keys):
            made.explicit_hash_key_index = number
    body = message.SerializeToString()
    return _MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()
