r"""Splits lines of COPY into columns. The columnar form of ``copying.parse_lines``. No I/O.

COPY writes tabs, line ends and backslashes of values as escapes, so each tab and line end in its text is one between values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sluiceway.columns.text_arrays import values_between
from sluiceway.connectors.cdc.column_rows import ColumnRows, RawColumn
from sluiceway.connectors.cdc.postgres.copying import unescaped

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_TAB, _LINE_END, _BACKSLASH, _NULL_LETTER = b"\t\n\\N"


def column_rows(lines: Sequence[bytes]) -> ColumnRows:
    """Return the values of lines, each with its line end, of at least one column."""
    data = b"".join(lines)
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero((codes == _TAB) | (codes == _LINE_END))
    begins = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    count = len(lines)
    width = len(ends) // count
    backslashes = np.flatnonzero(codes == _BACKSLASH)
    # By column; of a null, \N, the backslash is the only one.
    escapes = np.bincount(np.searchsorted(ends, backslashes) % width, minlength=width)
    columns = []
    for index in range(width):
        begin, end = begins[index::width], ends[index::width]
        nulls = None
        if escapes[index]:
            nulls = (end - begin == 2) & (codes[begin] == _BACKSLASH)
            nulls[nulls] = codes[begin[nulls] + 1] == _NULL_LETTER
        values = values_between(data, begin, end, pa.utf8(), nulls)
        in_values = int(escapes[index] - values.null_count)
        columns.append(RawColumn(_unescaped(values, in_values) if in_values else values))
    return ColumnRows(columns, count)


def _unescaped(values: AnyArray, backslashes: int) -> AnyArray:
    """Return what values with so many backslashes mean."""
    if 2 * pc.sum(pc.count_substring(values, "\\\\")).as_py() == backslashes:  # as in bytea and JSON: no other escapes
        plain: AnyArray = pc.replace_substring(values, "\\\\", "\\")
        return plain
    return pa.array([value if value is None else unescaped(value) for value in values.to_pylist()], pa.utf8())
