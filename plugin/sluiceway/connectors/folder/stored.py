"""Reads what is stored of files: their own offsets, and the buckets of finished ones. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sluiceway.api import OffsetStorageReader
from sluiceway.connectors.folder.batches import DONE_FIELD
from sluiceway.connectors.folder.finished import BUCKET_FIELD, FinishedFiles, bucket_of
from sluiceway.connectors.folder.identity import Identity
from sluiceway.connectors.folder.parts import source_partition

TAGGED_FIELD = "tagged"
_AT_ONCE = 2000  # offsets


class Stored(NamedTuple):
    """The stored offset of a file, or of a part of one."""

    path: str
    identity: Identity | None = None
    done: bool | None = None
    """Whether all of it was read, None if nothing is stored."""
    tagged: bool = False


def stored_of(reader: OffsetStorageReader, paths: Sequence[str]) -> Iterator[Stored]:
    """Yield the offset of each path."""
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        partitions = [source_partition(path) for path in some]
        for path, partition, offset in zip(some, partitions, reader.offsets(partitions), strict=True):
            if offset is None:
                yield Stored(path)
            else:
                identity, done = Identity.from_offset(partition, offset), offset.get(DONE_FIELD) is True
                yield Stored(path, identity, done, tagged=offset.get(TAGGED_FIELD) is True)


def stored_anywhere(reader: OffsetStorageReader, paths: Sequence[str]) -> Iterator[Stored]:
    """Yield what is stored of each path, be it an offset of its own or in a bucket, also by other tasks."""
    buckets = sorted({bucket_of(path) for path in paths})
    finished = FinishedFiles(0)
    for bucket, offset in zip(buckets, reader.offsets([{BUCKET_FIELD: each} for each in buckets]), strict=True):
        if offset is not None:
            finished.load(bucket, offset)
    for stored in stored_of(reader, paths):
        in_bucket = finished.get(stored.path) if stored.identity is None else None
        yield stored if in_bucket is None else Stored(stored.path, in_bucket, done=True)
