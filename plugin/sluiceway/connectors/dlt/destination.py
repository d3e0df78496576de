"""A destination of dlt that takes load packages with Kafka's offsets as state. Runs in the loader's process.

Each load is one package: the rows of all tables, and the offsets as state of the same pipeline. dlt loads it table by table, and
marks it as complete at the end. A package that a crash has left is completed and never dropped, because some of its tables may be
loaded.
"""

from __future__ import annotations

import copy
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dlt
import pyarrow as pa
from dlt.common.destination.exceptions import UnknownDestinationModule
from dlt.common.destination.reference import Destination as DltDestination
from dlt.common.exceptions import MissingDependencyException
from dlt.common.schema import Schema
from dlt.extract import DltResource, DltSource

from sluiceway.connectors.dlt import sink_config as keys
from sluiceway.connectors.dlt.cells import JSON
from sluiceway.connectors.dlt.internals import use_values
from sluiceway.connectors.dlt.sink_config import DELETED_COLUMN, DltSinkConfig
from sluiceway.errors import ConfigError, ConnectError

log = logging.getLogger(__name__)

_OFFSETS = "offsets"
_LOCK, _FILES = "lock", "files"
_OWN_COLUMNS = "_dlt_"
_LONGEST_DECIMAL, _LONGEST_NAME = 76, 40
_DEFAULTS: Mapping[str, Any] = {
    "runtime": {"log_level": "WARNING", "dlthub_telemetry": False},
    "normalize": {"workers": 1},  # a pool of processes costs more than it saves
    "load": {"workers": 4, "raise_on_failed_jobs": True, "delete_completed_jobs": True},
}
_TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "json": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "binary": pa.binary(),
}

Offsets = dict[str, dict[str, int]]


class FencedLoadError(ConnectError):
    """Another task has loaded records of the same partitions; nothing of this load was sent."""


class PendingError(ConnectError):
    """A load failed that may take effect when it is completed."""


