from __future__ import annotations

import struct
from typing import Any

from sluiceway.java_plugins.packed import PackedPart

NONE = -(1 << 63)


def part(*records: tuple[int, int, int, bytes | None, bytes | None, bytes, int], **header: Any) -> PackedPart:
    """Return a part of records: source, topic, partition, key, value, headers, timestamp."""
    lengths = [[-1 if data is None else len(data) for data in record[3:5]] + [len(record[5])] for record in records]
    rows = [[*record[:3], *length] for record, length in zip(records, lengths, strict=True)]
    body = b"".join(struct.pack(f"<{len(records)}i", *column) for column in zip(*rows, strict=True)) if rows else b""
    body += struct.pack(f"<{len(records)}q", *(record[6] for record in records))
    body += b"".join(data or b"" for record in records for data in record[3:6])
    common = {"batch": 1, "size": len(records), "start": 0, "end": len(records), "count": len(records), "topics": ["t", "u"]}
    return PackedPart.of({**common, "offsets": [], "action": None, **header}, body)


def header(name: str, value: bytes | None) -> bytes:
    data = struct.pack("<i", len(name.encode())) + name.encode()
    return data + struct.pack("<i", -1 if value is None else len(value)) + (value or b"")


def test_records_of_all_kinds_are_unpacked() -> None:
    headers = header("é", b"1") + header("none", None)
    found = part((0, 0, -1, b"k", b"value", headers, 5), (2, 1, 3, None, None, b"", NONE), (3, 0, -1, b"", b"", b"", 7))
    assert list(found.record_topics) == ["t", "u", "t"]
    assert list(found.keys) == [b"k", None, b""]
    assert list(found.values) == [b"value", None, b""]
    assert list(found.headers) == [[("é", b"1"), ("none", None)], None, None]
    assert list(found.timestamps) == [5, 0, 7]
    assert list(found.partitions) == [-1, 3, -1]
    assert list(found.origins) == [0, 2, 3]


def test_records_with_only_values_are_unpacked() -> None:
    found = part((0, 0, -1, None, b"a", b"", 1), (1, 0, -1, None, b"", b"", 2), (2, 0, -1, None, b"ccc", b"", 3), topics=["t"])
    assert list(found.record_topics) == ["t"] * 3
    assert (list(found.keys), list(found.values), list(found.headers)) == ([None] * 3, [b"a", b"", b"ccc"], [None] * 3)


def test_an_empty_part_has_offsets() -> None:
    found = part(size=3, end=3, offsets=[['{"s":1}', '{"n":2}'], ['{"s":2}', None]])
    assert (found.empty, found.last, len(found)) == (True, True, 3)
    assert found.offsets == [({"s": 1}, {"n": 2}), ({"s": 2}, None)]
    assert list(found.values) == []
