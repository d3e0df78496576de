"""Decodes the parts in which a Java source task returns its records. No I/O.

The records are converted already. The layout of the bytes is in ``Packer.java``.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sluiceway.api import Offset, Partition, SourceRecord
from sluiceway.data import Header

_INT_COLUMNS = 6
_NO_TIMESTAMP = -(1 << 63)
_NUMBER = struct.Struct("<i")

KafkaHeaders = list[tuple[str, "bytes | None"]]


@dataclass(frozen=True)
class PackedPart:
    """Converted records from a part of a polled batch, in columns of equal length.

    ``batch`` is the batch's number, ``size`` the number of records polled, of which this part covers ``start`` to ``end``.
    ``offsets`` has the newest offset of each source partition in the batch before ``end``. ``action`` is COMMIT or ABORT if the
    task ends its transaction after the part. ``failure`` describes why the record at ``end`` is not in the part, and
    ``skipped`` why others between ``start`` and ``end`` are not. Keys, values and headers begin at ``data_start`` of ``data``.
    """

    batch: int
    size: int
    start: int
    end: int
    topics: Sequence[str]
    offsets: Sequence[tuple[Partition, Offset | None]]
    action: str | None
    failure: Mapping[str, Any] | None
    skipped: Sequence[Mapping[str, Any]]
    columns: Sequence[Sequence[int]]
    data: bytes
    data_start: int

    @classmethod
    def of(cls, header: Mapping[str, Any], body: bytes) -> PackedPart:
        """Decode a part from an answer of the Java task."""
        count = header["count"]
        ints = struct.Struct(f"<{count}i")
        columns: list[Sequence[int]] = [ints.unpack_from(body, index * ints.size) for index in range(_INT_COLUMNS)]
        at = _INT_COLUMNS * ints.size
        columns.append(struct.unpack_from(f"<{count}q", body, at))
        return cls(
            header["batch"],
            header["size"],
            header["start"],
            header["end"],
            header["topics"],
            source_offsets(header["offsets"]),
            header["action"],
            header.get("failure"),
            header.get("skipped", ()),
            columns,
            body,
            at + 8 * count,
        )

    def __len__(self) -> int:
        """Return the number of records that were polled, filtered ones included."""
        return self.size

    @property
    def empty(self) -> bool:
        """True if there is no record to produce."""
        return not self.columns[0]

    @property
    def last(self) -> bool:
        """True if the batch ends with this part."""
        return self.end >= self.size

    @property
    def origins(self) -> Sequence[int]:
        """The index in the batch of each record's source."""
        return self.columns[0]

    @property
    def record_topics(self) -> Iterator[str]:
        """The topic of each record."""
        if len(self.topics) == 1:
            return itertools.repeat(self.topics[0], len(self.origins))
        return map(self.topics.__getitem__, self.columns[1])

    @property
    def partitions(self) -> Sequence[int]:
        """The partition of each record, -1 to leave the choice to the producer."""
        return self.columns[2]

    @property
    def timestamps(self) -> Sequence[int]:
        """The timestamp of each record in milliseconds, 0 for the time of sending."""
        times = self.columns[6]
        return [0 if time == _NO_TIMESTAMP else time for time in times] if _NO_TIMESTAMP in times else times

    @cached_property
    def keys(self) -> Sequence[bytes | None]:
        return self._slices[0]

    @cached_property
    def values(self) -> Sequence[bytes | None]:
        return self._slices[1]

    @cached_property
    def headers(self) -> Sequence[KafkaHeaders | None]:
        """The headers of each record, None for none."""
        known: dict[bytes | None, KafkaHeaders | None] = {b"": None, None: None}  # many records of a task have the same
        for each in set(self._slices[2]):
            known.setdefault(each, _headers(each or b""))
        return [known[each] for each in self._slices[2]]

    def record(self, index: int) -> SourceRecord:
        """Return a record on its own, with bytes as its data."""
        partition, timestamp = self.partitions[index], self.timestamps[index]
        return SourceRecord(
            None,
            None,
            self.topics[self.columns[1][index]],
            self.values[index],
            key=self.keys[index],
            kafka_partition=None if partition < 0 else partition,
            timestamp=timestamp or None,
            headers=tuple(Header(name, data, None) for name, data in self.headers[index] or ()),
        )

    @cached_property
    def _slices(self) -> list[Sequence[bytes | None]]:
        """The keys, values and headers, without a loop in Python over the records."""
        lengths, count = self.columns[3:6], len(self.origins)
        used = [column for column in lengths if max(column, default=0) > 0]
        mixed = [0] * (len(used) * count)
        for place, column in enumerate(used):
            mixed[place :: len(used)] = column if min(column) >= 0 else [max(length, 0) for length in column]
        ends = list(itertools.accumulate(mixed, initial=self.data_start))
        pieces = list(map(self.data.__getitem__, map(slice, ends, ends[1:])))
        found: list[Sequence[bytes | None]] = []
        for column in lengths:
            place = sum(max(each, default=0) > 0 for each in lengths[: len(found)])  # of the column among the used ones
            part = pieces[place :: len(used)] if max(column, default=0) > 0 else [b""] * count
            if min(column, default=0) < 0:
                found.append([None if length < 0 else piece for piece, length in zip(part, column, strict=True)])
            else:
                found.append(part)
        return found


def source_offsets(texts: Sequence[tuple[str, str | None]]) -> list[tuple[Partition, Offset | None]]:
    """Decode source partitions and their offsets, which cross as the JSON texts that Connect stores."""
    return [(json.loads(partition), None if offset is None else json.loads(offset)) for partition, offset in texts]


def _headers(data: bytes) -> KafkaHeaders:
    found: KafkaHeaders = []
    at = 0
    while at < len(data):
        name_end = at + 4 + _NUMBER.unpack_from(data, at)[0]
        name = data[at + 4 : name_end].decode()
        length = _NUMBER.unpack_from(data, name_end)[0]
        at = name_end + 4 + max(length, 0)
        found.append((name, None if length < 0 else data[name_end + 4 : at]))
    return found
