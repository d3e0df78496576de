"""Records of Kinesis as records of Kafka. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sluiceway.api import SourceRecord
from sluiceway.connectors.aws.aggregation import UserRecord, user_records
from sluiceway.connectors.aws.kinesis_options import VALUES, KinesisSourceOptions
from sluiceway.connectors.aws.kinesis_shards import Position, partition_of
from sluiceway.data import BYTES_SCHEMA, INT64_SCHEMA, OPTIONAL_BYTES_SCHEMA, STRING_SCHEMA, Header, Schema
from sluiceway.errors import DataError

SHARD_HEADER, SEQUENCE_HEADER = "kinesis.shard", "kinesis.sequence"
SUBSEQUENCE_HEADER, HASH_KEY_HEADER = "kinesis.subsequence", "kinesis.hash.key"


class Taken(NamedTuple):
    """A record and the position behind it, and why it cannot be read if it cannot."""

    record: SourceRecord
    position: Position
    error: DataError | None = None


class Records:
    """Makes records of those of a shard."""

    def __init__(self, options: KinesisSourceOptions, shard: str) -> None:
        self._options = options
        self._shard = shard
        self._partition = partition_of(options.stream, shard)

    def records(self, found: Mapping[str, Any], before: Position) -> Iterator[Taken]:
        """Yield the records of one of GetRecords that are behind a position: several if it is an aggregated one."""
        sequence, data = str(found["SequenceNumber"]), bytes(found["Data"])
        arrival = int(found["ApproximateArrivalTimestamp"].timestamp() * 1000)
        done = -1
        if sequence == before.sequence:
            if before.subsequence is None:
                return
            done = before.subsequence
        whole = Position(sequence, read=arrival)
        try:
            parts = user_records(data)
        except DataError as error:
            yield self._bad(found["PartitionKey"], data, whole, error)
            return
        if parts is None:
            yield self._taken(UserRecord(found["PartitionKey"], None, data), whole, None)
            return
        for number, part in enumerate(parts):
            if number > done:
                is_last = number == len(parts) - 1
                yield self._taken(part, whole if is_last else Position(sequence, number, read=arrival), number)

    def _taken(self, part: UserRecord, position: Position, number: int | None) -> Taken:
        value: bytes | str = part.data
        if not self._options.as_bytes:
            try:
                value = part.data.decode()
            except UnicodeDecodeError as error:
                what = f"Record {position.sequence} of shard {self._shard}"
                return self._bad(part.key, part.data, position, DataError(f"{what} is not UTF-8 ({error}). Set {VALUES}=bytes."))
        schema = BYTES_SCHEMA if self._options.as_bytes else STRING_SCHEMA
        return Taken(self._made(value, schema, part, position, number), position)

    def _bad(self, key: str, data: bytes, position: Position, error: DataError) -> Taken:
        return Taken(self._made(data, OPTIONAL_BYTES_SCHEMA, UserRecord(key, None, data), position, None), position, error)

    def _made(self, value: Any, schema: Schema, part: UserRecord, position: Position, number: int | None) -> SourceRecord:
        headers: list[Header] = []
        if self._options.headers:
            headers = [
                Header(SHARD_HEADER, self._shard, STRING_SCHEMA),
                Header(SEQUENCE_HEADER, position.sequence, STRING_SCHEMA),
            ]
            if number is not None:
                headers.append(Header(SUBSEQUENCE_HEADER, number, INT64_SCHEMA))
            if part.hash_key is not None:
                headers.append(Header(HASH_KEY_HEADER, part.hash_key, STRING_SCHEMA))
        return SourceRecord(
            self._partition,
            position.to_offset(),
            self._options.topic,
            value,
            schema,
            part.key,
            STRING_SCHEMA,
            timestamp=position.read,
            headers=tuple(headers),
        )
