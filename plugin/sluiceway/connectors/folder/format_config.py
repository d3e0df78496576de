"""Defines the keys of formats, and makes a format of their values."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, OneOf, Range
from sluiceway.connectors.folder.csv_format import CsvFormat
from sluiceway.connectors.folder.csv_types import column_type
from sluiceway.connectors.folder.fixed_format import FixedColumn, FixedRecords
from sluiceway.connectors.folder.formats import (
    Columns,
    Format,
    LineBased,
    LineRecords,
    MultilineRecords,
    Row,
    TextFormat,
    WholeRecords,
)
from sluiceway.connectors.folder.json_array import JsonArrayFormat
from sluiceway.connectors.folder.tables import AVRO, ORC, PARQUET, TableFormat
from sluiceway.connectors.folder.xml_format import XmlFormat
from sluiceway.errors import ConfigError

FORMAT = "format"
LINES, MULTILINE, CSV, FIXED = "lines", "multiline", "csv", "fixed"
JSON, JSON_ARRAY, XML, WHOLE = "json", "json-array", "xml", "whole"
ENCODING = "encoding"
BATCH_SIZE = "batch.size"
MULTILINE_START = "multiline.start"
MULTILINE_MAX_LINES = "multiline.max.lines"
MULTILINE_TIMEOUT_MS = "multiline.timeout.ms"
CSV_DELIMITER = "csv.delimiter"
CSV_QUOTE = "csv.quote"
CSV_COLUMNS = "csv.columns"
CSV_NULL = "csv.null"
CSV_TYPES = "csv.types"
FIXED_COLUMNS = "fixed.columns"
FIXED_NULL = "fixed.null"
XML_RECORD = "xml.record"

OF_FORMAT = {MULTILINE: "multiline.", CSV: "csv.", FIXED: "fixed.", XML: "xml."}
"""The prefix of a format's keys."""
NOT_OF_LOGS = (JSON_ARRAY, XML, PARQUET, ORC, AVRO, WHOLE)
"""Formats of files that have an end."""

RECORDS = "Records"
"""The group of keys."""
_NEEDED = {FIXED: FIXED_COLUMNS, XML: XML_RECORD}  # keys without which a format cannot be read
_NO_TEXT = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7")
MOST = 2**31 - 1
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
text_key = functools.partial(ConfigKey, type=Type.STRING)
list_key = functools.partial(ConfigKey, type=Type.LIST)


class JsonLineRecords(LineBased):
    """Lines that are JSON values each, as values without a schema. Blank lines are none."""

    def rows(self, data: bytes) -> Iterator[Row]:
        for line, end in self.lines(data):
            if line.strip():
                try:
                    yield Row(orjson.loads(line), end)
                except orjson.JSONDecodeError as error:
                    yield Row(None, end, f"not JSON: {error}")

    def columns(self, data: bytes, most: int) -> Columns | None:
        if not data.endswith(b"\n"):
            return None
        lines = data.split(b"\n", most)
        length = len(data) - len(lines.pop())
        objects: list[Any] = []
        try:
            for line in lines:
                if not line.strip():
                    return None
                objects.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            return None
        return Columns(len(objects), length, objects=objects)


def number_key(name: str, default: int, low: int, group: str, doc: str) -> ConfigKey:
    """Return the key of a whole number of at least ``low``."""
    return ConfigKey(name=name, type=Type.LONG, default=default, validator=Range(low, MOST), importance=LOW, group=group, doc=doc)


def choice_key(name: str, default: str, choices: tuple[str, ...], group: str, doc: str) -> ConfigKey:
    """Return the key of one of some texts."""
    return text_key(name=name, default=default, validator=OneOf(choices), importance=MEDIUM, group=group, doc=doc)


def _check_encoding(name: str, value: ConfigValue) -> None:
    try:
        same = all(bytes([code]).decode(str(value)) == chr(code) for code in range(128))
    except (LookupError, UnicodeError):
        same = False
    if not same or codecs.lookup(str(value)).name in _NO_TEXT:
        raise ConfigError(name, value, "must be an encoding with ASCII characters as single bytes, such as utf-8 or latin-1")


def _check_pattern(name: str, value: ConfigValue) -> None:
    try:
        re.compile(str(value or ""))
    except re.error as error:
        raise ConfigError(name, value, f"is not a regular expression of Python: {error}") from error


