"""Unpacks MySQL's transaction payload events, which contain the events of a compressed transaction. No I/O."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from sluiceway.connectors.cdc.mysql.binlog.events import HEADER_BYTES
from sluiceway.connectors.cdc.mysql.binlog.integers import read_length
from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.installation import install_command

_END, _SIZE, _COMPRESSION = range(3)
_ZSTD, _NONE = 0, 255


def payload_events(body: memoryview) -> Iterator[memoryview]:
    """Yield the events of a payload, each with its header and without a checksum.

    Raises:
        ConnectError: the compression is unknown.
        MissingToolError: no library for it is installed.
    """
    fields, at = {_COMPRESSION: _ZSTD}, 0
    while True:
        kind, at = read_length(body, at)
        if kind == _END:
            break
        length, at = read_length(body, at)
        fields[kind], _ = read_length(body[at : at + length], 0)
        at += length
    source = _reader(body[at:], fields[_COMPRESSION])
    while len(head := _read(source, HEADER_BYTES)) == HEADER_BYTES:
        size = int.from_bytes(head[9:13], "little")
        yield memoryview(head + _read(source, size - HEADER_BYTES))


def _read(source: BinaryIO, size: int) -> bytes:
    """Read so many bytes, fewer only at the end."""
    parts = []
    while size and (part := source.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _reader(data: memoryview, compression: int) -> BinaryIO:
    """Return a reader of the events, which uncompresses them bit by bit: a transaction may be larger than the memory."""
    if compression == _NONE:
        return io.BytesIO(data)
    if compression != _ZSTD:
        raise ConnectError(f"The binary log has a transaction with the unknown compression {compression}.")
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingToolError(
            f"The binary log has compressed transactions. Run: {install_command('columns')}, or set "
            "binlog_transaction_compression=OFF."
        ) from error
    reader: Any = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
    return cast("BinaryIO", reader)
