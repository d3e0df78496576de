from __future__ import annotations

import pytest

from sluiceway.api import ExactlyOnceSupport
from sluiceway.connectors.folder.config import options
from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.errors import ConfigError, ConnectError

GOOD = {"paths": "/data/*.csv", "topic": "t", "mode": "files"}
IDENTITY = {
    "position": 5,
    "head_bytes": 5,
    "head_crc": 1,
    "mark_bytes": 5,
    "mark_crc": 1,
    "device": 1,
    "inode": 2,
    "size": 5,
    "modified": 3,
}

BAD = {
    "paths": ["", "data", "s3://bucket/a", "/data/../etc", "/data/a**/b"],
    "mode": ["", "both"],
    "topic": [""],
    "format": ["xml"],
    "encoding": ["utf-16", "none"],
    "complete.when": ["eof"],
    "after.read": ["move", "tag"],
    "after.read.folder": ["/out"],
    "rotated.close.ms": ["100"],
    "csv.delimiter": [";"],
    "multiline.start": ["^x"],
    "record.max.bytes": ["1000"],
    "batch.size": ["0"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_a_bad_value_is_refused_by_the_key_to_change(key: str, value: str) -> None:
    found = FolderSourceConnector.check({**GOOD, key: value})
    wrong = [name for name, each in found.items() if each.errors]
    other = {("after.read", "move"): "after.read.folder"}
    assert wrong == [other.get((key, value), key)]
    with pytest.raises(ConfigError):
        options({**GOOD, key: value})


@pytest.mark.parametrize(
    ("more", "is_good"),
    [
        ({"format": "csv", "csv.delimiter": r"\t", "csv.columns": "a, b"}, True),
        ({"format": "csv", "csv.delimiter": ",", "csv.quote": ","}, False),
        ({"format": "csv", "csv.columns": "a,a"}, False),
        ({"format": "csv", "csv.delimiter": "ab"}, False),
        ({"format": "multiline", "multiline.start": "("}, False),
        ({"format": "json", "encoding": "latin-1"}, False),
        ({"format": "csv", "encoding": "latin-1"}, True),
        ({"mode": "LOGS"}, False),
        ({"mode": "logs", "format": "whole"}, False),
        ({"mode": "logs", "after.read": "delete"}, False),
        ({"mode": "logs", "rotated.close.ms": "5000"}, True),
    ],
)
def test_combinations(more: dict[str, str], *, is_good: bool) -> None:
    found = FolderSourceConnector.check({**GOOD, **more})
    assert any(each.errors for each in found.values()) is not is_good


def test_each_task_has_its_share() -> None:
    connector = FolderSourceConnector()
    connector.start(GOOD)
    assert [each["sluiceway.folder.task"] for each in connector.task_configs(3)] == ["0", "1", "2"]
    assert connector.exactly_once_support(GOOD) is ExactlyOnceSupport.SUPPORTED


def test_a_preview_does_not_start_what_moves_files() -> None:
    assert FolderSourceConnector.start_effects(GOOD) == ""
    assert "moves or deletes" in FolderSourceConnector.start_effects({**GOOD, "after.read": "delete"})


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({}, None),
        ({"file": 5}, None),
        ({"file": "/a"}, {**IDENTITY, "position": -1}),
        ({"file": "/a"}, {**IDENTITY, "head_crc": "5"}),
    ],
)
def test_offsets_that_no_task_can_start_from_are_refused(partition: dict[str, object], offset: dict[str, object] | None) -> None:
    with pytest.raises(ConnectError):
        FolderSourceConnector().alter_offsets(GOOD, [(partition, offset)])


def test_offsets_of_tasks_are_accepted() -> None:
    stored = [({"file": "/a"}, IDENTITY), ({"file": "/b"}, None)]
    assert FolderSourceConnector().alter_offsets(GOOD, stored)
