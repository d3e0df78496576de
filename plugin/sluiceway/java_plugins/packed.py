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

from sluiceway.api import Offset, Partition

_INT_COLUMNS = 6
_NO_TIMESTAMP = -(1 << 63)
_NUMBER = struct.Struct("<i")

KafkaHeaders = list[tuple[str, "bytes | None"]]


@dataclass(frozen=True)
class PackedPart:
    """Converted records from a part of a polled batch, in columns of equal length.

    ``batch`` is the batch's number, ``size`` the number of records polled, of which this part covers ``start`` to ``end``.
    ``offsets`` has the newest offset of each source partition in the batch before ``end``. ``action`` is COMMIT or ABORT if the
    task ends its transaction after the part. ``failure`` describes why the record at ``end`` is not in the part.
    """

    batch: int
    size: int
    start: int
    end: int
    topics: Sequence[str]
    offsets: Sequence[tuple[Partition, Offset | None]]
    action: str | None
    failure: Mapping[str, Any] | None
    columns: Sequence[Sequence[int]]
    data: bytes

    @classmethod
    def of(cls, header: Mapping[str, Any], body: bytes) -> PackedPart:
        """Decode a part from an answer of the Java task."""
        count = header["count"]
        ints = struct.Struct(f"<{count}i")
        columns: list[Sequence[int]] = [ints.unpack_from(body, index * ints.size) for index in range(_INT_COLUMNS)]
        at = _INT_COLUMNS * ints.size
        columns.append(struct.unpack_from(f"<{count}q", body, at))
        offsets = [(json.loads(partition), offset and json.loads(offset)) for partition, offset in header["offsets"]]
        return cls(
            header["batch"],
            header["size"],
            header["start"],
            header["end"],
            header["topics"],
            offsets,
            header["action"],
            header.get("failure"),
            columns,
            body[at + 8 * count :],
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
    def _slices(self) -> list[tuple[bytes | None, bytes | None, bytes]]:
        records: list[tuple[bytes | None, bytes | None, bytes]] = []
        data, at = self.data, 0
        for key_length, value_length, header_length in zip(*self.columns[3:6], strict=True):
            middle = at + max(key_length, 0)
            end = middle + max(value_length, 0)
            key = None if key_length < 0 else data[at:middle]
            value = None if value_length < 0 else data[middle:end]
            at = end + header_length
            records.append((key, value, data[end:at]))
        return records

    @cached_property
    def keys(self) -> Sequence[bytes | None]:
        if self._only_values:
            return [None] * len(self.origins)
        return [record[0] for record in self._slices]

    @cached_property
    def values(self) -> Sequence[bytes | None]:
        if self._only_values:
            ends = list(itertools.accumulate(self.columns[4]))
            return list(map(self.data.__getitem__, map(slice, [0, *ends], ends)))
        return [record[1] for record in self._slices]

    @cached_property
    def headers(self) -> Sequence[KafkaHeaders | None]:
        """The headers of each record, None for none."""
        if not any(self.columns[5]):
            return [None] * len(self.origins)
        return [_headers(record[2]) or None for record in self._slices]

    @cached_property
    def _only_values(self) -> bool:
        """True for records with a value but no key and no headers, which need no loop in Python."""
        keys, values, headers = self.columns[3:6]
        return not self.empty and max(keys) < 0 and min(values) >= 0 and not any(headers)


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
