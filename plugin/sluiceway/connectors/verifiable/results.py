"""The sink's results: one JSON line for each record that arrived, in a file that several tasks may share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from sluiceway.api import TopicPartition
from sluiceway.connectors.verifiable.numbering import Seen
from sluiceway.errors import ConnectError


class ResultFile:
    """Appends lines, all of a call or none. Several processes on one machine may append to the same file."""

    def __init__(self, path: Path) -> None:
        """Open the file, making it if needed. Raises ConnectError where that cannot be done."""
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConnectError(
                f"Couldn't open the result file '{path}': {error.strerror}. Make its folder, or name another file."
            ) from error

    def append(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Append a line for each result; they are on the disk when this returns. Raises ConnectError; then none of them is."""
        lines = b"".join(orjson.dumps(result) + b"\n" for result in results)
        if not lines:
            return
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            size = os.fstat(self._descriptor).st_size
            # A writer that was killed may have left half a line.
            torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
            try:
                self._write(b"\n" + lines if torn else lines)
            except OSError as error:
                os.ftruncate(self._descriptor, size)
                raise ConnectError(f"Couldn't write to the result file '{self._path}': {error.strerror}.") from error
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        os.fsync(self._descriptor)


def results_in(path: Path) -> Iterator[dict[str, Any]]:
    """Return the results in a file, in order; half a line that a killed writer left is none. No file is no results."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                result = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(result, dict):
                yield result


def from_file(path: Path) -> Iterator[Seen]:
    """Return what a verifiable sink wrote to its file, for ``check``."""
    for result in results_in(path):
        yield Seen(result["task"], result["seqno"], (result["topic"], result["partition"]))


def next_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offset behind the last record of each partition in a file."""
    ends: dict[TopicPartition, int] = {}
    for result in results_in(path):
        place = TopicPartition(result["topic"], result["partition"])
        ends[place] = max(ends.get(place, 0), result["offset"] + 1)
    return ends
