"""Remembers the files that were read to their end: in a few bytes each, and in a few offsets for all.

A file that has just been finished has an offset of its own. From time to time those are replaced by the offsets of buckets, which
have many files each: their source partition is ``{"finished": number}``.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import time
from collections.abc import Collection

from sluiceway.api import Offset, Partition
from sluiceway.connectors.folder.identity import HEAD_BYTES, MARK_BYTES, Checksum, FileStatus, Identity
from sluiceway.connectors.folder.parts import source_partition
from sluiceway.errors import ConnectError

BUCKETS = 64
BUCKET_FIELD = "finished"
_FILES_FIELD = "files"
_KEY = _POSITION = struct.Struct(">Q")
_STATUS = struct.Struct(">QQQQ")
_ENTRY = struct.Struct(">QQQQQIII")  # position, device, inode, size, modified, CRCs of head and mark, when it was finished
_FEWEST_NEW = 1000
_NEW_SHARE = 0.1


def bucket_of(path: str) -> int:
    """Return the bucket of a file. All files of a bucket belong to one task."""
    return key_of(path) % BUCKETS


def key_of(path: str) -> int:
    """Return what stands for a file where there may be many: a hash of its path, of 8 bytes."""
    return int.from_bytes(hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=_KEY.size).digest(), "big")


class FinishedFiles:
    """The files that are finished. ``forget_seconds`` is how long files that are gone are remembered.

    100,000 files take about 17 MB.
    """

    def __init__(self, forget_seconds: float) -> None:
        self._forget_seconds = forget_seconds
        self._entries: dict[int, bytes] = {}
        self._new: dict[str, None] = {}  # paths that have an offset of their own, in order

    def __len__(self) -> int:
        return len(self._entries)

    def load(self, bucket: int, offset: Offset) -> None:
        """Add the files of a stored bucket. Raises ConnectError."""
        try:
            data = base64.b85decode(str(offset[_FILES_FIELD]))
            size = _KEY.size + _ENTRY.size
            if len(data) % size:
                raise ValueError(f"it has {len(data)} bytes")
            for start in range(0, len(data), size):
                (key,) = _KEY.unpack_from(data, start)
                self._entries[key] = data[start + _KEY.size : start + size]
        except (KeyError, ValueError) as error:
            raise ConnectError(
                f"The stored offset of {{'{BUCKET_FIELD}': {bucket}}} cannot be read ({error}). DELETE it to read those of "
                "its files again that are still there."
            ) from error

    def add(self, path: str, identity: Identity) -> None:
        """Add a file, whose offset is stored."""
        status = identity.device, identity.inode, identity.size, identity.modified
        self._entries[key_of(path)] = _ENTRY.pack(
            identity.position, *status, identity.head.crc, identity.mark.crc, int(time.time())
        )
        self._new[path] = None

    def get(self, path: str) -> Identity | None:
        """Return what a file was when it was finished, None if it is not."""
        entry = self._entries.get(key_of(path))
        if entry is None:
            return None
        position, *status, head, mark, _ = _ENTRY.unpack(entry)
        return Identity(position, Checksum(min(position, HEAD_BYTES), head), Checksum(min(position, MARK_BYTES), mark), *status)

    def has(self, key: int, status: FileStatus) -> bool:
        """Return whether the file of a key is finished and has not changed since."""
        entry = self._entries.get(key)
        return entry is not None and _STATUS.unpack_from(entry, _POSITION.size) == status[:4]

    def read_again(self, path: str) -> None:
        """Keep the offset of a file that is read on, which is that of its position from now on."""
        self._new.pop(path, None)

    def discard(self, path: str) -> None:
        """Forget a file, because it is read again."""
        self._entries.pop(key_of(path), None)
        self._new.pop(path, None)

    def folded(self, present: Collection[int], unhandled: Collection[str] = ()) -> list[tuple[Partition, Offset | None]]:
        """Return the offsets of buckets that replace those of single files, and None for these; nothing if they are few.

        Files whose keys are not ``present`` are forgotten after a while. Those that are ``unhandled`` keep their own offsets.
        """
        fewest = max(_FEWEST_NEW, _NEW_SHARE * len(self._entries))
        new = [path for path in self._new if path not in unhandled] if len(self._new) >= fewest else []
        if len(new) < fewest:
            return []
        oldest = time.time() - self._forget_seconds
        for key in [key for key, entry in self._entries.items() if key not in present and _finished_at(entry) < oldest]:
            del self._entries[key]
        packed: dict[int, list[bytes]] = {bucket_of(path): [] for path in new}
        single = {key_of(path) for path in unhandled}
        for key, entry in self._entries.items():
            if key % BUCKETS in packed and key not in single:
                packed[key % BUCKETS].append(_KEY.pack(key) + entry)
        stored: list[tuple[Partition, Offset | None]] = [
            ({BUCKET_FIELD: bucket}, {_FILES_FIELD: base64.b85encode(b"".join(entries)).decode()})
            for bucket, entries in packed.items()
        ]
        stored += [(source_partition(path), None) for path in new]
        self._new = dict.fromkeys(path for path in self._new if path in unhandled)
        return stored


def _finished_at(entry: bytes) -> int:
    return int(_ENTRY.unpack(entry)[-1])