class Destination:
    """The destination of one connector. Raises what dlt raises, too."""

    def __init__(self, config: DltSinkConfig) -> None:
        self._config = config
        use_values(_merged(_DEFAULTS, config.values))
        self._name = _identifier("sluiceway", config.connector)
        self._source = _identifier("kafka", config.owner)
        folder = Path(config.folder).absolute()
        self.files = folder / _FILES / self._name
        self.files.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = (self.files.parent / f"{self._name}.{_LOCK}").open("w")
        os.chdir(folder)  # where DuckDB makes its file if the config names none; a validation has a folder that is removed
        self._lock_folder()
        self._pipeline = dlt.pipeline(
            self._name,
            destination=_destination(config),
            dataset_name=config.dataset or config.owner,
            pipelines_dir=str(folder),
        )

    def open(self) -> dict[str, Any]:
        """Complete a load that a crash has left, and return the state of the destination.

        That is ``offsets``, and ``tables``: the Arrow schema of each table, serialized as hexadecimal digits.
        """
        self._check_strategy()
        self._complete()
        self._pipeline.sync_destination()
        if self._source not in self._pipeline.schemas:
            self._load_schema()
        return self.described()

    def described(self) -> dict[str, Any]:
        """Return what ``open`` returns, without asking the destination."""
        return {"offsets": self._offsets(), "tables": {name: bytes(each.serialize()).hex() for name, each in self._tables()}}

    def names(self, names: Sequence[str], *, table: bool) -> list[str]:
        """Return names as the destination writes them."""
        naming = self._pipeline.naming
        return [naming.normalize_table_identifier(each) if table else naming.normalize_identifier(each) for each in names]

    def load(self, tables: Sequence[Mapping[str, Any]], expected: Offsets, offsets: Offsets) -> None:
        """Load rows of tables with the next offsets.

        Each of ``tables`` has ``name``, ``files`` with Arrow's streams, ``keys`` to merge by, ``json`` and ``partition``, which
        are names of columns, and ``deletes``: whether the rows have ``DELETED_COLUMN``. Raises FencedError if the destination's
        offsets are others than ``expected``, and PendingError.
        """
        if self._pipeline.has_pending_data:
            raise PendingError("A load before this one is not complete.")
        self._pipeline.sync_destination()
        self._check_fence(expected)
        resources = [self._resource(each) for each in tables]
        source = DltSource(Schema(self._source), self._source, [*resources, self._state_of(offsets)])
        self._pipeline.extract(source, loader_file_format=self._config.file_format)  # type: ignore[arg-type]
        self._complete()

    def set_offsets(self, offsets: Mapping[str, Mapping[str, int | None]]) -> None:
        """Set offsets, or remove them with None, so that loads of other tasks that are under way fail."""
        self.open()
        with self._pipeline.managed_state(extract_state=True) as state:
            stored: Offsets = state.setdefault("sources", {}).setdefault(self._source, {}).setdefault(_OFFSETS, {})
            for topic, partitions in offsets.items():
                for partition, offset in partitions.items():
                    if offset is None:
                        stored.get(topic, {}).pop(partition, None)
                    else:
                        stored.setdefault(topic, {})[partition] = offset
        self._complete()

    def forget(self) -> None:
        """Remove files of rows that no load has taken."""
        for each in self.files.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink(missing_ok=True)

    def _load_schema(self) -> None:
        """Load the columns that runs of other intervals have made: each has a pipeline of its own, and so a state."""
        self._pipeline.schemas.save_schema(Schema(self._source))  # else there is no client for it
        opened: Any = self._pipeline.destination_client(self._source)
        with opened as client:
            stored = client.get_stored_schema(self._source) if client.is_storage_initialized() else None
        if stored is not None:
            self._pipeline.schemas.save_schema(Schema.from_stored_schema(json.loads(stored.schema)))

    def _lock_folder(self) -> None:
        """Hold the folder as long as this process lives. Raises PendingError if another one does."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PendingError(
                f"Another task of connector {self._config.connector} on this machine has the folder {self._config.folder} "
                f"({keys.FOLDER}). It is waited for."
            ) from None

    def _complete(self) -> None:
        """Load what waits. A load that fails stays, and is completed by the next call."""
        if not self._pipeline.has_pending_data:
            return
        self._pipeline.normalize()
        self._pipeline.load()

    def _check_strategy(self) -> None:
        """Refuse merges that dlt would silently turn into appends."""
        config = self._config
        if not config.upsert:
            return
        possible = _merge_strategies(self._pipeline.destination, config.table_format)
        where = f"{config.destination}{f' with {keys.TABLE_FORMAT}={config.table_format}' if config.table_format else ''}"
        if not possible:
            advice = f" Set {keys.TABLE_FORMAT}=delta or iceberg." if config.destination.endswith("filesystem") else ""
            raise ConfigError(keys.UPSERT, True, f"cannot be used with {where}, which cannot replace rows.{advice}")
        if config.strategy is not None and config.strategy not in possible:
            raise ConfigError(keys.STRATEGY, config.strategy, f"cannot be used with {where}, which has {', '.join(possible)}")

    def _check_fence(self, expected: Offsets) -> None:
        stored = self._offsets()
        other = [
            f"{topic}-{partition}: {stored.get(topic, {}).get(partition)} instead of {offset}"
            for topic, partitions in expected.items()
            for partition, offset in partitions.items()
            if stored.get(topic, {}).get(partition) != offset
        ]
        if other:
            raise FencedLoadError(f"Another task has loaded records of the connector: it has offsets {', '.join(other)}.")

    def _offsets(self) -> Offsets:
        state: Any = self._pipeline.state
        return copy.deepcopy(state.get("sources", {}).get(self._source, {}).get(_OFFSETS, {}))

    def _state_of(self, offsets: Offsets) -> DltResource:
        def moved() -> Iterator[Any]:
            stored = dlt.current.source_state().setdefault(_OFFSETS, {})
            for topic, partitions in offsets.items():
                stored.setdefault(topic, {}).update(partitions)
            yield from ()

        return dlt.resource(moved, name="kafka_offsets", selected=True)()

    def _resource(self, table: Mapping[str, Any]) -> DltResource:
        config, by = self._config, list(table["keys"])
        columns: dict[str, Any] = {name: {"data_type": "json"} for name in table["json"]}
        for name in table["partition"]:
            columns.setdefault(name, {})["partition"] = True
        if table["deletes"]:
            columns[DELETED_COLUMN] = {"data_type": "bool", "hard_delete": True}
        disposition: Any = "append"
        if config.upsert:
            disposition = {"disposition": "merge", **({"strategy": config.strategy} if config.strategy else {})}

        def rows() -> Iterator[pa.Table]:
            for path in table["files"]:
                with pa.memory_map(path) as stream:
                    yield pa.ipc.open_file(stream).read_all()

        make: Any = dlt.resource  # its overloads do not take what comes from a config
        resource: DltResource = make(
            rows,
            name=table["name"],
            table_name=table["name"],
            columns=[{"name": name, **hints} for name, hints in columns.items()],
            write_disposition=disposition,
            primary_key=by if config.upsert else None,
            table_format=config.table_format,
        )()
        return resource

    def _tables(self) -> Iterator[tuple[str, pa.Schema]]:
        """Yield the tables that dlt knows in the destination, with the columns of records."""
        if self._source not in self._pipeline.schemas:
            return
        for name, table in self._pipeline.schemas[self._source].tables.items():
            columns = [each for each in table["columns"].values() if not _is_own(str(each["name"])) and "data_type" in each]
            if columns and not name.startswith(_OWN_COLUMNS):
                yield name, pa.schema([_field(each) for each in columns])


def _merge_strategies(destination: Any, table_format: str | None) -> list[str]:
    """Return the strategies by which a destination merges into tables of a format; none if dlt would append instead."""
    capabilities = destination.capabilities()
    possible = capabilities.supported_merge_strategies or ()
    if capabilities.merge_strategies_selector is not None:
        table = {"table_format": table_format or capabilities.preferred_table_format}
        possible = capabilities.merge_strategies_selector(possible, table_schema=table)
    return [str(each) for each in possible]


def _identifier(prefix: str, name: str) -> str:
    """Return a name for dlt, which takes a to z, digits, and underscores. Two names never become one."""
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    mark = "" if plain == name and len(name) <= _LONGEST_NAME else f"_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"{prefix}_{plain[:_LONGEST_NAME]}{mark}"


def _is_own(column: str) -> bool:
    return column.startswith(_OWN_COLUMNS) or column == DELETED_COLUMN


def _field(column: Mapping[str, Any]) -> pa.Field[Any]:
    kind = column["data_type"]
    if kind == "timestamp":
        type_: pa.DataType = pa.timestamp("us", "UTC" if column.get("timezone", True) else None)
    elif kind in {"decimal", "wei"}:
        precision, scale = column.get("precision"), column.get("scale")
        type_ = pa.decimal128(38, 9 if scale is None else scale) if precision is None else _decimal(precision, scale or 0)
    else:
        type_ = _TYPES[kind]
    return pa.field(column["name"], type_, metadata=JSON if kind == "json" else None)


def _decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(min(precision, _LONGEST_DECIMAL), scale)


def _destination(config: DltSinkConfig) -> Any:
    try:
        return DltDestination.from_reference(config.destination, **config.args)
    except UnknownDestinationModule as error:
        raise ConfigError(keys.DESTINATION, config.destination, f"is no destination of dlt: {error}") from None
    except MissingDependencyException as error:
        raise ConfigError(keys.DESTINATION, config.destination, f"needs packages that are not installed: {error}") from None
    except TypeError as error:
        raise ConfigError(keys.ARGS, None, f"does not fit {config.destination}: {error}") from None


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the values of another one over those of the first."""
    merged = dict(base)
    for name, value in more.items():
        inner = merged.get(name)
        merged[name] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return merged
