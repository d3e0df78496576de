"""The frames that the reader's process sends to its task: a line of JSON each, and rows as an Arrow stream behind it.

| kind | what it says |
|---|---|
| described | the resources, for a validation |
| streams | the source partitions; the task answers with their offsets, as a line of JSON |
| table | the schema of a table's records, before its first rows and when it has grown |
| rows | rows of a table; with the offset that covers them and all before them of their resource, if there is one |
| offsets | offsets that no row has |
| end | the run has ended; the offsets after it |
| error | the run has failed |

Both sides are of the same installation, so that the format has no versions.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

DESCRIBED, STREAMS, TABLE, ROWS, OFFSETS, END, ERROR = "described", "streams", "table", "rows", "offsets", "end", "error"

_SIZES = struct.Struct(">IQ")


class Frame(NamedTuple):
    """A message of the reader. ``body`` is the rows."""

    kind: str
    head: Mapping[str, Any]
    body: bytes = b""

    def rows(self) -> pa.RecordBatch:
        """Return the rows of a frame of kind ROWS."""
        import pyarrow as pa

        with pa.ipc.open_stream(pa.py_buffer(self.body)) as stream:
            return stream.read_next_batch()


def write_frame(output: BinaryIO, kind: str, head: Mapping[str, Any], rows: pa.RecordBatch | None = None) -> None:
    """Write a frame, and wait until the task has room for it."""
    body: Any = b""
    if rows is not None:
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        body = sink.getvalue()
    data = json.dumps({"kind": kind, **head}).encode()
    output.write(_SIZES.pack(len(data), len(body)))
    output.write(data)
    output.write(body)
    output.flush()


def read_frame(source: BinaryIO) -> Frame | None:
    """Return the next frame; None at the end, also within a frame, because the process was killed."""
    sizes = source.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    head, body = _SIZES.unpack(sizes)
    data, rows = source.read(head), source.read(body)
    if len(data) < head or len(rows) < body:
        return None
    fields = json.loads(data)
    return Frame(fields.pop("kind"), fields, rows)
