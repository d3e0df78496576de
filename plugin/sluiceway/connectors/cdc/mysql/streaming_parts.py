"""Names the objects that the streaming of the binary log works with."""

from __future__ import annotations

from dataclasses import dataclass

from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.logged_statements import LoggedStatements
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.mysql.prepared import PreparedTransactions
from sluiceway.connectors.cdc.mysql.schema_changes import SchemaChanges
from sluiceway.connectors.cdc.mysql.second_dump import SecondDump
from sluiceway.connectors.cdc.mysql.table_reader import TableReader
from sluiceway.connectors.cdc.transactions import TransactionCounter


@dataclass
class StreamingParts:
    """The objects that streaming works with."""

    config: SourceConfig
    tables: Tables
    catalog: Catalog
    changes: SchemaChanges
    statements: LoggedStatements
    emitter: Emitter
    position: LogPosition
    counter: TransactionCounter
    buffer: RecordBuffer
    charsets: Charsets
    calendar: Calendar
    mariadb: bool
    read_table: TableReader
    prepared: PreparedTransactions
    second_dump: SecondDump
