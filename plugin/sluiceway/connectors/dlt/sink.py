"""The dlt sink and its task: writes topics to the destinations of dlt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api import IntervalRepeat
from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.dlt import sink_config as keys
from sluiceway.connectors.tables.connector import TableSinkConnector
from sluiceway.connectors.tables.format import WritingFormat
from sluiceway.connectors.tables.task import TableSinkTask
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.folders import scratch_folder

if TYPE_CHECKING:
    from sluiceway.connectors.tables.config import TableOptions
    from sluiceway.connectors.tables.store import TableStore


class _Dlt(WritingFormat):
    prefix = keys.PREFIX
    definition = keys.SINK
    location_key = keys.DESTINATION
    by_topic = True

    @classmethod
    def store_of(cls, options: TableOptions) -> TableStore:
        from sluiceway.connectors.dlt.store import DltStore  # so that listing plugins does not need PyArrow

        return DltStore(options)

    @classmethod
    def own_problems(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        return keys.problems(config)

    @classmethod
    def shared_options(cls, config: Mapping[str, str]) -> TableOptions:
        return super().shared_options(keys.with_id_columns(config))


class DltSinkTask(_Dlt, TableSinkTask):
    """Loads records into a destination."""


class DltSinkConnector(_Dlt, TableSinkConnector):
    """Writes the records of its topics to a destination of dlt, the data load tool: warehouses, databases, and files. Creates
    tables, adds columns, appends, or merges and deletes by keys. The offsets are state of the same load. One task loads, by a
    process of its own.
    """

    task_class = DltSinkTask
    replaces_rows = False

    @classmethod
    def interval_repeat(cls, config: Mapping[str, str]) -> IntervalRepeat:
        merges = config.get(keys.UPSERT, "").strip().lower() == "true"
        return IntervalRepeat.MERGES if merges else IntervalRepeat.ADDS

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return super().check(keys.with_id_columns(config))

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Check the keys, the destination, and the login, with a folder of its own: a task that runs keeps its folder."""
        with scratch_folder("dlt") as folder:
            found = super().validate({**config, keys.FOLDER: str(folder)})
        found[keys.FOLDER] = cls.check(config)[keys.FOLDER]
        return found

    @classmethod
    def try_tables(cls, options: TableOptions, store: TableStore, found: Mapping[str, ValidatedValue]) -> None:
        store.names()
        super().try_tables(options, store, found)

    @classmethod
    def key_of(cls, error: ConnectError, config: Mapping[str, str]) -> str:
        return error.name if isinstance(error, ConfigError) and error.name else cls.location_key

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return one config: the offsets of all partitions are in the state of one pipeline of dlt."""
        return [self._config]