def _check_character(name: str, value: ConfigValue) -> None:
    text = _character(str(value))
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ConfigError(name, value, r"must be one ASCII character, or \t for a tab")


def _check_columns(name: str, value: ConfigValue) -> None:
    columns = value if isinstance(value, list) else []
    if len(set(columns)) < len(columns) or not all(columns):
        raise ConfigError(name, value, "must name each column, and none twice")


def _pairs(value: ConfigValue) -> list[tuple[str, str]]:
    """Return the names and what follows their last colon in a list, in which commas in parentheses separate nothing."""
    items = re.split(r",(?![^(]*\))", ",".join(texts(value))) if value else []
    return [(name.strip(), text.strip()) for name, _, text in (item.rpartition(":") for item in items)]


def _check_types(name: str, value: ConfigValue) -> None:
    pairs = _pairs(value)
    _check_columns(name, [column for column, _ in pairs])
    try:
        for _, type_ in pairs:
            column_type(type_)
    except ValueError as error:
        raise ConfigError(name, value, f"has a bad type: {error}") from error


def _check_widths(name: str, value: ConfigValue) -> None:
    pairs = _pairs(value)
    _check_columns(name, [column for column, _ in pairs])
    if not all(re.fullmatch(r"[1-9][0-9]{0,8}", width) for _, width in pairs):
        raise ConfigError(name, value, "must be columns as name:width, such as id:8, with the width in characters")


def _check_element(name: str, value: ConfigValue) -> None:
    if not re.fullmatch(r"""([^\s<>/"'=!?&:]+:)?[^\s<>/"'=!?&:]+|""", str(value)):
        raise ConfigError(name, value, "must be the name of an element, with or without its prefix")


FORMAT_KEYS = [
    choice_key(
        FORMAT,
        LINES,
        (LINES, MULTILINE, CSV, FIXED, JSON, JSON_ARRAY, XML, PARQUET, ORC, AVRO, WHOLE),
        RECORDS,
        "What a record is: a line, lines that belong together, a row of CSV, a line with columns of fixed width, a line with a "
        "JSON value, an element of a file's JSON array, an XML element, a row of Parquet, ORC or Avro, or a whole file. Files "
        "that end with .gz, .bz2, .xz, .zst, or .zip are decompressed.",
    ),
    text_key(
        name=ENCODING,
        default="utf-8",
        validator=Check(_check_encoding, "an encoding"),
        importance=LOW,
        group=RECORDS,
        doc="The encoding of text. Bytes that it does not have become U+FFFD. A byte order mark of UTF-8 is skipped.",
    ),
    text_key(
        name=MULTILINE_START,
        default=r"^\S",
        validator=Check(_check_pattern, "a regular expression"),
        importance=MEDIUM,
        group=RECORDS,
        doc="Matches the first line of a record of several lines, as Python's re.search. Lines that do not match belong "
        "to the "
        "record before them. By default, those that begin with white space.",
    ),
    number_key(MULTILINE_MAX_LINES, 1000, 1, RECORDS, "Most lines of a record; the others are another record."),
    number_key(
        MULTILINE_TIMEOUT_MS,
        1000,
        0,
        RECORDS,
        "Milliseconds without a new line after which the last record of several lines is complete.",
    ),
    text_key(
        name=CSV_DELIMITER,
        default=",",
        validator=Check(_check_character, "a character"),
        importance=MEDIUM,
        group=RECORDS,
        doc=r"The character between fields; \t for a tab.",
    ),
    text_key(
        name=CSV_QUOTE,
        default='"',
        validator=Check(_check_character, "a character"),
        importance=LOW,
        group=RECORDS,
        doc="The character around fields that have delimiters, newlines, or quotes.",
    ),
    list_key(
        name=CSV_COLUMNS,
        default=[],
        validator=Check(_check_columns, "names"),
        importance=MEDIUM,
        group=RECORDS,
        doc="The names of the columns of files without a header. By default, the first record of each file has them.",
    ),
    text_key(
        name=CSV_NULL,
        default=None,
        importance=LOW,
        group=RECORDS,
        doc="The text of a field that is null; by default none is.",
    ),
    list_key(
        name=CSV_TYPES,
        default=[],
        validator=Check(
            _check_types,
            "name:type, with the types boolean, int32, int64, float32, float64, decimal(digits,digits "
            "after the point), date, timestamp, string",
        ),
        importance=MEDIUM,
        group=RECORDS,
        doc="The types of columns that are no strings, as in id:int64,price:decimal(10,2),day:date. Blanks around their fields "
        "do not count, and empty fields are null. A row with a field that does not fit its type is a bad record.",
    ),
    list_key(
        name=FIXED_COLUMNS,
        default=[],
        validator=Check(_check_widths, "name:width"),
        importance=MEDIUM,
        group=RECORDS,
        doc=f"With {FORMAT}={FIXED}, the columns of a line, and their widths in characters, as in id:8,name:30. Blanks around "
        "fields are left out. The last field of a line may be shorter than its column.",
    ),
    text_key(
        name=FIXED_NULL,
        default=None,
        importance=LOW,
        group=RECORDS,
        doc="The text of a field that is null, without the blanks around it; by default none is. If it is empty, fields of "
        "blanks are null.",
    ),
    text_key(
        name=XML_RECORD,
        default="",
        validator=Check(_check_element, "the name of an element"),
        importance=MEDIUM,
        group=RECORDS,
        doc=f"With {FORMAT}={XML}, the name of the elements that are records, at any depth: with a prefix as in the files, or "
        "without one for any prefix.",
    ),
]


