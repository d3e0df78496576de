"""Reads and changes tables of a Hive metastore, by its Thrift interface. Runs on executors, and on the API server to validate."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sluiceway.connectors.files.hive.columns import Column
from sluiceway.connectors.files.hive.config import HiveOptions
from sluiceway.connectors.files.hive.table import Serde
from sluiceway.errors import ConnectError, MissingToolError, RetriableError
from sluiceway.installation import install_command

_TIMEOUT_MS = 20_000
_BATCH = 500
_TEXT = "string"


class MetastoreError(RetriableError):
    """The metastore did not answer or failed. The task tries again until ``sluiceway.unreachable.timeout.ms`` is over."""


class Metastore:
    """A connection to the first server that answers. Use it with ``connect``."""

    def __init__(self, client: Any, database: str) -> None:
        self._client = client
        self._database = database

    def database_exists(self) -> bool:
        with metastore_errors(f"look up the database {self._database}"):
            return _found(lambda: self._client.get_database(self._database)) is not None

    def create_database(self) -> None:
        """Create the database, unless it exists."""
        from hive_metastore import ttypes

        if not self.database_exists():
            with metastore_errors(f"create the database {self._database}"):
                try:
                    self._client.create_database(ttypes.Database(name=self._database, parameters={}))
                except ttypes.AlreadyExistsException:
                    return

    def table(self, name: str) -> Any:
        """Return a table of the Thrift interface, None if there is none."""
        with metastore_errors(f"look up the table {self._database}.{name}"):
            return _found(lambda: self._client.get_table(self._database, name))

    def create_table(
        self,
        name: str,
        columns: Sequence[Column],
        partitions: Sequence[str],
        location: str,
        serde: Serde,
        parameters: Mapping[str, str],
    ) -> None:
        """Create an external table, unless another task has just done so."""
        from hive_metastore import ttypes

        storage = ttypes.StorageDescriptor(
            cols=fields(columns),
            location=location,
            inputFormat=serde.input,
            outputFormat=serde.output,
            compressed=False,
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(serializationLib=serde.library, parameters={"serialization.format": "1"}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )
        table = ttypes.Table(
            tableName=name,
            dbName=self._database,
            owner="sluiceway",
            retention=0,
            sd=storage,
            partitionKeys=fields(Column(each, _TEXT) for each in partitions),
            parameters={"EXTERNAL": "TRUE", **parameters},
            tableType="EXTERNAL_TABLE",
        )
        with metastore_errors(f"create the table {self._database}.{name} at {location}"):
            try:
                self._client.create_table(table)
            except ttypes.AlreadyExistsException:
                return

    def alter_table(self, table: Any, *, cascade: bool) -> None:
        """Replace a table's definition; with ``cascade`` also the columns of its partitions, which Hive reads by them."""
        from hive_metastore import ttypes

        context = ttypes.EnvironmentContext(properties={"CASCADE": "true"} if cascade else {})
        with metastore_errors(f"change the table {self._database}.{table.tableName}"):
            self._client.alter_table_with_environment_context(self._database, table.tableName, table, context)

    def add_partitions(self, table: Any, partitions: Sequence[tuple[Sequence[str], str]]) -> None:
        """Add partitions by their values and locations; those that exist stay."""
        from hive_metastore import ttypes

        for start in range(0, len(partitions), _BATCH):
            batch = [_partition(table, values, location) for values, location in partitions[start : start + _BATCH]]
            request = ttypes.AddPartitionsRequest(
                dbName=self._database, tblName=table.tableName, parts=batch, ifNotExists=True, needResult=False
            )
            with metastore_errors(f"add partitions to the table {self._database}.{table.tableName}"):
                self._client.add_partitions_req(request)


def fields(columns: Any) -> list[Any]:
    """Return columns as those of the Thrift interface."""
    from hive_metastore import ttypes

    return [ttypes.FieldSchema(name=name, type=kind, comment=None) for name, kind in columns]


@contextmanager
def connect(options: HiveOptions) -> Iterator[Metastore]:
    """Connect to the first server that answers. Raises MetastoreError, ConnectError, and MissingToolError without a package."""
    try:
        from hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport, TTransportException
    except ImportError as error:
        raise MissingToolError(f"The Hive integration needs the package {error.name}. Run: {install_command('hive')}.") from error
    failures = []
    for host, port in options.addresses():
        socket = TSocket(host, port)
        socket.setTimeout(_TIMEOUT_MS)
        transport = TBufferedTransport(socket)
        try:
            transport.open()
        except (TTransportException, OSError) as error:
            failures.append(f"thrift://{host}:{port}: {getattr(error, 'message', None) or error}")
            continue
        try:
            yield Metastore(Client(TBinaryProtocol(transport)), options.database)
        finally:
            transport.close()
        return
    raise MetastoreError(
        f"Cannot reach the Hive metastore ({'; '.join(failures)}). Check hive.metastore.uris and that the metastore runs."
    )


@contextmanager
def metastore_errors(action: str) -> Iterator[None]:
    """Raise MetastoreError for failures that may pass, and ConnectError if the metastore refuses what was asked."""
    from hive_metastore import ttypes
    from thrift.Thrift import TException

    try:
        yield
    except (ttypes.InvalidObjectException, ttypes.InvalidOperationException, ttypes.InvalidInputException) as error:
        raise ConnectError(f"The Hive metastore refuses to {action}: {error.message}") from error
    except (TException, OSError) as error:
        text = getattr(error, "message", None) or str(error) or type(error).__name__
        raise MetastoreError(
            f"The Hive metastore failed to {action}: {text}. Check its log, and that it reaches the storage itself."
        ) from error


def _found(get: Any) -> Any:
    from hive_metastore import ttypes

    try:
        return get()
    except ttypes.NoSuchObjectException:
        return None


def _partition(table: Any, values: Sequence[str], location: str) -> Any:
    from hive_metastore import ttypes

    storage = copy.copy(table.sd)
    storage.location = location
    return ttypes.Partition(values=list(values), dbName=table.dbName, tableName=table.tableName, sd=storage, parameters={})
