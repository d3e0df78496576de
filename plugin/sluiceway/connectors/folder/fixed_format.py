"""The fixed-width format: columns of so many characters each on every line. No I/O."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.connectors.folder.formats import Columns, LineBased, Row, shortened
from sluiceway.data import OPTIONAL_STRING_SCHEMA, SchemaBuilder, Struct

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FEWEST_BYTES_FOR_COLUMNS = 1 << 13


class FixedColumn(NamedTuple):
    """A column, and its width in characters."""

    name: str
    width: int


class FixedRecords(LineBased):
    """Lines with a field for each column, as structs of optional strings without the blanks around them.

    The field of the last column may be shorter than it. Empty lines are no records.

    Args:
        columns: the columns in their order.
        null: the text of a field that is null, None if no field is.
        encoding: that of the text.
    """

    def __init__(self, columns: Sequence[FixedColumn], null: str | None = None, encoding: str = "utf-8") -> None:
        self._names = [name for name, _ in columns]
        ends = list(itertools.accumulate(width for _, width in columns))
        self._spans = list(itertools.pairwise([0, *ends]))
        self._null = null
        self._encoding = encoding
        builder = SchemaBuilder.struct()
        for name in self._names:
            builder = builder.field(name, OPTIONAL_STRING_SCHEMA)
        self._struct = self.schema = builder.build()

    def rows(self, data: bytes) -> Iterator[Row]:
        spans, null = self._spans, self._null
        fewest, most = spans[-1]
        for line, end in self.lines(data):
            text = line.decode(self._encoding, "replace").rstrip("\r")
            if not text:
                continue
            if fewest <= len(text) <= most:
                fields = [text[start:stop].strip(" ") for start, stop in spans]
                yield Row(Struct.of(self._struct, [None if each == null else each for each in fields]), end)
            else:
                yield Row(None, end, f"a line of {len(text)} characters instead of {most}: {shortened(line)}")

    def columns(self, data: bytes, most: int) -> Columns | None:
        if len(data) < _FEWEST_BYTES_FOR_COLUMNS or self._encoding != "utf-8" or not data.isascii():
            return None
        lines = self._equal_lines(data)
        if lines is None:
            return None
        import pyarrow as pa

        lines = lines[:most]
        arrays = [self._column(lines[:, start:stop]) for start, stop in self._spans]
        values = pa.StructArray.from_arrays(arrays, fields=[pa.field(name, pa.utf8()) for name in self._names])
        return Columns(len(lines), lines.size, values)

    def _equal_lines(self, data: bytes) -> npt.NDArray[np.uint8] | None:
        """Return the lines of data as the rows of an array, None if not all of them have all characters and the same end."""
        import numpy as np

        width = self._spans[-1][1]
        end = data[width : data.find(b"\n") + 1]
        if end not in (b"\n", b"\r\n") or len(data) % (width + len(end)):
            return None
        lines = np.frombuffer(data, np.uint8).reshape(-1, width + len(end))
        if data.count(b"\n") != len(lines) or data.count(b"\r") != len(lines) * (len(end) - 1):
            return None
        return lines if (lines[:, width:] == np.frombuffer(end, np.uint8)).all() else None

    def _column(self, fields: npt.NDArray[np.uint8]) -> Any:
        """Return the fields of a column, which are the rows of an array of ASCII characters."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        count, width = fields.shape
        offsets = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(width))
        content = pa.py_buffer(fields.tobytes())
        values: Any = pa.StringArray.from_buffers(count, offsets.buffers()[1], content)
        values = pc.ascii_trim(values, characters=" ")
        return values if self._null is None else pc.if_else(pc.equal(values, pa.scalar(self._null)), None, values)
