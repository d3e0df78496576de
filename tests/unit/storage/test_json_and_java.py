"""Against Java itself: data/*.json was made by a small Java 17 program with HashMap, Jackson 2.21 and ObjectOutputStream."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from sluiceway.errors import DataError
from sluiceway.java import serialization as java_serialization
from sluiceway.java.hash_map import string_hash, task_config_order
from sluiceway.storage import connect_json

DATA = Path(__file__).parent / "data"
FILES = {name: bytes.fromhex(data) for name, data in json.loads((DATA / "offsets_files.json").read_text()).items()}
ORDERS = json.loads((DATA / "hash_map_orders.json").read_text(encoding="utf-8"))
VALUES = json.loads((DATA / "jackson_values.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", ORDERS, ids=lambda example: f"{len(example['java'])}-keys")
def test_task_configs_come_in_the_order_of_javas_hash_map(example: dict[str, list[str]]) -> None:
    config = dict.fromkeys(example["given"], "1")
    assert list(task_config_order(config, "task.class")) == example["java"]


def test_string_hash_is_javas_also_beyond_ascii_and_beyond_16_bits() -> None:
    assert string_hash("") == 0
    assert string_hash("task.class") == 4189836239
    assert string_hash("AaAa") == string_hash("BBBB")
    assert string_hash("😀") == 31 * 0xD83D + 0xDE00


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
def test_values_without_a_json_form_raise_a_data_error(value: object) -> None:
    with pytest.raises(DataError):
        connect_json.dumps(value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_invalid_json_raises_a_data_error(data: bytes) -> None:
    with pytest.raises(DataError):
        connect_json.loads(data)


@pytest.mark.parametrize("name", ["empty", "quickstart", "tombstone", "entries-12", "entries-13", "entries-25"])
def test_an_offsets_file_of_java_is_read_and_written_back_to_the_same_bytes(name: str) -> None:
    assert java_serialization.dumps(java_serialization.loads(FILES[name])) == FILES[name]


def test_the_quickstarts_offsets_file_has_174_bytes_and_its_entry() -> None:
    entries: java_serialization.Entries = {b'["local-file-source",{"filename":"test.txt"}]': b'{"position":8}'}
    assert len(FILES["quickstart"]) == 174
    assert java_serialization.loads(FILES["quickstart"]) == entries
    assert java_serialization.dumps(entries) == FILES["quickstart"]


def test_an_array_that_java_wrote_as_a_reference_is_read() -> None:
    assert java_serialization.loads(FILES["shared-value"]) == dict.fromkeys([b'["a",{}]', b'["b",{}]'], b'{"position":1}')


@pytest.mark.parametrize("cut", range(0, 174, 7))
def test_a_truncated_file_is_malformed(cut: int) -> None:
    with pytest.raises(java_serialization.MalformedError):
        java_serialization.loads(FILES["quickstart"][:cut])


@pytest.mark.parametrize("data", [FILES["other-class"], FILES["quickstart"] + b"x", b"\x00" * 200, b"{}"])
def test_other_content_is_malformed(data: bytes) -> None:
    with pytest.raises(java_serialization.MalformedError, match="byte"):
        java_serialization.loads(data)
