"""MySQL's binary JSON; the documents are built by hand after its format."""

from __future__ import annotations

import struct

import pytest

from sluiceway.connectors.cdc.mysql.binlog.json_values import json_text
from sluiceway.errors import ConnectError


def test_an_object_with_inline_and_other_values() -> None:
    # {"a": 1, "bb": "x"}: counts, two key entries, two value entries, the keys, the string.
    entries = struct.pack("<HHHHHH", 2, 0, 18, 1, 19, 2) + b"\x05" + struct.pack("<h", 1) + b"\x0c" + struct.pack("<H", 21)
    document = b"\x00" + entries + b"a" + b"bb" + b"\x01x"

    assert json_text(document) == '{"a":1,"bb":"x"}'


def test_an_array_of_literals_and_numbers() -> None:
    head = struct.pack("<HH", 4, 0)
    values = b"\x04\x00\x00" + b"\x04\x01\x00" + b"\x06\xff\xff" + b"\x0b" + struct.pack("<H", 16)
    document = b"\x02" + head + values + struct.pack("<d", 2.5)

    assert json_text(document) == "[null,true,65535,2.5]"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b"", "{}"),
        (b"\x09" + struct.pack("<q", -(1 << 40)), str(-(1 << 40))),
        (b"\x0a" + struct.pack("<Q", (1 << 64) - 1), str((1 << 64) - 1)),
        (b"\x0f\xf6\x07\x0a\x04" + bytes.fromhex("7ffff3ec77"), "-12.5000"),
        (b"\x0c\x04\xc5\xbc\xc3\xb3", '"żó"'),
    ],
)
def test_scalars(document: bytes, expected: str) -> None:
    assert json_text(document) == expected


def test_opaque_dates_and_times_are_text() -> None:
    packed = (((2024 * 13 + 2) << 5 | 29) << 17 | (12 << 12 | 34 << 6 | 56)) << 24 | 500_000
    document = b"\x0f\x0c\x08" + struct.pack("<q", packed)

    assert json_text(document) == '"2024-02-29 12:34:56.500000"'


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ConnectError, match="unknown type 14"):
        json_text(b"\x0e\x00")


def test_values_that_contain_each_other_are_a_damaged_log() -> None:
    twice_itself = b"\x02" + (2).to_bytes(2, "little") + (10).to_bytes(2, "little") + b"\x02\x00\x00" * 2
    with pytest.raises(ConnectError, match="contain each other"):
        json_text(twice_itself)
