"""Identifies files by what was read of them, so that a rotated file is found again under any name. No I/O but on open files.

A path says little about a log: rotation renames it, copies and truncates it, compresses it, or writes over it. Device and inode
say little more, since a new file may get a deleted one's inode. What was read does not change: the checksums of a file's first
bytes (head) and of the bytes before the position (mark) are compared each time before new bytes count as its continuation.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from sluiceway.api import Offset
from sluiceway.errors import ConnectError

HEAD_BYTES = 1024
MARK_BYTES = 256

_FIELDS = ("position", "head_bytes", "head_crc", "mark_bytes", "mark_crc", "device", "inode", "size", "modified")


class Checksum(NamedTuple):
    """The CRC-32 of ``length`` bytes."""

    length: int
    crc: int

    @classmethod
    def of(cls, data: bytes) -> Checksum:
        return cls(len(data), zlib.crc32(data))


NOTHING = Checksum.of(b"")


class Readable(Protocol):
    """A file from which any bytes can be read."""

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes from a position on; fewer only at the end."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a file, and what identifies the file.

    Attributes:
        position: the number of bytes read, after decompression.
        head: the checksum of the first bytes, as many as were read and at most ``HEAD_BYTES``.
        tail: the last bytes before the position, at most ``MARK_BYTES``.
        device: the number of the file's device.
        inode: the file's inode.
        size: the file's size in bytes as far as is known, before decompression.
        modified: when the file was changed last as far as is known, in nanoseconds since the epoch.
    """

    position: int = 0
    head: Checksum = NOTHING
    tail: bytes = b""
    device: int = 0
    inode: int = 0
    size: int = 0
    modified: int = 0

    def after(self, data: bytes, end: int) -> Cursor:
        """Return the cursor after the first ``end`` bytes of ``data``, which begins at this one's position."""
        head = self.head
        if head.length < HEAD_BYTES:
            more = data[: min(end, HEAD_BYTES - head.length)]
            head = Checksum(head.length + len(more), zlib.crc32(more, head.crc))
        tail = data[end - MARK_BYTES : end] if end >= MARK_BYTES else (self.tail + data[:end])[-MARK_BYTES:]
        return replace(self, position=self.position + end, head=head, tail=tail)

    def identity(self) -> Identity:
        return Identity(self.position, self.head, Checksum.of(self.tail), self.device, self.inode, self.size, self.modified)

    def fits(self, file: Readable) -> bool:
        """Return whether a file still has the bytes that were read."""
        if self.tail and file.read_at(self.position - len(self.tail), len(self.tail)) != self.tail:
            return False
        return Checksum.of(file.read_at(0, self.head.length)) == self.head

    def of(self, status: FileStatus) -> Cursor:
        """Return the same position in the file with this status."""
        return replace(self, device=status.device, inode=status.inode, size=status.size, modified=status.modified)


class FileStatus(NamedTuple):
    """The status of a file; ``modified`` is in nanoseconds since the epoch, ``size`` in bytes."""

    device: int
    inode: int
    size: int
    modified: int
    links: int = 1

    def is_file_of(self, cursor: Cursor | Identity) -> bool:
        return (self.device, self.inode) == (cursor.device, cursor.inode)


@dataclass(frozen=True, slots=True)
class Identity:
    """A cursor as it is stored in Kafka, where a checksum stands for the bytes before the position."""

    position: int
    head: Checksum
    mark: Checksum
    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def from_offset(cls, partition: Mapping[str, Any], offset: Offset) -> Identity:
        """Return the identity in a source offset. Raises ConnectError for an offset that no task has stored."""
        values = [offset.get(name, 0) for name in _FIELDS]
        if any(type(each) is not int or each < 0 for each in values):
            raise ConnectError(
                f"The stored offset of {dict(partition)} is {dict(offset)}, which is no position in a file. "
                "Correct it with PATCH /connectors/<name>/offsets, or DELETE it to read the file from its start."
            )
        position, head_bytes, head_crc, mark_bytes, mark_crc, *status = values
        return cls(position, Checksum(head_bytes, head_crc), Checksum(mark_bytes, mark_crc), *status)

    def offset(self) -> dict[str, Any]:
        """Return the source offset to store. Kafka Connect allows no lists in it."""
        status = self.device, self.inode, self.size, self.modified
        return dict(zip(_FIELDS, (self.position, *self.head, *self.mark, *status), strict=True))

    def is_of(self, status: FileStatus) -> bool:
        """Return whether a file has not changed since it was read."""
        return status[:4] == (self.device, self.inode, self.size, self.modified)

    def cursor(self, file: Readable) -> Cursor | None:
        """Return the cursor in a file, None if the file has not the bytes that were read."""
        start = self.position - self.mark.length
        if start < 0 or Checksum.of(file.read_at(0, self.head.length)) != self.head:
            return None
        tail = file.read_at(start, self.mark.length)  # in the order of the file, which may be compressed
        if Checksum.of(tail) != self.mark:
            return None
        return Cursor(self.position, self.head, tail, self.device, self.inode, self.size, self.modified)
