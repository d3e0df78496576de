"""Partitioners by time. No I/O."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import math
from typing import TYPE_CHECKING, Any

from sluiceway.api import SinkRecord
from sluiceway.api.columns import ColumnBatch, NotColumnar, RowFormReason
from sluiceway.connectors.files.partitioners.base import (
    EncodedColumns,
    Partitioner,
    nested_column,
    nested_value,
    struct_or_map,
)
from sluiceway.connectors.files.partitioners.path_format import path_formatter
from sluiceway.data import Type
from sluiceway.data.field_time import millis_in, parsed_millis
from sluiceway.data.logical import TIMESTAMP
from sluiceway.errors import DataError
from sluiceway.java.dates.calendar_fields import offset_of_local, offset_of_utc

if TYPE_CHECKING:
    import numpy as np

_CACHE_SIZE = 4096


class TimestampExtractor(enum.Enum):
    """The source of a record's time."""

    WALLCLOCK = "Wallclock"
    RECORD = "Record"
    RECORD_FIELD = "RecordField"


class TimeBasedPartitioner(Partitioner):
    """Writes the time of a record, rounded down to a duration in a time zone and formatted by a pattern of Joda-Time."""

    def __init__(
        self,
        duration: int,
        path_format: str,
        zone: dt.tzinfo,
        extractor: TimestampExtractor = TimestampExtractor.WALLCLOCK,
        field: str = "timestamp",
        *,
        replace_nulls: bool = True,
    ) -> None:
        """Take a duration in milliseconds; ``replace_nulls`` is ``replace.null.with.default``.

        Raises ValueError for an invalid pattern.
        """
        self._duration = duration
        self._zone = zone
        self._extractor = extractor
        self._field = field
        self._replace_nulls = replace_nulls
        self._formatter = path_formatter(path_format, zone)
        self._step = math.gcd(duration, 1000)  # offsets of time zones are whole seconds
        self._folder = functools.lru_cache(_CACHE_SIZE)(self._format)

    @property
    def by_record_time(self) -> bool:
        return self._extractor is not TimestampExtractor.WALLCLOCK

    def encode(self, record: SinkRecord, now: int) -> str:
        return self.folder(self.time_of(record, now))

    def encode_columns(self, batch: ColumnBatch, now: int) -> EncodedColumns:
        import numpy as np

        times = self.times_of(batch, now)
        if times is None:
            return EncodedColumns([self.folder(now)])
        steps, inverse = np.unique(times // self._step, return_inverse=True)
        names = [self._folder(int(step)) for step in steps]
        if len(set(names)) == 1:
            return EncodedColumns(names[:1])
        distinct = list(dict.fromkeys(names))
        position = {name: index for index, name in enumerate(distinct)}
        return EncodedColumns(distinct, np.array([position[name] for name in names])[inverse])

    def time_of(self, record: SinkRecord, now: int) -> int:
        if self._extractor is TimestampExtractor.WALLCLOCK:
            return now
        if self._extractor is TimestampExtractor.RECORD:
            if record.timestamp is None:
                raise DataError("The record has no timestamp, by which files are partitioned. Use another timestamp.extractor.")
            return record.timestamp
        return millis_in(nested_value(struct_or_map(record), self._field, self._replace_nulls), self._field)

    def times_of(self, batch: ColumnBatch, now: int) -> np.ndarray[Any, Any] | None:
        if self._extractor is TimestampExtractor.WALLCLOCK:
            return None
        if self._extractor is TimestampExtractor.RECORD:
            if batch.timestamps is None or batch.timestamps.null_count:
                raise NotColumnar("records without a timestamp")
            return batch.timestamps.to_numpy(zero_copy_only=False)
        return _field_times(batch, self._field)

    def folder(self, millis: int) -> str:
        """Return the folder of a time."""
        return self._folder(millis // self._step)

    def _format(self, step: int) -> str:
        millis = step * self._step
        local = millis + offset_of_utc(self._zone, millis)
        start = local // self._duration * self._duration
        return self._formatter.format(start - offset_of_local(self._zone, start))


def _field_times(batch: ColumnBatch, field: str) -> np.ndarray[Any, Any]:
    import numpy as np
    import pyarrow as pa

    schema, array = nested_column(batch, field)
    if schema.name == TIMESTAMP or (schema.name is None and schema.type in (Type.INT32, Type.INT64)):
        numbers = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return np.asarray(numbers)
    if schema.type is Type.STRING:
        encoded = array.dictionary_encode()
        try:
            parsed = [parsed_millis(str(text), field) for text in encoded.dictionary.to_pylist()]
        except DataError as error:
            raise NotColumnar(str(error), RowFormReason.ERROR, field=field) from error
        times: np.ndarray[Any, Any] = np.array(parsed, dtype=np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
        return times
    raise NotColumnar(f"times of {schema}", RowFormReason.SCHEMA, field=field)
