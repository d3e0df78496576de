"""The CSV format: records with byte positions, parsed by Arrow where that is exact, else by Python's csv module. No I/O."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import regex

from sluiceway.connectors.folder.csv_types import ColumnType
from sluiceway.connectors.folder.formats import Columns, Records, Row, byte_order_mark, shortened
from sluiceway.connectors.folder.identity import Readable
from sluiceway.data import OPTIONAL_STRING_SCHEMA, SchemaBuilder, Struct
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_NEWLINE = 10
_CARRIAGE_RETURN = 13
_LARGEST_FIELD = 1 << 30
_LOOK_BACK = 64
_FEWEST_BYTES_FOR_COLUMNS = 1 << 13


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """Comma-separated values (RFC 4180) with any delimiter.

    Attributes:
        delimiter: one ASCII character.
        quote: one ASCII character.
        columns: the names of the columns; empty if the first record of each file has them.
        null: the text of an unquoted field that is null, None if no field is.
        encoding: that of the text; one in which ASCII characters are single bytes.
        types: the names of columns that are no strings, and their types.
    """

    delimiter: str = ","
    quote: str = '"'
    columns: tuple[str, ...] = ()
    null: str | None = None
    encoding: str = "utf-8"
    types: tuple[tuple[str, ColumnType], ...] = ()

    def begin(self, data: bytes, *, final: bool) -> tuple[int, Records] | None:
        if not data and not final:
            return None
        start = byte_order_mark(data)
        if self.columns:
            return start, CsvRecords(self, self.columns)
        ends = self.record_ends(data[start:])
        if len(ends):
            end = start + int(ends[0])
        elif final:
            end = len(data)
        else:
            return None
        return end, CsvRecords(self, self._names(data[start:end]))

    def _names(self, header: bytes) -> tuple[str, ...]:
        names = next(self.read(header.decode(self.encoding, "replace")), list[str]())
        if not names or not all(names) or len(set(names)) < len(names):
            raise ConnectError(
                f"The first line of the file, {shortened(header)}, has no name for each column, or one twice. "
                "If the files have no header, set csv.columns to the names of the columns."
            )
        missing = [name for name, _ in self.types if name not in names]
        if missing:
            raise ConnectError(f"The file has no column {', '.join(missing)} of csv.types. Its columns are {', '.join(names)}.")
        return tuple(names)

    def read(self, text: str) -> Iterator[list[str]]:
        csv.field_size_limit(_LARGEST_FIELD)
        return csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, quotechar=self.quote)

    def record_ends(self, data: bytes) -> npt.NDArray[np.int64]:
        """Return the positions after the newlines that end records: those outside quotes. ``data`` begins with a record.

        Quotes that are not where RFC 4180 has them are read as Python's csv module reads them.
        """
        import numpy as np

        array = np.frombuffer(data, np.uint8)
        newlines = np.flatnonzero(array == _NEWLINE)
        if self.quote.encode() not in data:
            return newlines + 1
        quotes = np.flatnonzero(array == ord(self.quote))
        if self._are_regular(array, quotes):
            # Outside quotes, as many are closed as opened.
            outside: npt.NDArray[np.int64] = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
            return outside + 1
        return np.array(list(self._irregular_ends(data)), np.int64)

    def _are_regular(self, array: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64]) -> bool:
        """Return whether each quote opens a field, closes one, or is doubled, so that counting them finds what is quoted."""
        import numpy as np

        around = [ord(self.delimiter), _NEWLINE, ord(self.quote)]
        opening, closing = quotes[::2], quotes[1::2]
        before = array[opening[opening > 0] - 1]
        after = array[closing[closing < len(array) - 1] + 1]
        return bool(np.isin(before, around).all() and np.isin(after, [*around, _CARRIAGE_RETURN]).all())

    def quoted_until(self, data: bytes) -> int:
        """Return where the quoted field ends within which bytes of a file begin; 0 if they do not begin within one.

        Only the first quote tells that has a delimiter or a newline on one side alone: it opens a field, or closes one.
        """
        q, d = (re.escape(each.encode()) for each in (self.quote, self.delimiter))
        odd = [run for run in re.finditer(q + b"+", data) if len(run[0]) % 2]
        for number, run in enumerate(odd):
            before, after = data[run.start() - 1 : run.start()], data[run.end() : run.end() + 1]
            opens, closes = bool(re.match(b"[\n%b]" % d, before)), bool(re.match(b"[\r\n%b]" % d, after))
            if opens != closes and before and after:
                return odd[0].end() if closes == (number % 2 == 0) else 0
        return 0

    def _irregular_ends(self, data: bytes) -> Iterator[int]:
        field, position = _field(self.delimiter, self.quote), 0
        while match := field.match(data, position):
            position = match.end()
            if match[1] == b"\n":
                yield position


@functools.lru_cache
def _field(delimiter: str, quote: str) -> regex.Pattern[bytes]:
    """Return what matches a field and what follows it. Only at a field's start, a quote is more than a character."""
    d, q = (regex.escape(each.encode()) for each in (delimiter, quote))
    quoted, plain = rb"%(q)s(?:[^%(q)s]++|%(q)s%(q)s)*+%(q)s[^%(d)s\n]*+", rb"(?:[^%(d)s\n%(q)s][^%(d)s\n]*+)?+"
    return regex.compile((rb"(?:" + quoted + rb"|" + plain + rb")([%(d)s\n])") % {b"d": d, b"q": q})


