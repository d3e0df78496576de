"""Splits rows of a text result into columns. The columnar form of ``result_rows.row_parser``. No I/O.

A value is its length and its bytes (MariaDB and MySQL: "Text Resultset Row"). All rows' values of a column are found at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sluiceway.columns.text_arrays import values_between
from sluiceway.connectors.cdc.column_rows import ColumnRows, RawColumn

_NULL = 0xFB
_LENGTH_SIZES = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def column_rows(payloads: Sequence[bytes], binary: Sequence[bool]) -> ColumnRows:
    """Return the values of rows. ``binary`` says which columns are bytes. Raises pa.ArrowInvalid if text is not UTF-8."""
    data = b"".join(payloads)
    codes = np.frombuffer(data, np.uint8)
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    at = np.cumsum(sizes) - sizes
    columns = []
    for is_binary in binary:
        length = codes[at].astype(np.int64)
        begin = at + 1
        nulls = None
        if length.max() >= _NULL:
            nulls = length == _NULL
            for code, size in _LENGTH_SIZES.items():
                long = np.flatnonzero(length == code)
                if len(long):
                    positions = begin[long, np.newaxis] + np.arange(size)
                    length[long] = (codes[positions].astype(np.int64) << np.arange(0, 8 * size, 8)).sum(axis=1)
                    begin[long] += size
            length[nulls] = 0
        at = begin + length
        values = values_between(data, begin, at, pa.binary() if is_binary else pa.utf8(), nulls)
        if not is_binary:
            values.validate(full=True)
        columns.append(RawColumn(values))
    return ColumnRows(columns, len(payloads))
