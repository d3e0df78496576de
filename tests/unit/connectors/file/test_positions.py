"""Positions in a file, found by lines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sluiceway.api import OffsetTarget, OffsetTargetKind
from sluiceway.connectors.file import positions
from sluiceway.connectors.file.positions import find_position
from sluiceway.connectors.file.source import FileStreamSourceConnector
from sluiceway.errors import BadRequestError, ConnectError

EARLIEST, LATEST, TIMESTAMP = map(OffsetTarget, list(OffsetTargetKind)[:3])


def shift(lines: int) -> OffsetTarget:
    return OffsetTarget(OffsetTargetKind.SHIFT, lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines"


@pytest.mark.parametrize(
    ("content", "current", "target", "position"),
    [
        (b"a\nbb\nccc\n", None, EARLIEST, 0),
        (b"a\nbb\nccc\n", None, LATEST, 9),
        (b"a\nbb\nccc", None, LATEST, 5),  # the last line is not complete yet
        (b"", None, LATEST, 0),
        (b"abc", None, LATEST, 0),
        (b"a\r\nb\r", None, LATEST, 3),  # a newline may follow
        (b"a\nbb\nccc\n", 2, shift(1), 5),
        (b"a\nbb\nccc\n", 2, shift(9), 9),
        (b"a\nbb\nccc", 2, shift(9), 5),
        (b"a\nbb\nccc\n", 5, shift(-1), 2),
        (b"a\nbb\nccc\n", 5, shift(-2), 0),
        (b"a\nbb\nccc\n", 5, shift(-9), 0),
        (b"a\nbb\nccc\n", 99, shift(-1), 5),  # the file is shorter than the position
        (b"a\r\nbb\rccc\n", 10, shift(-2), 3),
        (b"a\nbb\n", 2, shift(0), 2),
    ],
)
def test_positions_are_those_after_complete_lines(
    path: Path, content: bytes, current: int | None, target: OffsetTarget, position: int
) -> None:
    path.write_bytes(content)
    assert find_position(path, target, current) == position


def test_lines_are_found_across_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "_CHUNK", 7)
    generator = random.Random(5)  # noqa: S311 (no secret)
    lines = [b"x" * generator.randrange(12) + generator.choice([b"\n", b"\r\n"]) for _ in range(60)]
    path.write_bytes(b"".join(lines) + b"rest")
    ends = [sum(map(len, lines[:count])) for count in range(61)]
    assert find_position(path, LATEST, None) == ends[60]
    for at in range(61):
        for lines_on in (-70, -3, -1, 0, 1, 3, 70):
            assert find_position(path, shift(lines_on), ends[at]) == ends[min(max(at + lines_on, 0), 60)], (at, lines_on)


def test_what_a_file_does_not_have_is_refused(path: Path) -> None:
    path.write_bytes(b"a\n")
    with pytest.raises(BadRequestError, match="have no timestamps"):
        find_position(path, TIMESTAMP, 0)
    with pytest.raises(BadRequestError, match="none is stored"):
        find_position(path, shift(1), None)
    path.unlink()
    with pytest.raises(ConnectError, match="machine of the REST API"):
        find_position(path, LATEST, None)


def test_the_connector_finds_the_offset_of_its_file(path: Path) -> None:
    path.write_bytes(b"a\nbb\n")
    connector, config = FileStreamSourceConnector(), {"file": str(path), "topic": "t"}
    partition = {"filename": str(path)}
    assert connector.find_offsets(config, LATEST, []) == [(partition, {"position": 5})]
    stored = [({"filename": "/other"}, {"position": 0}), (partition, {"position": 5})]
    assert connector.find_offsets(config, shift(-1), stored) == [(partition, {"position": 2})]
    with pytest.raises(BadRequestError, match="standard input"):
        connector.find_offsets({"topic": "t"}, LATEST, [])