def format_conflicts(values: Mapping[str, ConfigValue]) -> list[tuple[str, str]]:
    """Return the keys of formats to change, and why."""
    found = []
    format_, columns = str(values[FORMAT]), texts(values[CSV_COLUMNS])
    if format_ in _NEEDED and not values[_NEEDED[format_]]:
        found.append((_NEEDED[format_], f"is needed with {FORMAT}={format_}"))
    if values[CSV_DELIMITER] == values[CSV_QUOTE]:
        found.append((CSV_QUOTE, f"must not be that of {CSV_DELIMITER}"))
    if columns and not {name for name, _ in _pairs(values[CSV_TYPES])}.issubset(columns):
        found.append((CSV_TYPES, f"must have names of {CSV_COLUMNS} only"))
    return found


def format_of(values: Mapping[str, ConfigValue]) -> Format:
    """Return the format of a config."""
    return _FORMATS[str(values[FORMAT])](values, codecs.lookup(str(values[ENCODING])).name)


def _multiline(values: Mapping[str, ConfigValue], encoding: str) -> Format:
    start, most = re.compile(str(values[MULTILINE_START])), number(values[MULTILINE_MAX_LINES])
    return TextFormat(MultilineRecords(start, most, encoding))


def _csv(values: Mapping[str, ConfigValue], encoding: str) -> Format:
    return CsvFormat(
        _character(str(values[CSV_DELIMITER])),
        _character(str(values[CSV_QUOTE])),
        texts(values[CSV_COLUMNS]),
        _optional(values[CSV_NULL]),
        encoding,
        tuple((name, type_) for name, text in _pairs(values[CSV_TYPES]) if (type_ := column_type(text))),
    )


def _fixed(values: Mapping[str, ConfigValue], encoding: str) -> Format:
    columns = [FixedColumn(name, int(width)) for name, width in _pairs(values[FIXED_COLUMNS])]
    return TextFormat(FixedRecords(columns, _optional(values[FIXED_NULL]), encoding))


_FORMATS: Mapping[str, Callable[[Mapping[str, ConfigValue], str], Format]] = {
    LINES: lambda _, encoding: TextFormat(LineRecords(encoding)),
    MULTILINE: _multiline,
    CSV: _csv,
    FIXED: _fixed,
    JSON: lambda *_: TextFormat(JsonLineRecords()),
    JSON_ARRAY: lambda *_: JsonArrayFormat(),
    XML: lambda values, _: XmlFormat(str(values[XML_RECORD])),
    PARQUET: lambda values, _: TableFormat(PARQUET, number(values[BATCH_SIZE])),
    ORC: lambda values, _: TableFormat(ORC, number(values[BATCH_SIZE])),
    AVRO: lambda values, _: TableFormat(AVRO, number(values[BATCH_SIZE])),
    WHOLE: lambda *_: TextFormat(WholeRecords()),
}


def _optional(value: ConfigValue) -> str | None:
    return None if value is None else str(value)


def _character(text: str) -> str:
    return "\t" if text == r"\t" else text


def texts(value: ConfigValue) -> tuple[str, ...]:
    """Return the items of a list."""
    return tuple(map(str, value)) if isinstance(value, list) else ()


def number(value: ConfigValue) -> int:
    """Return a number."""
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value
