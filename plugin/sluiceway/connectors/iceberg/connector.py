"""The Iceberg sink connector and its task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.iceberg.config import CATALOG_TYPE, CREDENTIAL, PREFIX, SINK, TOKEN, URI, problems
from sluiceway.connectors.tables.config import TableOptions
from sluiceway.connectors.tables.connector import TableSinkConnector
from sluiceway.connectors.tables.task import TableSinkTask
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.store import TableStore


def _store(options: TableOptions) -> TableStore:
    from sluiceway.connectors.iceberg.store import IcebergStore  # so that listing plugins does not need PyIceberg

    return IcebergStore(options)


class IcebergSinkTask(TableSinkTask):
    """Writes records to Iceberg tables."""

    def options_of(self, config: Mapping[str, str]) -> TableOptions:
        return IcebergSinkConnector.options_of(config)

    def store_of(self, options: TableOptions) -> TableStore:
        return _store(options)


class IcebergSinkConnector(TableSinkConnector):
    """Writes the records of its topics to Iceberg tables: appends, upserts and deletes rows, creates tables, and adds and widens
    columns. Each commit to a table contains the records' offsets, so each record is applied exactly once. Takes the config of
    Apache's sink; needs no control topic and no JVM.
    """

    task_class = IcebergSinkTask
    java_class = "org.apache.iceberg.connect.IcebergSinkConnector"
    java_task_class = "org.apache.iceberg.connect.IcebergSinkTask"
    prefix = PREFIX
    location_key = CATALOG_TYPE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return SINK

    @classmethod
    def store_of(cls, options: TableOptions) -> TableStore:
        return _store(options)

    @classmethod
    def key_of(cls, error: ConnectError, config: Mapping[str, str]) -> str:
        """Return the key of the login or the URI of a catalog that has one."""
        from sluiceway.connectors.iceberg.errors import is_login

        if is_login(error.__cause__):
            return TOKEN if config.get(TOKEN) else CREDENTIAL
        return URI if config.get(URI) else CATALOG_TYPE

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return problems(config)


class TabularIcebergSinkConnector(IcebergSinkConnector):
    """The Iceberg sink under the class name of Tabular's sink, from which Apache's came, for configs that name it."""

    java_class = "io.tabular.iceberg.connect.IcebergSinkConnector"
    java_task_class = "io.tabular.iceberg.connect.IcebergSinkTask"