class CsvRecords(Records):
    """The records of a file whose columns are known: structs of optional fields, which are strings unless they have a type."""

    def __init__(self, format_: CsvFormat, columns: Sequence[str]) -> None:
        self._format = format_
        self._columns = tuple(columns)
        self._known: tuple[bytes, npt.NDArray[np.int64]] | None = None  # bytes that were looked at last, and the ends of records
        types, builder = dict(format_.types), SchemaBuilder.struct()
        for name in columns:
            builder = builder.field(name, types[name].schema if name in types else OPTIONAL_STRING_SCHEMA)
        self.schema = builder.build()
        self._typed = [(index, name, types[name]) for index, name in enumerate(columns) if name in types]

    def complete(self, data: bytes, *, final: bool) -> int:
        if final:
            return len(data)
        ends = self._format.record_ends(data)
        self._known = data, ends
        return int(ends[-1]) if len(ends) else 0

    def next_start(self, file: Readable, position: int, most: int) -> int:
        if not position:
            return 0
        begin = max(0, position - _LOOK_BACK)
        quote = self._format.quote.encode()
        begin += max(0, len(file.read_at(begin, position - begin).rstrip(quote)) - 1)  # what is before a quote tells what it does
        data = file.read_at(begin, most)
        outside = self._format.quoted_until(data) if begin else 0
        ends = begin + outside + self._format.record_ends(data[outside:])
        following = ends[ends >= position]
        return int(following[0]) if len(following) else begin + len(data)

    def _ends(self, data: bytes) -> npt.NDArray[np.int64]:
        if self._known is not None and self._known[0].startswith(data):
            ends = self._known[1]
            return ends[: ends.searchsorted(len(data), "right")]
        return self._format.record_ends(data)

    def rows(self, data: bytes) -> Iterator[Row]:
        assert self.schema is not None  # noqa: S101 (for mypy)
        start, width = 0, len(self._columns)
        ends = self._format.record_ends(data if data.endswith(b"\n") else data + b"\n")
        for end in ends.tolist():
            raw, start, end = data[start:end], end, min(end, len(data))
            if not raw.strip(b"\r\n"):
                continue
            try:
                (fields,) = self._format.read(raw.decode(self._format.encoding, "replace"))
                if len(fields) == width:
                    yield Row(Struct.of(self.schema, self._values(fields)), end)
                else:
                    yield Row(None, end, f"{len(fields)} fields instead of {width}: {shortened(raw)}")
            except (ValueError, csv.Error) as error:
                yield Row(None, end, f"not a record: {error}: {shortened(raw)}")
        if start < len(data):  # the quote may be a mistake of one line
            after = data.find(b"\n", start) + 1 or len(data)
            yield Row(None, after, f"a quote is never closed: {shortened(data[start:])}")
            yield from (row._replace(end=after + row.end) for row in self.rows(data[after:]))

    def _values(self, fields: list[str]) -> list[Any]:
        """Return the values of a record. Raises ValueError that names the column if a field does not fit its type."""
        null = self._format.null
        values: list[Any] = [None if each == null else each for each in fields]
        for index, name, type_ in self._typed:
            if values[index] is not None:
                try:
                    values[index] = type_.value(values[index])
                except ValueError as error:
                    raise ValueError(f"column {name}: {error}") from None
        return values

    def columns(self, data: bytes, most: int) -> Columns | None:
        if len(data) < _FEWEST_BYTES_FOR_COLUMNS or self._format.encoding != "utf-8":
            return None
        ends = self._ends(data)
        if not len(ends) or int(ends[-1]) != len(data):
            return None
        count = min(len(ends), most)
        length = int(ends[count - 1])
        values = self._parsed(data[:length])
        if values is None or len(values) != count:  # bad or blank records
            return None
        return Columns(count, length, values)

    def _parsed(self, data: bytes) -> Any:
        """Return an array of structs, None if Arrow does not take all of the data."""
        import pyarrow as pa
        import pyarrow.csv as pc

        null = self._format.null
        try:
            table = pc.read_csv(
                io.BytesIO(data),
                read_options=pc.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(self._columns)),
                parse_options=pc.ParseOptions(
                    delimiter=self._format.delimiter,
                    quote_char=self._format.quote,
                    newlines_in_values=self._format.quote.encode() in data,
                ),
                convert_options=pc.ConvertOptions(
                    column_types=dict.fromkeys(self._columns, pa.utf8()),
                    strings_can_be_null=null is not None,
                    null_values=[] if null is None else [null],
                    quoted_strings_can_be_null=True,
                    check_utf8=True,
                ),
            )
        except pa.ArrowInvalid:
            return None
        arrays: list[Any] = [pa.concat_arrays(column.chunks) for column in table.columns]
        for index, _, type_ in self._typed:
            arrays[index] = type_.array(arrays[index])
            if arrays[index] is None:
                return None
        fields = [pa.field(name, array.type) for name, array in zip(self._columns, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields)
