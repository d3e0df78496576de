"""The forms in which columns are written as JSON, as expressions for generated code. No I/O.

An expression turns a raw value that is not None into JSON text. It covers the usual values. For all others it raises one of
``UNUSUAL``; the record is then made of structs, which are the reference.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from sluiceway.api import JsonLayout
from sluiceway.connectors.cdc.temporal import DAY_MICROS, days_from_civil, fixed_fraction, iso_timestamp
from sluiceway.data.generated import Code
from sluiceway.data.schema import FLOAT64_SCHEMA
from sluiceway.errors import DataError

UNUSUAL = (ArithmeticError, AttributeError, DataError, LookupError, TypeError, ValueError)
_PLAIN = frozenset((str, int, float, type(None)))


def is_unusual(error: BaseException, *rows: Sequence[Any] | None) -> bool:
    """Tell whether an expression's error, one of ``UNUSUAL``, comes from the raw values of rows.

    An expression covers text and numbers: a wrong type or attribute among these alone is a fault of its own.
    """
    if not isinstance(error, AttributeError | TypeError):
        return True
    return any(type(value) not in _PLAIN for row in rows for value in row or ())


quote: Callable[[str], str] = encode_basestring
"""Returns a string in quotes, with the escapes that JSON demands. Raises TypeError for anything else."""

_MOST_REMEMBERED = 10_000
_TIMESTAMP_CHARACTERS = 19  # without the fraction
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_MINUTE = re.compile(r"(\d\d):(\d\d):", re.ASCII)

_to_base64 = binascii.b2a_base64


class JsonCode(Code):
    """A namespace of generated functions that write JSON with one layout."""

    def __init__(self, layout: JsonLayout, **names: Any) -> None:
        super().__init__(quote=quote, **names)
        self.layout = layout


JsonForm = Callable[[JsonCode, str], "str | None"]
"""Returns the expression for a variable, or None if there is none in this layout."""


class Memo(dict[Any, Any]):
    """Remembers a function's results. For values of which there are few."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Any:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        value = self[key] = self._function(key)
        return value


def verbatim(_code: JsonCode, value: str) -> str:
    """Write numbers, and text that is a JSON number, as they are."""
    return value


def text(_code: JsonCode, value: str) -> str:
    """Write a string."""
    return f"quote({value})"


def plain_text(_code: JsonCode, value: str) -> str:
    """Write a string of characters that need no escapes."""
    return f"""f'"{{{value}}}"'"""


def boolean_text(_code: JsonCode, value: str) -> str:
    """Write t as true, everything else as false."""
    return f"'true' if {value} == 't' else 'false'"


def truth(_code: JsonCode, value: str) -> str:
    """Write a number as a boolean."""
    return f"'true' if int({value}) else 'false'"


def integer(_code: JsonCode, value: str) -> str:
    """Write the text of an integer, which may have zeros before it."""
    return f"int({value})"


@dataclass(frozen=True, slots=True)
class Calculated:
    """Writes what a function returns, an integer or JSON text."""

    convert: Callable[[Any], Any]

    def __call__(self, code: JsonCode, value: str) -> str:
        return f"{code.bind(self.convert)}({value})"


@dataclass(frozen=True, slots=True)
class Remembered:
    """Writes what a function returns, which is remembered."""

    to_json: Callable[[Any], Any]

    def __call__(self, code: JsonCode, value: str) -> str:
        return f"{code.bind(Memo(self.to_json))}[{value}]"


def double(code: JsonCode, value: str) -> str:
    """Write a number, or its text, as a double."""
    exact = code.layout.text(FLOAT64_SCHEMA)

    def write(raw: Any) -> str:
        number = float(raw)
        return repr(number) if 0.001 <= number < 10_000_000.0 else exact(number)

    return f"{code.bind(write)}({value})"


def base64_of(number: int) -> str:
    """Return a number's two's complement form in base64, in quotes."""
    size = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return f'"{_to_base64(number.to_bytes(size, "big", signed=True), newline=False).decode()}"'


@dataclass(frozen=True, slots=True)
class DecimalText:
    """Writes the text of decimals that have exactly ``scale`` digits after the point."""

    scale: int

    def __call__(self, code: JsonCode, value: str) -> str | None:
        return f"{code.bind(self._write)}({value})" if code.layout.base64_decimals else None

    def _write(self, raw: str) -> str:
        if self.scale:
            if raw[-1 - self.scale] != ".":
                raise ValueError(raw)
            raw = raw.replace(".", "", 1)
        return base64_of(int(raw))


def unscaled_decimal(code: JsonCode, value: str) -> str | None:
    """Write decimals that are given as their unscaled value."""
    return f"{code.bind(base64_of)}({value})" if code.layout.base64_decimals else None


