"""The tables of an Iceberg catalog. Runs on executors, and on the API server to validate and to change offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.utils.config import Config

from sluiceway.connectors.iceberg.catalog import catalog_properties
from sluiceway.connectors.iceberg.config import URI
from sluiceway.connectors.iceberg.errors import is_conflict, reaching
from sluiceway.connectors.iceberg.partitions import partition_transforms
from sluiceway.connectors.iceberg.table import IcebergTable
from sluiceway.connectors.iceberg.types import column_type, widens
from sluiceway.connectors.tables.config import CREATE_PROPS, WRITE_PROPS, TableOptions, keys_below
from sluiceway.connectors.tables.store import TableStore
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from requests import Session


_WITH_URI = {"rest", "sql", "hive"}
COMMIT_BRANCH = "tables.default-commit-branch"
_TIMEOUTS = {"rest.client.connection-timeout-ms": "10000", "rest.client.socket-timeout-ms": "60000"}


class OpenedCatalog:
    """The catalog of a connector's config, loaded when it is first needed."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._name = config.get("iceberg.catalog", "iceberg")
        self._properties = catalog_properties(keys_below(config, "iceberg.catalog."))
        self._loaded: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """The catalog. An SQL catalog is created if it does not exist.

        Raises UnreachableError, and ConnectError if the catalog refuses the login or has no URI.
        """
        if self._loaded is None:
            properties = self._checked()
            with reaching(f"Connecting to catalog {self._name}"):
                if self._properties["type"] == "rest":
                    self._loaded = TimedRestCatalog(self._name, **cast("dict[str, str]", properties))
                elif self._properties["type"] == "sql":
                    self._loaded = self._sql_catalog(str(properties["uri"]))
                else:
                    self._loaded = load_catalog(self._name, **self._properties)
        return self._loaded

    @property
    def existing(self) -> Catalog | None:
        """The catalog, None for an SQL catalog that does not exist: PyIceberg creates it by connecting. Raises as ``catalog``."""
        if self._loaded is None and self._properties["type"] == "sql":
            uri = str(self._checked()["uri"])
            with reaching(f"Connecting to catalog {self._name}"):
                if not _has_tables(uri):
                    return None
        return self.catalog

    def _checked(self) -> Mapping[str, object]:
        """Return the catalog's properties, those of PyIceberg's own configuration too. Raises ConfigError without a URI."""
        properties = {**(Config().get_catalog_config(self._name) or {}), **self._properties}
        kind = self._properties["type"]
        if kind in _WITH_URI and "uri" not in properties:
            raise ConfigError(URI, None, f"must be set for a catalog of type {kind}")
        return properties

    def _sql_catalog(self, uri: str) -> Catalog:
        """Load an SQL catalog. Of tasks that create its two tables at once, all but one get an error for each table."""
        from sqlalchemy.exc import DBAPIError

        for _ in range(2):
            try:
                return load_catalog(self._name, **self._properties)
            except DBAPIError as error:
                if error.statement is None or not _has_tables(uri):  # without one, it is the connection's
                    raise
        return load_catalog(self._name, **self._properties)

    def close(self) -> None:
        if self._loaded is not None and hasattr(self._loaded, "close"):
            self._loaded.close()


def _has_tables(uri: str) -> bool:
    """Return True if a database has an SQL catalog's tables. Creates no file of SQLite, which connecting would."""
    from sqlalchemy import create_engine, inspect, make_url

    url = make_url(uri)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return False
    engine = create_engine(url)
    try:
        return inspect(engine).has_table("iceberg_tables")
    finally:
        engine.dispose()


def _create_namespace(catalog: Catalog, name: str) -> None:
    try:
        catalog.create_namespace(name)
    except NamespaceAlreadyExistsError:
        pass
    except Exception as error:
        if not is_conflict(error) or not catalog.namespace_exists(name):
            raise


class IcebergStore(TableStore):
    """A ``TableStore`` for a catalog."""

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self._opened = OpenedCatalog(options.config)

    @property
    def catalog(self) -> Catalog:
        return self._opened.catalog

    def table(self, name: str) -> IcebergTable | None:
        """Load a table; None if it does not exist."""
        catalog = self._opened.existing
        if catalog is None:
            return None
        with reaching(f"Loading table {name}"):
            try:
                found = catalog.load_table(name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
        options = self._options
        branch = options.setting(name, "commit-branch", COMMIT_BRANCH) or "main"
        return IcebergTable(found, name, options.connector, branch, options.properties(WRITE_PROPS))

    def create(self, name: str, schema: pa.Schema, partition_by: Sequence[str], id_columns: Sequence[str]) -> IcebergTable:
        """Create a table and its namespace, unless another task has."""
        transforms = partition_transforms(partition_by)
        for column in {*(column for column, _ in transforms), *id_columns} - set(schema.names):
            raise ConnectError(
                f"Table {name} cannot be created: the records have no field {column} to partition by or to identify rows."
            )
        catalog = self.catalog
        with reaching(f"Creating table {name}"):
            namespace, _, _ = name.rpartition(".")
            _create_namespace(catalog, namespace)
            try:
                properties = self._options.properties(CREATE_PROPS)
                with catalog.create_table_transaction(name, schema, properties=properties) as transaction:
                    if transforms:
                        with transaction.update_spec() as spec:
                            for column, transform in transforms:
                                spec.add_field(column, transform)
                    if id_columns:
                        with transaction.update_schema() as update:
                            update.set_identifier_fields(*id_columns)
            except TableAlreadyExistsError:
                pass
            except CommitFailedException:  # another task has created it since the transaction began
                if not catalog.table_exists(name):
                    raise
        table = self.table(name)
        if table is None:
            raise ConnectError(f"Table {name} was dropped while it was created. Restart the task.")
        return table

    def arrow_type(self, type_: pa.DataType, path: str = "") -> pa.DataType:
        return column_type(type_, path)

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        return widens(old, new)

    def names(self) -> Collection[str]:
        """Return the listed tables, or with dynamic routing every table of the catalog that holds offsets of the connector."""
        if not self._options.dynamic:
            return self._options.tables
        catalog = self._opened.existing
        if catalog is None:
            return ()
        with reaching("Listing the catalog's tables"):
            every = [".".join(table) for namespace in catalog.list_namespaces() for table in catalog.list_tables(namespace)]
        return [name for name in every if (table := self.table(name)) is not None and table.has_offsets]

    def close(self) -> None:
        self._opened.close()


class TimedRestCatalog(RestCatalog):
    """PyIceberg's REST catalog with the timeouts of Iceberg's Java client, in milliseconds.

    PyIceberg waits for an answer without limit, so a task would hang when its catalog's host is cut off. A request that times
    out raises an OSError, as one that is refused does.
    """

    def _create_session(self) -> Session:
        session = super()._create_session()
        connect, read = (float(self.properties.get(key, usual)) / 1000 for key, usual in _TIMEOUTS.items())
        session.request = partial(session.request, timeout=(connect, read))  # type: ignore[method-assign]  # all verbs call it
        return session
