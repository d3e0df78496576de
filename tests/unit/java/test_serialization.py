"""Reads and writes files of Java: data/offsets_files.json comes from a Java 17 program that uses ObjectOutputStream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.java import serialization as java_serialization

DATA = Path(__file__).parent / "data"

FILES = {name: bytes.fromhex(data) for name, data in json.loads((DATA / "offsets_files.json").read_text()).items()}


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
def test_a_cut_off_file_is_malformed_wherever_it_ends(cut: int) -> None:
    with pytest.raises(java_serialization.MalformedError):
        java_serialization.loads(FILES["quickstart"][:cut])


@pytest.mark.parametrize("data", [FILES["other-class"], FILES["quickstart"] + b"x", b"\x00" * 200, b"{}"])
def test_other_content_is_malformed(data: bytes) -> None:
    with pytest.raises(java_serialization.MalformedError, match="byte"):
        java_serialization.loads(data)