def decimal_digits(unscaled: int, scale: int) -> str:
    """Return the digits of a decimal, of which ``scale`` are behind the point."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text


@dataclass(frozen=True, slots=True)
class UnscaledText:
    """Writes decimals that are given as their unscaled value, as strings with all digits of their scale."""

    scale: int

    def __call__(self, code: JsonCode, value: str) -> str:
        return f"{code.bind(self._write)}({value})"

    def _write(self, unscaled: int) -> str:
        return f'"{decimal_digits(unscaled, self.scale)}"'


@dataclass(frozen=True, slots=True)
class UnscaledDouble:
    """Writes decimals that are given as their unscaled value, as the nearest doubles."""

    scale: int

    def __call__(self, code: JsonCode, value: str) -> str:
        return double(code, f"{code.bind(self._number)}({value})")

    def _number(self, unscaled: int) -> float:
        return float(decimal_digits(unscaled, self.scale))


def _variable_decimal(raw: str) -> str:
    if "." not in raw:
        return f'{{"scale":0,"value":{base64_of(int(raw))}}}'
    raw = raw.rstrip("0")
    number = int(raw.replace(".", "", 1))
    scale = len(raw) - raw.index(".") - 1 if number else 0
    return f'{{"scale":{scale},"value":{base64_of(number)}}}'


variable_decimal_text = Calculated(_variable_decimal)
"""Writes the text of decimals as VariableScaleDecimal, without zeros at the end."""


def hex_as_base64(code: JsonCode, value: str) -> str:
    r"""Write bytes given in hexadecimal form after ``\x``."""
    return f"""f'"{{{code.bind(_base64_of_hex)}({value})}}"'"""


def _base64_of_hex(raw: str) -> str:
    return _to_base64(bytes.fromhex(raw[2:]), newline=False).decode()


def bytes_as_base64(raw: bytes) -> str:
    """Return bytes in base64, in quotes."""
    return f'"{_to_base64(raw, newline=False).decode()}"'


def _day_micros(date: str) -> int:
    match = _DATE.fullmatch(date)
    if match is None:
        raise ValueError(date)
    year, month, day = map(int, match.groups())
    return days_from_civil(year, month, day) * DAY_MICROS


def _minute_micros(clock: str) -> int:
    match = _MINUTE.fullmatch(clock.removeprefix(" "))
    if match is None:
        raise ValueError(clock)
    return (int(match[1]) * 60 + int(match[2])) * 60_000_000


_DAYS, _MINUTES = Memo(_day_micros), Memo(_minute_micros)


def clock_micros(raw: str) -> int:
    """Return the microseconds of ``HH:MM:SS[.ffffff]``. Raises ValueError for another form."""
    micros: int = _MINUTES[raw[:6]] + int(raw[6:8] + raw[9:].ljust(6, "0"))
    return micros


def timestamp_micros(raw: str) -> int:
    """Return the microseconds since the epoch of ``YYYY-MM-DD HH:MM:SS[.ffffff]``. Raises ValueError for another form."""
    micros: int = _DAYS[raw[:10]] + _MINUTES[raw[10:17]] + int(raw[17:19] + raw[20:].ljust(6, "0"))
    return micros


def timestamp_millis(raw: str) -> int:
    """Return the milliseconds of ``timestamp_micros``, rounded down."""
    return timestamp_micros(raw) // 1000


@dataclass(frozen=True, slots=True)
class ZonedTimestamp:
    """Writes ``YYYY-MM-DD HH:MM:SS[.ffffff]+00`` as a timestamp in UTC with at least so many digits of a second."""

    digits: int

    def __call__(self, code: JsonCode, value: str) -> str:
        return f"{code.bind(self._write)}({value})"

    def _write(self, raw: str) -> str:
        if raw[10] != " " or raw[-3:] != "+00":
            raise ValueError(raw)
        fraction = raw[20:-3]
        if self.digits or fraction:
            return f'"{raw[:10]}T{raw[11:19]}.{fraction.ljust(self.digits, "0")}Z"'
        return f'"{raw[:10]}T{raw[11:19]}Z"'


def exact_int(raw: Any) -> int:
    """Return an integer; raise ValueError for anything else, such as an invalid date."""
    if type(raw) is not int:
        raise ValueError(raw)
    return raw


@dataclass(frozen=True, slots=True)
class Micros:
    """Writes microseconds as a number of units of ``divisor`` microseconds, rounded down."""

    divisor: int

    def __call__(self, code: JsonCode, value: str) -> str:
        return f"{code.bind(self._number)}({value})"

    def _number(self, micros: Any) -> int:
        return exact_int(micros) // self.divisor


@dataclass(frozen=True, slots=True)
class DatetimeText:
    """Writes ``YYYY-MM-DD HH:MM:SS[.ffffff]`` as a number of units of ``divisor`` microseconds since the epoch, rounded down.

    ``parse`` returns the microseconds, or something else for what is no date.
    """

    divisor: int
    parse: Callable[[str], Any]

    def __call__(self, code: JsonCode, value: str) -> str:
        return f"{code.bind(self._number)}({value})"

    def _number(self, text: str) -> int:
        return exact_int(self.parse(text)) // self.divisor


@dataclass(frozen=True, slots=True)
class UtcMicros:
    """Writes microseconds since the epoch, not 0, as a timestamp in UTC with at least so many digits of a second."""

    digits: int

    def __call__(self, code: JsonCode, value: str) -> str:
        minutes = Memo(_minute_text)

        def write(micros: int) -> str:
            minute, rest = divmod(micros, 60_000_000)
            second, fraction = divmod(rest, 1_000_000)
            if not micros:
                raise ValueError(micros)
            shown = fixed_fraction(fraction, self.digits) if fraction or self.digits else ""
            return f'"{minutes[minute]}{second:02d}{shown}Z"'

        return f"{code.bind(write)}({value})"


def utc_text(code: JsonCode, value: str) -> str:
    """Write ``YYYY-MM-DD HH:MM:SS[.ffffff]`` as a timestamp in UTC with as few digits of a second as needed."""

    def write(text: str) -> str:
        date, clock = text[:10], text[11:]
        if len(text) < _TIMESTAMP_CHARACTERS or text < "1970":
            raise ValueError(text)
        return f'"{date}T{clock.rstrip("0").rstrip(".") if "." in clock else clock}Z"'

    return f"{code.bind(write)}({value})"


def _minute_text(minute: int) -> str:
    return iso_timestamp(minute * 60, "")[:-2]
