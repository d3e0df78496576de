"""Finds positions in a file by lines, for users who set offsets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from sluiceway.api import OffsetTarget, OffsetTargetKind
from sluiceway.connectors.file.lines import LineSplitter, last_end
from sluiceway.errors import BadRequestError, ConnectError

_CHUNK = 1 << 16


def find_position(path: Path, target: OffsetTarget, current: int | None) -> int:
    """Return the position in bytes of a target; ``current`` is the stored one. A shift is by lines.

    Raises BadRequestError for a time and for a shift without a stored position, and ConnectError if the file cannot be read here.
    """
    if target.kind is OffsetTargetKind.TIMESTAMP:
        raise BadRequestError(f"The lines of {path} have no timestamps. Choose the beginning, the end, or a number of lines.")
    if target.kind is OffsetTargetKind.EARLIEST:
        return 0
    if target.kind is OffsetTargetKind.SHIFT and current is None:
        raise BadRequestError(
            f"The position in {path} cannot be shifted, because none is stored. Choose the beginning or the end."
        )
    try:
        with path.open("rb") as file:
            if target.kind is OffsetTargetKind.LATEST or current is None:
                return _end(file)
            return _forward(file, current, target.number) if target.number > 0 else _back(file, current, -target.number)
    except OSError as error:
        raise ConnectError(
            f"Cannot read {path} to find the position: {error.strerror}. The file must be on the machine of the REST API."
        ) from error


def _end(file: IO[bytes]) -> int:
    """Return the position after the last complete line."""
    start = file.seek(0, os.SEEK_END)
    tail = b""
    while start > 0:
        size = min(_CHUNK, start)
        start -= size
        file.seek(start)
        tail = file.read(size) + tail[:1]  # a line end of two bytes may be on the border
        end = last_end(tail)
        if end >= 0:
            return start + end
    return 0


def _forward(file: IO[bytes], position: int, lines: int) -> int:
    file.seek(position)
    splitter = LineSplitter(position)
    while chunk := file.read(_CHUNK):
        found = splitter.feed(chunk).split()
        if len(found) >= lines:
            return found[lines - 1][1]
        lines -= len(found)
    return splitter.position


def _back(file: IO[bytes], position: int, lines: int) -> int:
    end = min(position, file.seek(0, os.SEEK_END))
    size = _CHUNK
    while True:
        start = max(0, end - size)
        file.seek(start)
        found = file.read(end - start).splitlines(keepends=True)
        if start == 0 or len(found) > lines:  # the first one may be the rest of a line
            return end - sum(map(len, found[len(found) - lines :] if len(found) > lines else found))
        size *= 2
