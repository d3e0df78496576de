"""Reads the rows of a query's result from the server's packets, faster than PyMySQL does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.cdc.emitter import FEWEST_ROWS

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.column_rows import Rows

Row = tuple[Any, ...]
Parse = Callable[[bytes, int], Row]

_HEADER = 4
_LONGEST_PACKET = 0xFFFFFF
_NULL, _END, _ERROR = 0xFB, 0xFE, 0xFF
_END_SIZE = 9  # of packets that begin like an end but are rows, at least
_AT_ONCE = 1 << 18
_LENGTH_SIZES = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def result_rows(result: Any, limit: int, byte_limit: int, *, columns: bool = False) -> Iterator[Rows]:
    """Yield the rows of a PyMySQL result, of which no row has been read, in lists.

    A list has at most ``limit`` rows and not many more than ``byte_limit`` bytes. Values are text, or bytes of binary types. With
    ``columns``, many rows come as ColumnRows. The connection cannot be used any more if the iterator is closed before its end.

    Raises:
        pymysql.err.OperationalError: the server reports an error, or the connection is lost.
    """
    connection = result.connection
    packets = _Packets(connection)
    decode = _decoder([encoding is None for encoding, _ in result.converters], columns=columns)
    payloads: list[bytes] = []
    size, ended = 0, False
    try:
        while True:
            data, at, length = packets.next()
            first = data[at]
            if first == _END and length < _END_SIZE:
                ended = True
                break
            if first == _ERROR:
                _raise_error(data[at : at + length], connection.encoding)
            payloads.append(data[at : at + length])
            size += length
            if len(payloads) >= limit or size >= byte_limit:
                yield decode(payloads)
                payloads, size = [], 0
    finally:
        result.unbuffered_active, result.connection, result.rows = False, None, None
        if not ended:
            connection._force_close()
    if payloads:
        yield decode(payloads)


def _decoder(binary: Sequence[bool], *, columns: bool) -> Callable[[list[bytes]], Rows]:
    parse = row_parser(binary)

    def decode(payloads: list[bytes]) -> Rows:
        if columns and len(payloads) >= FEWEST_ROWS:
            from pyarrow import ArrowInvalid

            from sluiceway.connectors.cdc.mysql.result_columns import column_rows

            try:
                return column_rows(payloads, binary)
            except ArrowInvalid:  # the rows one by one have the error
                pass
        return [parse(payload, 0) for payload in payloads]

    return decode


def row_parser(binary: Sequence[bool]) -> Parse:
    """Return the function that decodes a row at a position. ``binary`` says which columns stay bytes."""
    lines = ["def parse(data, at):"]
    for index, is_binary in enumerate(binary):
        decoded = "" if is_binary else ".decode()"
        lines += [
            " size = data[at]",
            " if size < 251:",
            "  begin = at + 1",
            "  at = begin + size",
            f"  v{index} = data[begin:at]{decoded}",
            " elif size == 251:",
            f"  v{index} = None",
            "  at += 1",
            " else:",
            f"  v{index}, at = long_value(data, at)",
            *([] if is_binary else [f"  v{index} = v{index}.decode()"]),
        ]
    lines.append(f" return ({''.join(f'v{index}, ' for index in range(len(binary)))})")
    names: dict[str, Any] = {"long_value": _long_value}
    exec("\n".join(lines), names)  # noqa: S102 (code generated from the number of columns alone)
    found: Parse = names["parse"]
    return found


def _long_value(data: bytes, at: int) -> tuple[bytes, int]:
    begin = at + 1 + _LENGTH_SIZES[data[at]]
    end = begin + int.from_bytes(data[at + 1 : begin], "little")
    return data[begin:end], end


def _raise_error(packet: bytes, encoding: str) -> None:
    from pymysql.protocol import MysqlPacket

    MysqlPacket(packet, encoding).raise_for_error()


class _Packets:
    """The packets of a connection, read in large pieces. Nothing follows a result, so nothing is read that belongs to others."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._file = connection._rfile
        self._data = b""
        self._at = 0

    def next(self) -> tuple[bytes, int, int]:
        """Return bytes that contain the next packet's payload, where that begins, and its length."""
        begin, length = self._part()
        if length < _LONGEST_PACKET:
            return self._data, begin, length
        parts = [self._data[begin : begin + length]]
        while length == _LONGEST_PACKET:
            begin, length = self._part()
            parts.append(self._data[begin : begin + length])
        whole = b"".join(parts)
        return whole, 0, len(whole)

    def _part(self) -> tuple[int, int]:
        """Move behind the next part of a packet; return where its payload begins, and its length."""
        self._fill(_HEADER)
        begin = self._at + _HEADER
        length = int.from_bytes(self._data[self._at : begin - 1], "little")
        if begin + length > len(self._data):
            self._fill(_HEADER + length)
            begin = self._at + _HEADER
        self._at = begin + length
        return begin, length

    def _fill(self, size: int) -> None:
        """Make sure that so many bytes are there from the current position on."""
        while (missing := self._at + size - len(self._data)) > 0:
            more = self._file.read(missing) if missing > _AT_ONCE else self._file.read1(_AT_ONCE)
            if not more:
                self._lost()
            self._data = self._data[self._at :] + more
            self._at = 0

    def _lost(self) -> None:
        from pymysql.constants import CR
        from pymysql.err import OperationalError

        raise OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")
