"""Unpacks MySQL's transaction payload events, which contain the events of a compressed transaction. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from sluiceway.connectors.cdc.mysql.binlog.events import HEADER_BYTES
from sluiceway.connectors.cdc.mysql.binlog.integers import read_length
from sluiceway.errors import ConnectError, MissingToolError

_END, _SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)
_ZSTD, _NONE = 0, 255


def payload_events(body: memoryview) -> Iterator[memoryview]:
    """Yield the events of a payload, each with its header and without a checksum.

    Raises:
        ConnectError: the compression is unknown.
        MissingToolError: no library for it is installed.
    """
    fields, at = {_COMPRESSION: _ZSTD, _UNCOMPRESSED_SIZE: 0}, 0
    while True:
        kind, at = read_length(body, at)
        if kind == _END:
            break
        length, at = read_length(body, at)
        fields[kind], _ = read_length(body[at : at + length], 0)
        at += length
    data = memoryview(_uncompressed(bytes(body[at:]), fields[_COMPRESSION], fields[_UNCOMPRESSED_SIZE]))
    position = 0
    while position + HEADER_BYTES <= len(data):
        size = int.from_bytes(data[position + 9 : position + 13], "little")
        yield data[position : position + size]
        position += size


def _uncompressed(data: bytes, compression: int, size: int) -> bytes:
    if compression == _NONE:
        return data
    if compression != _ZSTD:
        raise ConnectError(f"The binary log has a transaction with the unknown compression {compression}.")
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingToolError(
            "The binary log has compressed transactions. Install sluiceway[arrow], or set binlog_transaction_compression=OFF."
        ) from error
    result: bytes = pa.Codec("zstd").decompress(data, decompressed_size=size, asbytes=True)
    return result
