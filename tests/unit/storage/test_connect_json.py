"""Compares the JSON with Jackson's: data/jackson_values.json comes from a Java 17 program that uses Jackson 2.21."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from sluiceway.errors import DataError
from sluiceway.storage import connect_json

DATA = Path(__file__).parent / "data"


VALUES = json.loads((DATA / "jackson_values.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", VALUES, ids=lambda example: example.get("bits", "text"))
def test_json_values_have_jacksons_bytes(example: dict[str, str]) -> None:
    if "text" in example:
        value: object = example["text"]
    else:
        value = struct.unpack(">d", bytes.fromhex(example["bits"].zfill(16)))[0]
    assert connect_json.dumps(value) == bytes.fromhex(example["json"])


def test_json_has_no_spaces_and_keeps_the_order_given() -> None:
    value: dict[str, object] = {"b": [1, None, True, {}], "a": {"é": 2**70}, "c": [], "d": b"\x00\xff"}
    assert connect_json.dumps(value).decode() == '{"b":[1,null,true,{}],"a":{"é":1180591620717411303424},"c":[],"d":"AP8="}'


def test_whole_numbers_beyond_64_bits_are_read_exactly() -> None:
    assert connect_json.loads(b'{"position":1180591620717411303425}') == {"position": 2**70 + 1}


@pytest.mark.parametrize("value", [object(), {1: "a"}, float("nan"), float("inf"), "\ud83d", {"a": {1, 2}}])
def test_what_has_no_json_is_a_data_error(value: object) -> None:
    with pytest.raises(DataError):
        connect_json.dumps(value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_a_data_error(data: bytes) -> None:
    with pytest.raises(DataError):
        connect_json.loads(data)
