"""Registers the files of commits in a Hive metastore. Runs on executors.

Registration follows the commit and can be repeated: what is there already stays. A commit's entry in the commit log has what to
register, so that whoever opens the partition next repeats it if it was interrupted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sluiceway.connectors.files.commit_log import TableFiles
from sluiceway.connectors.files.filesystem import FileSystem
from sluiceway.connectors.files.hive.columns import Column, merged
from sluiceway.connectors.files.hive.config import HiveOptions
from sluiceway.connectors.files.hive.metastore import Metastore, MetastoreError, connect, fields
from sluiceway.connectors.files.hive.table import AVRO_SCHEMA, SERDES, TableLayout, same_location
from sluiceway.data import Schema
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_INCOMPLETE = "sluiceway.partitions.incomplete"
"""A new table's parameter until the folders that were there before it are its partitions."""
_ATTEMPTS = 5


class Registrar:
    """Keeps the tables of one connector. ``folder`` returns a topic's folder, ``location`` the URL of a path for Hive."""

    def __init__(
        self, options: HiveOptions, layout: TableLayout, folder: Callable[[str], str], location: Callable[[str], str]
    ) -> None:
        self._options = options
        self._layout = layout
        self._folder = folder
        self._location = location
        self._allowed: set[Schema] = set()

    def check(self, schema: Schema | None) -> None:
        """Raise DataError if Hive cannot have a table of a schema."""
        if schema not in self._allowed:
            self._layout.files("", schema, ())
            assert schema is not None  # noqa: S101 (refused)
            self._allowed.add(schema)

    def files(self, topic: str, schema: Schema | None, folders: Sequence[str]) -> TableFiles:
        """Return what a commit adds to a topic's table."""
        return self._layout.files(topic, schema, folders)

    def register(self, fs: FileSystem, commit: Sequence[TableFiles]) -> None:
        """Create and change tables, and add partitions.

        Raises MetastoreError and StorageError, and ConnectError if a table cannot hold the files.
        """
        with connect(self._options) as metastore:
            for files in commit:
                self._register(fs, metastore, files)

    def _register(self, fs: FileSystem, metastore: Metastore, files: TableFiles) -> None:
        table = self._table(metastore, files)
        folders = list(files.folders)
        incomplete = _INCOMPLETE in (table.parameters or {})
        if incomplete:
            folders = list(dict.fromkeys([*folders, *self._existing(fs, self._folder(files.topic), "", 0)]))
        metastore.add_partitions(table, list(self._partitions(files.topic, folders)))
        if incomplete:
            del table.parameters[_INCOMPLETE]
            metastore.alter_table(table, cascade=False)
            log.info("Registered %d folders of the topic %s in the Hive table %s", len(folders), files.topic, self._name(table))

    def _table(self, metastore: Metastore, files: TableFiles) -> Any:
        """Return the table with all columns, which is created or changed for that."""
        name = self._options.table_of(files.topic)
        for _ in range(_ATTEMPTS):
            table = metastore.table(name)
            if table is None:
                self._create(metastore, name, files)
                continue
            self._check_is_own(table, files.topic)
            if not self._evolve(table, files):
                return table
            metastore.alter_table(table, cascade=True)
            log.info("Changed the columns of the Hive table %s to those of the topic %s", self._name(table), files.topic)
        raise MetastoreError(f"The Hive table {self._options.database}.{name} is changed by others at the same time.")

    def _create(self, metastore: Metastore, name: str, files: TableFiles) -> None:
        parameters = {_INCOMPLETE: "true", **({AVRO_SCHEMA: files.avro_schema} if files.avro_schema else {})}
        location = self._location(self._folder(files.topic))
        metastore.create_database()
        metastore.create_table(
            name,
            [Column(*each) for each in files.columns],
            self._layout.partitions,
            location,
            SERDES[self._layout.format],
            parameters,
        )
        log.info("Created the Hive table %s.%s at %s", self._options.database, name, location)

    def _check_is_own(self, table: Any, topic: str) -> None:
        location = self._location(self._folder(topic))
        partitions = tuple(key.name for key in table.partitionKeys or ())
        library = table.sd.serdeInfo.serializationLib
        if not same_location(table.sd.location or "", location):
            difference = f"is at {table.sd.location}, but the topic {topic} at {location}"
        elif partitions != self._layout.partitions:
            wanted = ", ".join(self._layout.partitions)
            difference = f"has the partitions {', '.join(partitions) or 'none'}, but the connector writes {wanted}"
        elif library != SERDES[self._layout.format].library:
            difference = f"has files of {library}, but the connector writes {self._layout.format}"
        else:
            return
        raise ConnectError(
            f"The Hive table {self._name(table)} {difference}. Drop the table, which keeps the files of an external one, or set "
            "another hive.database or hive.table.name."
        )

    def _evolve(self, table: Any, files: TableFiles) -> bool:
        """Add the columns of new files to a table's definition. Return whether that changed it."""
        before = [Column(each.name, each.type) for each in table.sd.cols]
        after, conflicts = merged(before, [Column(*each) for each in files.columns])
        if conflicts:
            known, new = dict(before), dict(files.columns)
            differences = "; ".join(f"{name} is {known[name]} in the table, {new[name]} in the files" for name in conflicts)
            raise ConnectError(
                f"The columns of the Hive table {self._name(table)} do not fit the files of the topic {files.topic}: "
                f"{differences}. The files are complete. Drop the table to have it created again, or change its columns, then "
                "restart the task."
            )
        changed = after != before
        if changed:
            table.sd.cols = fields(after)
        if files.avro_schema and self._layout.replaces(files.avro_schema, table.parameters.get(AVRO_SCHEMA, "")):
            table.parameters[AVRO_SCHEMA] = files.avro_schema
            changed = True
        return changed

    def _partitions(self, topic: str, folders: Sequence[str]) -> Iterator[tuple[list[str], str]]:
        for folder in folders:
            values = self._layout.values(folder)
            if values is not None:  # None for one that another partitioner has written
                yield values, self._location(f"{self._folder(topic)}/{folder}")

    def _existing(self, fs: FileSystem, base: str, folder: str, depth: int) -> Iterator[str]:
        """Return the folders of partitions below a topic's folder."""
        if depth == len(self._layout.partitions):
            yield folder
            return
        prefix = f"{self._layout.partitions[depth]}="
        for name in sorted(fs.folders(f"{base}/{folder}".rstrip("/"))):
            if name.lower().startswith(prefix):
                yield from self._existing(fs, base, f"{folder}/{name}".lstrip("/"), depth + 1)

    def _name(self, table: Any) -> str:
        return f"{self._options.database}.{table.tableName}"
