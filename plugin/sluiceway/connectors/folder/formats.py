"""The interface of formats, which find records in bytes, and the formats of text: lines and multiline. No I/O.

Positions are exact: each record has the position after it, so that a task continues after any of them.
"""

from __future__ import annotations

import abc
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sluiceway.connectors.folder.identity import Readable
from sluiceway.data import BYTES_SCHEMA, STRING_SCHEMA, Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

BOM = b"\xef\xbb\xbf"
_FEWEST_BYTES_FOR_COLUMNS = 1 << 15
_SEARCH_BYTES = 1 << 16


class Row(NamedTuple):
    """A record, and the number of bytes up to its end. ``reason`` is why a bad record has no value; "" for a good one."""

    value: Any
    end: int
    reason: str = ""


class Columns(NamedTuple):
    """As many records as ``size``, as an Arrow array or as Python objects without a schema, of the first ``length`` bytes."""

    size: int
    length: int
    values: AnyArray | None = None
    objects: list[Any] | None = None


class Records(abc.ABC):
    """Finds the records of one file after its start. ``schema`` is that of their values, None for values without one."""

    schema: Schema | None = None
    has_lines = True
    """Whether reading can continue on the next line after a record that is too large."""

    @abc.abstractmethod
    def complete(self, data: bytes, *, final: bool) -> int:
        """Return the bytes of the complete records at the start of ``data``, which begins with a record.

        With ``final``, nothing follows the data, so that its last record is complete, too.
        """

    @abc.abstractmethod
    def rows(self, data: bytes) -> Iterator[Row]:
        """Yield the records of complete bytes. Blank lines are no records; their bytes are those of the next one."""

    def columns(self, data: bytes, most: int) -> Columns | None:
        """Return up to ``most`` records of complete bytes, the same as ``rows``; None if that must find them."""
        return None

    def next_start(self, file: Readable, position: int, most: int) -> int:
        """Return where the first record begins that begins at a position or after it; the file's end if none does.

        ``most`` is the most bytes of a record. Raises OSError. Only formats that can be divided have it.
        """
        raise NotImplementedError

    def unfinished(self, data: bytes) -> str:
        """Return why a file whose last complete bytes are these has not all of its records; "" if it has, or if nothing tells."""
        return ""


class Format(Protocol):
    """The format of the files of a connector."""

    def begin(self, data: bytes, *, final: bool) -> tuple[int, Records] | None:
        """Return how many bytes precede the first record of a file, such as a header, and what finds its records.

        ``data`` are the first bytes. Return None if more are needed; with ``final``, there are no more. Raise ConnectError if the
        file cannot be read.
        """


def byte_order_mark(data: bytes) -> int:
    """Return the length of the byte order mark that text begins with."""
    return len(BOM) if data.startswith(BOM) else 0


def shortened(raw: bytes) -> str:
    """Return the start of bytes as text for an error message."""
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    return repr(text if len(text) <= 100 else f"{text[:100]}...")


class TextFormat:
    """Records that do not depend on the start of their file."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def begin(self, data: bytes, *, final: bool) -> tuple[int, Records] | None:
        if len(data) < len(BOM) and not final and BOM.startswith(data):
            return None
        return byte_order_mark(data), self._records


class LineBased(Records):
    """Records of a line each."""

    def complete(self, data: bytes, *, final: bool) -> int:
        return len(data) if final else data.rfind(b"\n") + 1

    def next_start(self, file: Readable, position: int, most: int) -> int:
        if not position:
            return 0
        position -= 1
        while data := file.read_at(position, _SEARCH_BYTES):
            if end := data.find(b"\n") + 1:
                return position + end
            position += len(data)
        return position

    @staticmethod
    def lines(data: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield each line without its newline, and the number of bytes up to its end."""
        end = 0
        for line in data.removesuffix(b"\n").split(b"\n") if data else ():
            end = min(end + len(line) + 1, len(data))
            yield line, end


class LineRecords(LineBased):
    """Lines that end with a newline, without it and a carriage return before it. Blank lines are records, too."""

    schema = STRING_SCHEMA

    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding
        self._is_utf8 = encoding == "utf-8"

    def rows(self, data: bytes) -> Iterator[Row]:
        for line, end in self.lines(data):
            yield Row(line.rstrip(b"\r").decode(self._encoding, "replace"), end)

    def columns(self, data: bytes, most: int) -> Columns | None:
        if len(data) < _FEWEST_BYTES_FOR_COLUMNS or not self._is_utf8 or not data.endswith(b"\n"):
            return None
        from sluiceway.connectors.arrow_lines import split_lines  # loads Arrow

        split = split_lines(data, most)
        if split is None:
            return None
        length, values = split
        if b"\r" in data:
            import pyarrow.compute as pc

            values = pc.utf8_rtrim(values, characters="\r")
        return Columns(len(values), length, values)


class MultilineRecords(Records):
    """Records of several lines, such as stack traces, joined by newlines.

    Args:
        start: matches the first line of a record. A line that does not match belongs to the record before it.
        most: the most lines of a record; a longer one is continued as another record.
        encoding: that of the text.
    """

    schema = STRING_SCHEMA

    def __init__(self, start: re.Pattern[str], most: int, encoding: str = "utf-8") -> None:
        self._start = start
        self._most = most
        self._encoding = encoding

    def complete(self, data: bytes, *, final: bool) -> int:
        end = data.rfind(b"\n") + 1
        if final:
            return len(data)
        starts = self._starts(data[:end])
        return starts[-1] if len(starts) > 1 else 0

    def rows(self, data: bytes) -> Iterator[Row]:
        for start, end in itertools.pairwise([*self._starts(data), len(data)]):
            text = data[start:end].decode(self._encoding, "replace")
            yield Row("\n".join(line.rstrip("\r") for line in text.removesuffix("\n").split("\n")), end)

    def _starts(self, data: bytes) -> list[int]:
        """Return the positions of the first lines of records. The first line is one, whatever it is."""
        starts: list[int] = []
        lines = position = 0
        while position < len(data):
            end = data.find(b"\n", position) + 1 or len(data)
            line = data[position:end].rstrip(b"\r\n").decode(self._encoding, "replace")
            if not starts or lines == self._most or self._start.search(line):
                starts.append(position)
                lines = 0
            lines += 1
            position = end
        return starts


class WholeRecords(Records):
    """A file's whole content as one record."""

    schema = BYTES_SCHEMA
    has_lines = False

    def complete(self, data: bytes, *, final: bool) -> int:
        return len(data) if final else 0

    def rows(self, data: bytes) -> Iterator[Row]:
        yield Row(data, len(data))
