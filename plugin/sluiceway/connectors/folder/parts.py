"""Names the parts of large files, which tasks share. No I/O.

Part ``number`` of a file has the records that begin in its bytes from ``number * size`` on, up to the next part's. To a task,
it is a file of its own, whose path is the file's with the part's number and size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sluiceway.api import Partition
from sluiceway.connectors.folder.identity import FileStatus

FILE_FIELD, PART_FIELD, PART_BYTES_FIELD = "file", "part", "part_bytes"
_SEPARATOR = "\0"  # no path has it


class Part(NamedTuple):
    """A part of a file. ``size`` is in bytes."""

    number: int
    size: int

    @property
    def first(self) -> int:
        """The position of its first byte."""
        return self.number * self.size

    @property
    def end(self) -> int:
        """The position after its last byte, which may be after the file's end."""
        return self.first + self.size

    def has(self, position: int) -> bool:
        return self.first <= position < self.end

    def of(self, size: int) -> int:
        """Return the number of parts of a file with this size."""
        return -(-size // self.size)


def file_of(path: str) -> str:
    """Return the path of a file, or of a part's file."""
    return path.partition(_SEPARATOR)[0]


def part_of(path: str) -> Part | None:
    """Return which part of a file a path is; None for a whole file."""
    _, *fields = path.split(_SEPARATOR)
    return Part(int(fields[0]), int(fields[1])) if fields else None


def parts_of(path: str, size: int, part_bytes: int) -> list[str]:
    """Return the paths of the parts of a file with this size, in order."""
    return [_SEPARATOR.join((path, str(number), str(part_bytes))) for number in range(Part(0, part_bytes).of(size))]


def previous(path: str) -> str | None:
    """Return the path of the part before a part; None for the first one, and for a whole file."""
    part = part_of(path)
    return _SEPARATOR.join((file_of(path), str(part.number - 1), str(part.size))) if part and part.number else None


def source_partition(path: str) -> Partition:
    """Return the source partition of a file, or of a part."""
    part = part_of(path)
    if part is None:
        return {FILE_FIELD: path}
    return {FILE_FIELD: file_of(path), PART_FIELD: part.number, PART_BYTES_FIELD: part.size}


def with_parts(found: Mapping[str, FileStatus], divided: Mapping[str, bool], part_bytes: int) -> dict[str, FileStatus]:
    """Return the files found, with the parts of those that are divided instead of these."""
    paths: dict[str, FileStatus] = {}
    for path, status in found.items():
        each = parts_of(path, status.size, part_bytes) if divided.get(path) else [path]
        paths.update(dict.fromkeys(each, status))
    return paths
