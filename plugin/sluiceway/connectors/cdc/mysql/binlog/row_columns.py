"""Decodes the images of many rows at once, into columns. The columnar form of ``row_code``. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sluiceway.api import NotColumnar
from sluiceway.columns.refused_values import VALUE_ERRORS
from sluiceway.columns.text_arrays import data_of, is_plain, values_between
from sluiceway.connectors.cdc.column_rows import RawColumn
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets, decoder, is_utf_8
from sluiceway.connectors.cdc.mysql.binlog.column_storage import charset_of, is_compressed, value_size
from sluiceway.connectors.cdc.mysql.binlog.decimals import decimal_groups
from sluiceway.connectors.cdc.mysql.binlog.row_code import NUMBER_FORMS, RowCode, number_form
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType, MappedColumn
from sluiceway.connectors.cdc.mysql.binlog.temporal import DAY_MICROS, Calendar, Invalid, fraction_bytes, fraction_factor

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.columns.text_arrays import Numbers

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]
    FixedDecoder = Callable[[Bytes], Any]
    """Returns the values, an array of NumPy, of one stored value in each row of a matrix. May raise NotColumnar."""

_ASCII = bytes(range(128))
_MOST_DIGITS = 18  # of decimals in 64 bits


class RowColumns:
    """Decodes the rows of one table map that have all its columns."""

    def __init__(self, columns: Sequence[MappedColumn], charsets: Charsets, calendar: Calendar) -> None:
        code = RowCode(columns, charsets, calendar)
        self._nulls = np.arange((len(columns) + 7) // 8)
        self._columns = [_Column(column, charsets, calendar, code.value_reader(index)) for index, column in enumerate(columns)]

    def decode(self, data: bytes, at: Numbers) -> list[RawColumn]:
        """Return the columns of the images that begin at these positions."""
        content = np.frombuffer(data, np.uint8)
        nulls = content[at[:, None] + self._nulls]
        at = at + len(self._nulls)
        found = []
        for index, column in enumerate(self._columns):
            is_null = (nulls[:, index >> 3] & (1 << (index & 7))) != 0
            values: AnyArray | list[Any]
            if not is_null.any():
                values, at = column.decode(data, content, at)
            elif is_null.all():
                values = pa.nulls(len(at))
            else:
                present = np.flatnonzero(~is_null)
                values, ends = column.decode(data, content, at[present])
                at = at.copy()
                at[present] = ends
                values = _with_nulls(values, is_null)
            found.append(RawColumn(values))
        return found


def _with_nulls(values: AnyArray | list[Any], is_null: Any) -> AnyArray | list[Any]:
    if isinstance(values, list):
        present = iter(values)
        return [None if null else next(present) for null in is_null.tolist()]
    places = np.cumsum(~is_null) - 1
    found: AnyArray = values.take(pa.array(places, mask=is_null))
    return found


class _Column:
    """Decodes the values of one column."""

    def __init__(self, column: MappedColumn, charsets: Charsets, calendar: Calendar, read: Callable[[bytes, int], Any]) -> None:
        self._read = read
        self._size, self._has_length = value_size(column)
        self._fixed = None if self._has_length else _fixed_decoder(column, calendar)
        charset = charset_of(column, charsets)
        self._kind = pa.binary() if charset is None else pa.utf8()
        self._is_utf_8 = charset is None or is_utf_8(charset)
        self._as_stored = column.type != ColumnType.JSON and not is_compressed(column)
        if charset is not None and not self._is_utf_8:
            self._as_stored &= decoder(charset)(_ASCII) == _ASCII.decode()

    def decode(self, data: bytes, content: Bytes, at: Numbers) -> tuple[AnyArray | list[Any], Numbers]:
        """Return the values at these positions, and where they end."""
        begin = at + self._size
        stored = np.lib.stride_tricks.sliding_window_view(content, self._size)[at]
        end = begin + _little(stored) if self._has_length else begin
        try:
            if self._has_length:
                return self._strings(data, begin, end), end
            if self._fixed is not None:
                return pa.array(self._fixed(stored)), end
        except (NotColumnar, *VALUE_ERRORS):
            pass  # some values are unusual
        read = self._read
        return [read(data, each) for each in at.tolist()], end

    def _strings(self, data: bytes, begin: Numbers, end: Numbers) -> AnyArray:
        if not self._as_stored:
            raise NotColumnar
        values = values_between(data, begin, end, self._kind)
        if self._kind == pa.utf8():
            values.validate(full=True)
            if not self._is_utf_8 and not is_plain(data_of(values), below=len(_ASCII)):
                raise NotColumnar
        return values


def _fixed_decoder(column: MappedColumn, calendar: Calendar) -> FixedDecoder | None:
    """Return the decoder of values of fixed size, or None if they are read one by one."""
    type_, metadata = column.type, column.metadata
    if type_ in NUMBER_FORMS:
        return partial(_numbers, np.dtype(f"<{number_form(column)}"))
    if type_ == ColumnType.INT24:
        return _little if column.unsigned else _signed
    if type_ == ColumnType.NEWDECIMAL:
        return partial(_decimals, decimal_groups(metadata >> 8, metadata & 0xFF)) if metadata >> 8 <= _MOST_DIGITS else None
    if type_ == ColumnType.DATETIME2:
        return partial(_datetimes, calendar, fraction_factor(metadata))
    if type_ == ColumnType.TIMESTAMP2:
        return partial(_timestamps, fraction_factor(metadata))
    if type_ == ColumnType.TIME2:
        return partial(_times, fraction_bytes(metadata), fraction_factor(metadata))
    return partial(_dates, calendar) if type_ == ColumnType.DATE else _BY_TYPE.get(type_)


def _numbers(form: np.dtype[Any], stored: Bytes) -> Any:
    numbers = stored.view(form)[:, 0]
    return numbers.astype(np.float64) if form.kind == "f" else numbers


def _little(stored: Bytes) -> Any:
    """Return unsigned integers, the lowest byte first, of up to eight bytes."""
    padded = np.zeros((len(stored), 8), np.uint8)
    padded[:, : stored.shape[1]] = stored
    return _not_above_64_bits(padded.view("<u8")[:, 0])


def _big(stored: Bytes) -> Any:
    """Return unsigned integers, the highest byte first, of up to eight bytes."""
    padded = np.zeros((len(stored), 8), np.uint8)
    padded[:, 8 - stored.shape[1] :] = stored
    return _not_above_64_bits(padded.view(">u8")[:, 0])


def _not_above_64_bits(numbers: Any) -> Any:
    signed = numbers.astype(np.int64)
    if (signed < 0).any():
        raise NotColumnar
    return signed


def _signed(stored: Bytes) -> Any:
    """Return signed integers of three bytes, the lowest first."""
    numbers = _little(stored)
    return np.where(numbers >= 1 << 23, numbers - (1 << 24), numbers)


def _years(stored: Bytes) -> Any:
    numbers = stored[:, 0].astype(np.int64)
    return np.where(numbers == 0, 0, numbers + 1900)


def _decimals(groups: Sequence[tuple[int, int, int]], stored: Bytes) -> Any:
    size = stored.shape[1]
    negative = stored[:, 0] < 0x80
    stored = np.where(negative[:, None], ~stored, stored)
    stored[:, 0] &= 0x7F
    value: Any = np.zeros(len(stored), np.int64)
    for shift, mask, factor in groups:
        end = size - shift // 8
        value = value * factor + _big(stored[:, end - mask.bit_length() // 8 : end])
    return np.where(negative, -value, value)


def _days(calendar: Calendar, keys: Any) -> Any:
    """Return the days of dates packed as in DATETIME2."""
    unique, places = np.unique(keys, return_inverse=True)
    days = [calendar.packed_days(key) for key in unique.tolist()]
    if any(isinstance(each, Invalid) for each in days):
        raise NotColumnar
    return np.array(days, np.int64)[places]


def _dates(calendar: Calendar, stored: Bytes) -> Any:
    packed = _little(stored)
    return _days(calendar, ((packed >> 9) * 13 + (packed >> 5 & 15)) << 5 | packed & 31)


def _datetimes(calendar: Calendar, factor: int, stored: Bytes) -> Any:
    packed = _big(stored[:, :5]) - 0x8000000000
    seconds = (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
    return _days(calendar, packed >> 17) * DAY_MICROS + seconds * 1_000_000 + _big(stored[:, 5:]) * factor


def _timestamps(factor: int, stored: Bytes) -> Any:
    return _big(stored[:, :4]) * 1_000_000 + _big(stored[:, 4:]) * factor


def _times(fraction: int, factor: int, stored: Bytes) -> Any:
    bits = 8 * fraction
    packed = _big(stored) - (0x800000 << bits)
    size = np.abs(packed)
    time = size >> bits
    seconds = (time >> 12 & 1023) * 3600 + (time >> 6 & 63) * 60 + (time & 63)
    return np.sign(packed) * (seconds * 1_000_000 + (size & ((1 << bits) - 1)) * factor)


_BY_TYPE: dict[int, FixedDecoder] = {
    ColumnType.YEAR: _years,
    ColumnType.ENUM: _little,
    ColumnType.SET: _little,
    ColumnType.BIT: _big,
}
