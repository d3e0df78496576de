"""The forms of ``json_forms`` for whole columns: Arrow arrays of raw values without nulls become arrays of JSON text. No I/O.

A form covers the usual values. For all others it raises NotColumnar or one of VALUE_ERRORS; the column is then written value by
value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sluiceway.api import NotColumnar
from sluiceway.columns.text_arrays import data_of, is_plain, joined, number_texts
from sluiceway.connectors.cdc import json_forms
from sluiceway.connectors.cdc.json_forms import (
    Calculated,
    DatetimeText,
    DecimalText,
    JsonForm,
    Micros,
    UnscaledDouble,
    UnscaledText,
    UtcMicros,
    ZonedTimestamp,
)

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    ColumnForm = Callable[[AnyArray], AnyArray]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_FOUR_BYTES = 0xF0  # the first byte of characters that Jackson writes as two escapes
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_LONGEST_BASE64 = 14  # of eight bytes, in quotes
_MICRO_DIGITS = 6
_LARGEST_EXACT_POWER = 22  # of ten, among doubles
_YEAR_1600, _YEAR_10000 = -11_676_096_000_000_000, 253_402_300_800_000_000  # microseconds since the epoch
_WITHOUT_FRACTION, _FRACTION_AT = 19, 20  # characters of YYYY-MM-DD HH:MM:SS, and of what stands before the fraction


def column_form(form: JsonForm | None, *, base64_decimals: bool) -> ColumnForm | None:
    """Return the form of columns that writes what ``form`` writes, or None if there is none."""
    if not base64_decimals and (isinstance(form, DecimalText) or form is json_forms.unscaled_decimal):
        return None
    parameterized = _BY_KIND.get(type(form))
    if parameterized is not None:
        return lambda array: parameterized(array, form)
    return None if form is None else _FORMS.get(form)


def _integers(array: AnyArray) -> AnyArray:
    return array if array.type == pa.utf8() else array.cast(pa.int64()).cast(pa.utf8())


def _parsed_integers(array: AnyArray) -> AnyArray:
    return array.cast(pa.int64()).cast(pa.utf8())


def _unscaled_decimals(array: AnyArray) -> AnyArray:
    return base64_of(array.cast(pa.int64()).to_numpy())


def _quoted(array: AnyArray) -> AnyArray:
    return joined(['"', array, '"'], len(array))


def _texts(array: AnyArray) -> AnyArray:
    if array.type != pa.utf8() or not is_plain(data_of(array), below=_FOUR_BYTES):
        raise NotColumnar
    return _quoted(array)


def _booleans(array: AnyArray) -> AnyArray:
    texts: AnyArray = pc.if_else(pc.equal(array, "t"), "true", "false")
    return texts


def _doubles(array: AnyArray) -> AnyArray:
    numbers = array.cast(pa.float64())
    if not pc.all(pc.is_finite(numbers)).as_py():
        raise NotColumnar
    return number_texts(numbers)


def _decimals(array: AnyArray, scale: int) -> AnyArray:
    """Return the texts of decimals with ``scale`` digits as base64 of their unscaled values, up to 64 bits."""
    if scale:
        if not pc.all(pc.equal(pc.utf8_slice_codeunits(array, -1 - scale, -scale), ".")).as_py():
            raise NotColumnar
        array = pc.replace_substring(array, ".", "", max_replacements=1)
    return base64_of(array.cast(pa.int64()).to_numpy())


def base64_of(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> AnyArray:
    """Return ``json_forms.base64_of`` of 64-bit integers."""
    positive = np.where(numbers < 0, ~numbers, numbers)
    sizes = np.ones(len(numbers), np.int64)
    for size in range(1, 8):
        sizes += positive >= 1 << (8 * size - 1)
    texts = np.zeros((len(numbers), _LONGEST_BASE64), np.uint8)
    for size in np.unique(sizes).tolist():
        chosen = sizes == size
        texts[chosen] = _base64_of_bytes(numbers[chosen], size)
    return pa.array(texts.view(f"S{_LONGEST_BASE64}")[:, 0], pa.binary()).cast(pa.utf8())


def _base64_of_bytes(numbers: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """Return the quoted base64 of the last ``size`` bytes of each number, with zero bytes behind it."""
    groups = (size + 2) // 3
    data = np.zeros((len(numbers), groups * 3), np.uint8)
    for index in range(size):
        data[:, index] = (numbers >> (8 * (size - 1 - index))) & 0xFF
    triples = data.reshape(len(numbers), groups, 3).astype(np.uint32)
    bits = (triples[:, :, 0] << 16) | (triples[:, :, 1] << 8) | triples[:, :, 2]
    digits = _BASE64[np.stack([bits >> 18, bits >> 12 & 63, bits >> 6 & 63, bits & 63], axis=2)].reshape(len(numbers), -1)
    padding = -size % 3
    if padding:
        digits[:, -padding:] = ord("=")
    texts = np.zeros((len(numbers), _LONGEST_BASE64), np.uint8)
    end = 1 + digits.shape[1]
    texts[:, 0] = texts[:, end] = ord('"')
    texts[:, 1:end] = digits
    return texts


def _unscaled_texts(array: AnyArray, scale: int) -> AnyArray:
    numbers = array.cast(pa.int64())
    digits = pc.utf8_lpad(pc.abs_checked(numbers).cast(pa.utf8()), scale + 1, "0")
    sign = pc.if_else(pc.less(numbers, 0), "-", "") if pc.min(numbers).as_py() < 0 else ""
    if not scale:
        return joined(['"', sign, digits, '"'], len(array))
    whole, fraction = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return joined(['"', sign, whole, ".", fraction, '"'], len(array))


def _unscaled_doubles(array: AnyArray, scale: int) -> AnyArray:
    numbers = array.cast(pa.float64())  # raises an error for integers that no double has
    if scale > _LARGEST_EXACT_POWER:
        raise NotColumnar
    return _doubles(pc.divide(numbers, 10.0**scale))  # both are exact, so that the quotient is the nearest double


def _micros(array: AnyArray) -> AnyArray:
    micros: AnyArray = array.cast(pa.timestamp("us")).view(pa.int64())
    return micros


def _zoned_timestamps(array: AnyArray, digits: int) -> AnyArray:
    if not pc.all(pc.and_(pc.ends_with(array, "+00"), pc.equal(pc.utf8_slice_codeunits(array, 10, 11), " "))).as_py():
        raise NotColumnar
    clock = pc.utf8_slice_codeunits(array, 11, -3)
    lengths = pc.add(pc.binary_length(clock), 11)
    if digits and pc.min(lengths).as_py() < _FRACTION_AT + digits:
        clock = pc.if_else(pc.equal(lengths, _WITHOUT_FRACTION), joined([clock, "."], len(clock)), clock)
        clock = pc.utf8_rpad(clock, _FRACTION_AT - 11 + digits, "0")
    return joined(['"', pc.utf8_slice_codeunits(array, 0, 10), "T", clock, 'Z"'], len(array))


def _floored(micros: AnyArray, divisor: int) -> AnyArray:
    numbers: AnyArray = micros.cast(pa.int64())
    if divisor != 1:
        numbers = pa.array(np.floor_divide(numbers.to_numpy(), divisor))
    return numbers.cast(pa.utf8())


def _datetime_texts(array: AnyArray, divisor: int) -> AnyArray:
    micros = _micros(array)
    if pc.min(micros).as_py() < _YEAR_1600:
        raise NotColumnar  # calendars differ, or adjust years of two digits
    return _floored(micros, divisor)


def _utc_texts(array: AnyArray) -> AnyArray:
    if pc.min(_micros(array)).as_py() < 0 or pc.min(pc.binary_length(array)).as_py() < _WITHOUT_FRACTION:
        raise NotColumnar
    clock = pc.utf8_slice_codeunits(array, 11)
    if pc.max(pc.binary_length(clock)).as_py() > _WITHOUT_FRACTION - 11:
        has_fraction = pc.greater(pc.binary_length(clock), _WITHOUT_FRACTION - 11)
        clock = pc.if_else(has_fraction, pc.utf8_rtrim(pc.utf8_rtrim(clock, "0"), "."), clock)
    return joined(['"', pc.utf8_slice_codeunits(array, 0, 10), "T", clock, 'Z"'], len(array))


def _utc_micros(array: AnyArray, digits: int) -> AnyArray:
    micros: AnyArray = array.cast(pa.int64())
    if pc.min(micros).as_py() < _YEAR_1600 or pc.any(pc.equal(micros, 0)).as_py() or pc.max(micros).as_py() >= _YEAR_10000:
        raise NotColumnar
    texts = micros.view(pa.timestamp("us")).cast(pa.utf8())
    clock = pc.utf8_slice_codeunits(texts, 11)
    if digits < _MICRO_DIGITS:
        whole = pc.utf8_slice_codeunits(clock, 0, _WITHOUT_FRACTION - 11)
        fraction = pc.utf8_rpad(pc.utf8_rtrim(pc.utf8_slice_codeunits(clock, _FRACTION_AT - 11), "0"), digits, "0")
        clock = joined([whole, pc.if_else(pc.equal(fraction, ""), "", "."), fraction], len(texts))
    return joined(['"', pc.utf8_slice_codeunits(texts, 0, 10), "T", clock, 'Z"'], len(array))


def _truths(array: AnyArray) -> AnyArray:
    texts: AnyArray = pc.if_else(pc.not_equal(array.cast(pa.int64()), 0), "true", "false")
    return texts


_BY_KIND: dict[type, Callable[[AnyArray, Any], AnyArray]] = {
    DecimalText: lambda array, form: _decimals(array, form.scale),
    UnscaledText: lambda array, form: _unscaled_texts(array, form.scale),
    UnscaledDouble: lambda array, form: _unscaled_doubles(array, form.scale),
    ZonedTimestamp: lambda array, form: _zoned_timestamps(array, form.digits),
    Micros: lambda array, form: _floored(array, form.divisor),
    DatetimeText: lambda array, form: _datetime_texts(array, form.divisor),
    UtcMicros: lambda array, form: _utc_micros(array, form.digits),
}
_FORMS: dict[Any, ColumnForm] = {
    json_forms.verbatim: _integers,
    json_forms.integer: _parsed_integers,
    json_forms.unscaled_decimal: _unscaled_decimals,
    json_forms.text: _texts,
    json_forms.plain_text: _quoted,
    json_forms.boolean_text: _booleans,
    json_forms.truth: _truths,
    json_forms.utc_text: _utc_texts,
    json_forms.double: _doubles,
    Calculated(json_forms.timestamp_micros): lambda array: _floored(_micros(array), 1),
    Calculated(json_forms.timestamp_millis): lambda array: _floored(_micros(array), 1000),
}
"""By the form of single values. Integers, given as text or as numbers, are written as they are."""
