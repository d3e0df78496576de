"""Reads and writes the result file of the verifiable sink: a JSON line for each record, shared by several tasks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from sluiceway.api import TopicPartition
from sluiceway.connectors.verifiable.numbering import NumberedRecord
from sluiceway.errors import ConnectError


class ResultFile:
    """Appends the results of a call all together or not at all. Processes on one machine may append to the same file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raises ConnectError if that fails."""
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConnectError(
                f"Couldn't open the result file '{path}': {error.strerror}. Create its folder, or name another file."
            ) from error

    def append(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Append a line for each result, on the disk when this returns. Raises ConnectError, and then appends no line."""
        lines = b"".join(orjson.dumps(result) + b"\n" for result in results)
        if not lines:
            return
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            size = os.fstat(self._descriptor).st_size
            # A killed process may have left an incomplete line.
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
    """Yield the results in a file, in order, without incomplete lines. A missing file has no results."""
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


def from_file(path: Path) -> Iterator[NumberedRecord]:
    """Yield the records in a verifiable sink's result file, for ``check``."""
    for result in results_in(path):
        yield NumberedRecord(result["task"], result["seqno"], (result["topic"], result["partition"]))


def next_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition in a result file."""
    ends: dict[TopicPartition, int] = {}
    for result in results_in(path):
        partition = TopicPartition(result["topic"], result["partition"])
        ends[partition] = max(ends.get(partition, 0), result["offset"] + 1)
    return ends
