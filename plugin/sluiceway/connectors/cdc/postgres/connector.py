"""The PostgreSQL connector of change data capture."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceRecord, SourceTaskContext, SourceWatch
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.cdc.catch_up import interval_refusal, position_time
from sluiceway.connectors.cdc.ignored_options import warn_of_ignored
from sluiceway.connectors.cdc.log_watches import watch_refusal
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.connection import Address, connect, driver, is_transient
from sluiceway.connectors.cdc.postgres.keys import CONFIG
from sluiceway.connectors.cdc.postgres.source import VERSION
from sluiceway.connectors.cdc.postgres.task import PostgresTask
from sluiceway.errors import ConnectError, RetriableError

# The text lists the transactions that are open and others that have ended since they began. It changes when one that has written
# ends, and at nothing else. The log's position also moves at checkpoints, at the creation of a slot, and when a reader cleans up
# pages, which a run does itself.
_ENDED = "select txid_current_snapshot()::text"


class PostgresConnector(SourceConnector):
    """Reads a PostgreSQL database's log into a topic for each table, after a snapshot of the tables. Configs, records and stored
    offsets of Debezium's PostgreSQL connector keep working. Needs the extra ``jdbc``, no Java.

    The log is read by pgoutput, the output plugin that the server has; it needs ``wal_level=logical``. There is one task.
    """

    task_class = PostgresTask
    interval_in_order = True
    java_class = "io.debezium.connector.postgresql.PostgresConnector"
    java_task_class = "io.debezium.connector.postgresql.PostgresConnectorTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        from sluiceway.connectors.cdc.postgres.validation import check_login

        check_login(config, found)

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        from sluiceway.connectors.cdc.postgres.validation import checked

        return checked(config)

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it creates and advances a replication slot on the server, and may create a publication"

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        return interval_refusal(config)

    @classmethod
    def watch_refusal(cls, config: Mapping[str, str]) -> str:
        return watch_refusal(config)

    @classmethod
    def watch(cls, config: Mapping[str, str]) -> SourceWatch:
        return EndedTransactions(postgres_config(config).address)

    @classmethod
    def position_time(cls, offset: Offset) -> int | None:
        return position_time(offset)

    @classmethod
    def preview(cls, context: SourceTaskContext, most: int) -> Sequence[SourceRecord]:
        """Return rows of the tables as the snapshot reads them, also where a running connector would read the log."""
        from sluiceway.connectors.cdc.postgres.preview import snapshot_rows

        return snapshot_rows(context.configs, most)

    def start(self, config: Mapping[str, str]) -> None:
        postgres_config(config)
        warn_of_ignored(config, CONFIG, postgresql=True)
        self._properties = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._properties]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            if set(partition) != {"server"}:
                raise ConnectError(f"The partition {dict(partition)} is not one of this connector: it has the key 'server'.")
            if offset is not None and not isinstance(offset.get("lsn", offset.get("lsn_proc")), int):
                raise ConnectError("An offset needs the position in 'lsn', a number.")
        return True


class EndedTransactions:
    """The transactions of a server that have written, as far as they have ended: those of all its databases."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Any = None

    def mark(self) -> str:
        """Return the state of the transactions. Raises RetriableError, and ConnectError if the server refuses the login."""
        psycopg = driver()
        try:
            if self._connection is None:
                self._connection = connect(self._address)
            row = self._connection.execute(_ENDED).fetchone()
        except psycopg.Error as error:
            self.close()
            kind = RetriableError if is_transient(error) else ConnectError
            text = " ".join(str(error).split())
            raise kind(f"PostgreSQL at {self._address} does not tell whether its log has changed: {text}") from None
        return str(row[0])

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # the connection may be lost
                connection.close()
