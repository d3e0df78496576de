"""The Delta tables in a folder. Runs on executors, and on the API server to validate and to change offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from deltalake import DeltaTable as DeltaRsTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import CommitProperties

from sluiceway.connectors.delta.config import PATH, STORAGE
from sluiceway.connectors.delta.errors import answered, reaching
from sluiceway.connectors.delta.partitions import check_columns
from sluiceway.connectors.delta.table import DeltaTable
from sluiceway.connectors.delta.types import check_names, column_type
from sluiceway.connectors.tables.config import CREATE_PROPS, TableOptions
from sluiceway.connectors.tables.store import TableStore
from sluiceway.errors import ConnectError

_RULES = ("delta.invariants", "delta.generationExpression", "delta.identity.")


class DeltaStore(TableStore):
    """A ``TableStore`` for a folder."""

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self._root = options.config[PATH].rstrip("/")
        self._storage = options.properties(STORAGE)

    def _location(self, name: str) -> str:
        return f"{self._root}/{name.replace('.', '/')}"

    def table(self, name: str) -> DeltaTable | None:
        """Load a table; None if it does not exist."""
        location = self._location(name)
        with reaching(f"Loading table {name} at {location}"):
            try:
                found = answered(lambda: DeltaRsTable(location, storage_options=self._storage))
            except TableNotFoundError:
                return None
        _check_features(found, name)
        table = DeltaTable(found, name, location, self._storage, self._options.connector)
        check_columns(name, table.schema, found.metadata().partition_columns)
        return table

    def create(self, name: str, schema: pa.Schema, partition_by: Sequence[str], id_columns: Sequence[str]) -> DeltaTable:
        """Create a table, unless another task has."""
        for column in {*partition_by, *id_columns} - set(schema.names):
            raise ConnectError(
                f"Table {name} cannot be created: the records have no field {column} to partition by or to identify rows."
            )
        check_columns(name, schema, partition_by)
        location = self._location(name)
        configuration = self._options.properties(CREATE_PROPS) or None
        with reaching(f"Creating table {name} at {location}"), suppress(CommitFailedError):  # another task may create it now
            DeltaRsTable.create(
                location,
                schema,
                mode="ignore",
                partition_by=list(partition_by),
                configuration=configuration,
                storage_options=self._storage,
                commit_properties=CommitProperties(max_commit_retries=0),  # a retry would write this schema over the other's
            )
        table = self.table(name)
        if table is None:
            raise ConnectError(f"Table {name} was dropped while it was created. Restart the task.")
        return table

    def arrow_type(self, type_: pa.DataType, path: str = "") -> pa.DataType:
        return column_type(type_, path)

    def check_names(self, columns: pa.Schema) -> None:
        check_names(list(columns))

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        """Delta's type widening is a table feature that delta-rs does not write."""
        return False

    def names(self) -> Collection[str]:
        """Return the listed tables, or with dynamic routing every table in the folder."""
        if not self._options.dynamic:
            return self._options.tables
        with reaching(f"Listing the tables in {self._root}"):
            return list(self._found(""))

    def _found(self, folder: str) -> Iterator[str]:
        from deltalake.fs import DeltaStorageHandler
        from pyarrow import fs

        files = fs.PyFileSystem(DeltaStorageHandler(self._root, self._storage))
        for info in files.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
            if info.type is fs.FileType.Directory and not info.base_name.startswith("_"):
                path = info.path.strip("/")
                if files.get_file_info(f"{path}/_delta_log").type is fs.FileType.Directory:
                    yield path.replace("/", ".")
                else:
                    yield from self._found(path)


def _check_features(table: DeltaRsTable, name: str) -> None:
    """Raise ConnectError for a table with rules that a writer has to apply to each row: the sink writes data files itself."""
    settings = table.metadata().configuration
    found = [key for key in settings if key.startswith("delta.constraints.")]
    if settings.get("delta.columnMapping.mode", "none") != "none":
        found.append("delta.columnMapping.mode")
    for field in table.schema().fields:
        found += [f"{key} of column {field.name}" for key in field.metadata if key.startswith(_RULES)]
    if found:
        raise ConnectError(
            f"Table {name} has {', '.join(found)}, which the sink cannot apply to the rows that it writes. "
            "Remove them, or write to another table."
        )
