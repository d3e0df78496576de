"""Receives a part of the binary log again, beside the dump that goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from sluiceway.connectors.cdc.mysql.binlog.stream import BinlogStream, StartPosition
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import connect

SecondDump = Callable[[StartPosition], AbstractContextManager[Iterator[memoryview]]]


@contextmanager
def second_dump(config: SourceConfig, start: StartPosition, *, mariadb: bool) -> Iterator[Iterator[memoryview]]:
    """Return the packets from a position on.

    The server ends a dump if the same replica asks for another one, so this one has another id.
    """
    server_id = (config.server_id + int(str(config.values["database.server.id.offset"]))) & 0xFFFFFFFF
    stream = BinlogStream(connect(replace(config.connection, statements=())), server_id, mariadb=mariadb)
    try:
        stream.start(start)
        yield stream.packets()
    finally:
        stream.close()
