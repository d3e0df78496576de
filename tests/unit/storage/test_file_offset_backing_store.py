from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sluiceway.errors import ConnectError, DataError
from sluiceway.java import serialization as java_serialization
from sluiceway.storage.file_offset_backing_store import FileOffsetBackingStore

FILES = json.loads((Path(__file__).parents[1] / "java" / "data" / "offsets_files.json").read_text())
QUICKSTART = bytes.fromhex(FILES["quickstart"])
PARTITION = {"filename": "test.txt"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "connect.offsets"


def opened(path: Path) -> FileOffsetBackingStore:
    store = FileOffsetBackingStore(path)
    store.start()
    return store


def test_offsets_in_kafka_connects_file_are_used(path: Path) -> None:
    path.write_bytes(QUICKSTART)
    store = opened(path)
    assert store.get("local-file-source", [PARTITION, {"filename": "other"}]) == [{"position": 8}, None]
    assert store.all("local-file-source") == [(PARTITION, {"position": 8})]
    assert store.all("other") == []


def test_the_file_has_the_bytes_that_kafka_connect_writes(path: Path) -> None:
    opened(path).put("local-file-source", [(PARTITION, {"position": 8})])
    assert path.read_bytes() == QUICKSTART


def test_a_missing_file_is_an_empty_store_and_is_not_created(path: Path) -> None:
    assert opened(path).get("a", [PARTITION]) == [None]
    assert not path.exists()


def test_entries_of_other_connectors_are_kept_over_a_restart(path: Path) -> None:
    path.write_bytes(QUICKSTART)
    opened(path).put("b", [({"p": 1}, {"o": 2})])
    store = opened(path)
    assert store.get("local-file-source", [PARTITION]) == [{"position": 8}]
    assert store.get("b", [{"p": 1}]) == [{"o": 2}]


def test_the_file_is_only_written_when_something_changed(path: Path) -> None:
    store = opened(path)
    store.put("a", [(PARTITION, {"position": 1})])
    os.utime(path, (1, 1))
    first = path.stat().st_ino
    store.put("a", [(PARTITION, {"position": 1})])
    assert (path.stat().st_ino, path.stat().st_mtime) == (first, 1)
    store.put("a", [(PARTITION, {"position": 2})])
    assert path.stat().st_mtime > 1


def test_the_file_is_replaced_and_nothing_is_left_beside_it(path: Path) -> None:
    path.write_bytes(QUICKSTART)
    path.chmod(0o640)
    before = path.open("rb")
    opened(path).put("a", [(PARTITION, {"position": 1})])
    with before:
        assert before.read() == QUICKSTART  # whoever had it open still has the whole old file
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_deleted_offset_reads_as_none_and_stays_as_connects_null_entry(path: Path) -> None:
    path.write_bytes(QUICKSTART)
    store = opened(path)
    store.put("local-file-source", [(PARTITION, None)])
    assert store.get("local-file-source", [PARTITION]) == [None]
    assert store.all("local-file-source") == []
    assert path.read_bytes() == bytes.fromhex(FILES["tombstone"])


@pytest.mark.parametrize("content", [b"", b"{}", QUICKSTART[:-1], QUICKSTART[:100]])
def test_a_damaged_file_is_an_error_naming_it_and_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ConnectError, match=str(path)):
        opened(path)
    assert path.read_bytes() == content


def test_a_failed_write_keeps_the_old_file_and_the_old_offset(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(QUICKSTART)
    store = opened(path)

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConnectError, match=rf"{path}.*No space left"):
        store.put("local-file-source", [(PARTITION, {"position": 9})])
    assert path.read_bytes() == QUICKSTART
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert store.get("local-file-source", [PARTITION]) == [{"position": 8}]


def test_an_offset_that_cannot_be_read_is_an_error_naming_key_and_file(path: Path) -> None:
    path.write_bytes(java_serialization.dumps({b'["a",{"p":1}]': b"rubbish"}))
    with pytest.raises(DataError, match=r'\["a",{"p":1}\].*connect.offsets'):
        opened(path).get("a", [{"p": 1}])
