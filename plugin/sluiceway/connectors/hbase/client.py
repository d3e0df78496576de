"""A client of HBase's Thrift 2 server: the calls of connectors, and the meaning of its errors. Runs on executors and drivers."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sluiceway.connectors.errors import UnreachableError
from sluiceway.errors import ConfigError, ConnectError, DataError, MissingToolError
from sluiceway.installation import install_command

log = logging.getLogger(__name__)

CA = "hbase.thrift.cacert"
NOW = 2**63 - 1
"""The end of all time ranges."""
_IDLE_SECONDS = 20.0  # a Thrift server closes a connection on which it has read nothing for a minute
_CONNECT_SECONDS = 10.0
_LONGEST_REASON = 120
_NEVER = 2**31 - 1  # seconds to live

# HBase's errors that trying again does not mend. The messages of others may have row keys and cells.
_MISSING_TABLE = frozenset({"TableNotFoundException", "NamespaceNotFoundException"})
_REFUSED = frozenset(
    {"NoSuchColumnFamilyException", "IllegalArgumentException", "DoNotRetryIOException", "FailedSanityCheckException"}
)
_LASTING = frozenset({"AccessDeniedException", "InvalidFamilyOperationException", "TableExistsException"})
_PASSING = frozenset({"TableNotEnabledException", "NotServingRegionException", "RegionTooBusyException", "ThrottlingException"})
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Exception|Error)\b")


class MissingTableError(ConnectError):
    """HBase has no such table."""


class RefusedError(DataError):
    """HBase does not take what it was sent."""


@dataclass(frozen=True, slots=True)
class Gateways:
    """The Thrift servers, of which any will do, and how to talk to them. ``timeout`` is in seconds."""

    addresses: tuple[tuple[str, int], ...]
    framed: bool = False
    compact: bool = False
    timeout: float = 60.0
    tls: bool = False
    ca: str | None = None
    insecure: bool = False

    def __str__(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses)


class Cell(Protocol):
    """The newest version of a column of a row, as thriftpy2 reads it. ``timestamp`` is in ms since 1970."""

    family: bytes
    qualifier: bytes
    value: bytes
    timestamp: int


def column_of(cell: Cell) -> str:
    """Return ``family:qualifier``."""
    return f"{cell.family.decode()}:{cell.qualifier.decode(errors='backslashreplace')}"


class Row(NamedTuple):
    key: bytes
    cells: Sequence[Cell]


class Family(NamedTuple):
    """A column family. ``ttl`` is the seconds after which its cells are dropped, None for never."""

    name: bytes
    ttl: int | None = None
    ordered: bool = False
    """Whether cells that are put after a deletion are seen whatever their timestamp (NEW_VERSION_BEHAVIOR)."""


@dataclass(frozen=True, slots=True)
class Put:
    """Cells to write to a row: family, qualifier, and value. ``timestamp`` is None for the server's time."""

    key: bytes
    cells: tuple[tuple[bytes, bytes, bytes], ...]
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Columns to delete from a row, all of their versions up to the timestamp; without ``columns`` the row."""

    key: bytes
    columns: tuple[tuple[bytes, bytes], ...] = ()
    timestamp: int | None = None


@functools.cache
def _interface() -> Any:
    """Return the module of HBase's Thrift interface. Raises MissingToolError without the package."""
    try:
        import thriftpy2
    except ImportError as error:
        raise MissingToolError(
            f"HBase needs a Python package that is not installed ({error}). Run: {install_command('hbase')} in the "
            "Python environment of the tasks."
        ) from error
    return thriftpy2.load(str(Path(__file__).with_name("hbase.thrift")), module_name="sluiceway_hbase_thrift")


class HBaseClient:
    """Calls one of the Thrift servers, another one after a failure. Connects with its first call. Not thread-safe.

    Raises UnreachableError for failures that pass, MissingTableError, RefusedError for a request that HBase never takes, and
    ConnectError for other errors that last.
    """

    def __init__(self, gateways: Gateways) -> None:
        self.gateways = gateways
        self._thrift = _interface()
        self._next = 0
        self._client: Any = None
        self._used = 0.0
        self._answered = False  # the last call of this connection

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError):
                client.close()

    def scan(
        self,
        table: str,
        start: bytes = b"",
        stop: bytes = b"",
        *,
        most: int,
        since: int = 0,
        until: int = NOW,
        columns: Sequence[tuple[bytes, bytes | None]] = (),
    ) -> list[Row]:
        """Return the first rows from ``start`` to before ``stop`` (empty: the end) with cells in the time range, with these."""
        thrift = self._thrift
        scan = thrift.TScan(
            startRow=start,
            stopRow=stop,
            columns=self._columns(columns),
            caching=most,
            timeRange=thrift.TTimeRange(minStamp=since, maxStamp=until),
            cacheBlocks=False,
            limit=most,
        )
        return [Row(each.row, each.columnValues) for each in self._call("getScannerResults", table, table.encode(), scan, most)]

    def get(self, table: str, keys: Sequence[bytes], *, columns: Sequence[tuple[bytes, bytes | None]] = ()) -> list[Row]:
        """Return the rows with these keys that exist, with their newest cells."""
        asked = self._columns(columns)
        gets = [self._thrift.TGet(row=key, columns=asked) for key in keys]
        return [Row(each.row, each.columnValues) for each in self._call("getMultiple", table, table.encode(), gets) if each.row]

    def put(self, table: str, puts: Sequence[Put]) -> None:
        """Write all of these cells, or raise, having written any of them. A row may be there once only."""
        thrift = self._thrift
        written = [
            thrift.TPut(
                row=each.key,
                columnValues=[
                    thrift.TColumnValue(family=family, qualifier=qualifier, value=value)
                    for family, qualifier, value in each.cells
                ],
                timestamp=each.timestamp,
            )
            for each in puts
        ]
        self._call("putMultiple", table, table.encode(), written)

    def delete(self, table: str, deletes: Sequence[Delete]) -> None:
        """Delete all of these, or raise, having deleted any of them. A row may be there once only."""
        thrift = self._thrift
        gone = [
            thrift.TDelete(
                row=each.key,
                columns=self._columns(each.columns, each.timestamp),  # those of a row do not take the row's timestamp
                timestamp=each.timestamp,
                deleteType=thrift.TDeleteType.DELETE_COLUMNS,
            )
            for each in deletes
        ]
        if left := self._call("deleteMultiple", table, table.encode(), gone):
            raise UnreachableError(f"HBase at {self.gateways} did not delete {len(left)} of {len(gone)} rows of table {table}")

    def starts(self, table: str) -> list[bytes]:
        """Return the keys at which regions of a table start, in order; the first one is empty."""
        found = {each.regionInfo.startKey or b"" for each in self._call("getAllRegionLocations", table, table.encode())}
        if not found:
            raise MissingTableError(f"HBase at {self.gateways} has no table {table}.")
        return sorted(found)

    def table_exists(self, table: str) -> bool:
        return bool(self._call("tableExists", table, self._table_name(table)))

    def check_enabled(self, table: str) -> None:
        """Raise UnreachableError for a table that is disabled: a write to it would wait."""
        if not self._call("isTableEnabled", table, self._table_name(table)):
            raise UnreachableError(f"Table {table} of HBase at {self.gateways} is disabled. Enable it.")

    def families(self, table: str) -> dict[bytes, Family]:
        """Return the column families of a table by name."""
        found = self._call("getTableDescriptor", table, self._table_name(table))
        return {each.name: _family(each) for each in found.columns}

    def create_table(self, table: str, families: Sequence[str], splits: Sequence[bytes] = (), **settings: int) -> None:
        """Create a table; ``settings`` are attributes of a TColumnFamilyDescriptor, for each family."""
        thrift = self._thrift
        columns = [thrift.TColumnFamilyDescriptor(name=each.encode(), **settings) for each in families]
        descriptor = thrift.TTableDescriptor(tableName=self._table_name(table), columns=columns)
        self._call("createTable", table, descriptor, list(splits) or None)

    def _columns(self, columns: Sequence[tuple[bytes, bytes | None]], timestamp: int | None = None) -> list[Any] | None:
        column = functools.partial(self._thrift.TColumn, timestamp=timestamp)
        return [column(family=family, qualifier=qualifier) for family, qualifier in columns] or None

    def _table_name(self, table: str) -> Any:
        namespace, _, name = table.rpartition(":")
        return self._thrift.TTableName(ns=namespace.encode() or None, qualifier=name.encode())

    def _call(self, name: str, table: str, *arguments: Any) -> Any:
        from thriftpy2.protocol.cybin import ProtocolError  # type: ignore[attr-defined]
        from thriftpy2.thrift import TApplicationException, TException

        try:
            answer = getattr(self._opened(), name)(*arguments)
        except TApplicationException as error:
            if error.type == TApplicationException.INTERNAL_ERROR:  # of an argument, as of a key without a byte
                self._used = time.monotonic()
                raise RefusedError(
                    f"HBase's Thrift server at {self.gateways} refuses this {name}. Its log says why; it takes no cell above "
                    "hbase.client.keyvalue.maxsize (10 MiB by default)."
                ) from None
            self.close()
            raise ConnectError(
                f"{self.gateways} does not know HBase's call {name} ({error.message}). Is it a Thrift 2 server, as "
                "`hbase thrift2 start` runs one, of HBase 2.2 or newer?"
            ) from None
        except (self._thrift.TIOError, self._thrift.TIllegalArgument) as error:
            self._used = time.monotonic()
            raise self._meaning(str(error.message or ""), table) from None
        except (ConnectError, UnreachableError):
            raise
        except (TException, ProtocolError, OSError, EOFError) as error:
            answered, self._answered = self._answered, False
            self.close()
            advice = "" if answered else self._advice(name)
            raise UnreachableError(f"HBase's Thrift server at {self.gateways} did not answer: {_said(error)}.{advice}") from None
        self._answered = True
        self._used = time.monotonic()
        return answer

    def _opened(self) -> Any:
        if self._client is not None and time.monotonic() - self._used > _IDLE_SECONDS:
            self.close()
        if self._client is None:
            failures = []
            for _ in self.gateways.addresses:
                address = self.gateways.addresses[self._next % len(self.gateways.addresses)]
                self._next += 1
                try:
                    self._client = self._connected(*address)
                    break
                except ssl.SSLError as error:
                    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):  # closed, as by a proxy without a server
                        failures.append(f"{address[0]}:{address[1]}: {error}")
                        continue
                    raise ConnectError(f"HBase's Thrift server at {address[0]}:{address[1]}: TLS failed: {error}") from error
                except (OSError, UnicodeError) as error:
                    failures.append(f"{address[0]}:{address[1]}: {error}")
            else:
                raise UnreachableError(f"No server of hbase.thrift.servers can be reached: {'; '.join(failures)}")
        return self._client

    def _connected(self, host: str, port: int) -> Any:
        from thriftpy2.protocol import TCompactProtocolFactory, TCyBinaryProtocolFactory
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TCyBufferedTransportFactory, TCyFramedTransportFactory, TSocket

        gateways = self.gateways
        connection = socket.create_connection((host, port), min(gateways.timeout, _CONNECT_SECONDS))
        try:
            if gateways.tls:
                connection = tls_context(gateways).wrap_socket(connection, server_hostname=host)
            connection.settimeout(gateways.timeout)
        except BaseException:
            connection.close()
            raise
        transports: Any = TCyFramedTransportFactory() if gateways.framed else TCyBufferedTransportFactory()
        protocols: Any = _untyped(TCompactProtocolFactory if gateways.compact else TCyBinaryProtocolFactory)()
        transport = transports.get_transport(_untyped(TSocket)(sock=connection))
        return TClient(self._thrift.THBaseService, protocols.get_protocol(transport))

    def _advice(self, name: str) -> str:
        """Return the likely causes of a connection that ends without an answer."""
        causes = [
            "hbase.thrift.servers may name another service than `hbase thrift2`",
            "hbase.thrift.transport or hbase.thrift.protocol may not be those of the server",
            f"the answer may take more than hbase.thrift.timeout ({self.gateways.timeout:g} s), or more memory than there is",
        ]
        if self.gateways.framed and name == "putMultiple":
            causes.append("a request may be above its hbase.regionserver.thrift.framed.max_frame_size_in_mb (2 by default)")
        return f" If this lasts: {'; '.join(causes)}."

    def _meaning(self, message: str, table: str) -> Exception:
        """Return the error of an answer. HBase says of a missing table only its name."""
        names = set(_EXCEPTION.findall(message))
        if message.strip() in (table, table.removeprefix("default:")) or names & _MISSING_TABLE:
            where = f", or no namespace {table.partition(':')[0]}" if ":" in table else ""
            return MissingTableError(f"HBase at {self.gateways} has no table {table}{where}.")
        said = f"HBase at {self.gateways}: {_reason(message)}"
        if not names & _PASSING:
            if names & _REFUSED:
                return RefusedError(said)
            if names & _LASTING:
                return ConnectError(said)
        return UnreachableError(said)


def _reason(message: str) -> str:
    """Return the classes of errors in a message, the last one first, or its first line: what stands beside them may be data."""
    names = list(dict.fromkeys(reversed(_EXCEPTION.findall(message))))
    return ", ".join(names[:3]) or message.strip().partition("\n")[0][:_LONGEST_REASON] or "no reason given"


def tls_context(gateways: Gateways) -> ssl.SSLContext:
    """Return the TLS settings of a client. Raises ConfigError for certificates that cannot be read."""
    try:
        context = ssl.create_default_context(cafile=gateways.ca)
    except (OSError, ValueError) as error:
        raise ConfigError(CA, gateways.ca, f"cannot be read: {error}") from error
    if gateways.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _family(descriptor: Any) -> Family:
    attributes: Mapping[bytes, bytes] = descriptor.attributes or {}
    ttl = descriptor.timeToLive
    return Family(
        descriptor.name,
        ttl if ttl and 0 < ttl < _NEVER else None,
        attributes.get(b"NEW_VERSION_BEHAVIOR", b"").lower() == b"true",
    )


def _untyped(made: Any) -> Any:
    """Return a class of thriftpy2, of which some have types and some have not."""
    return made


def _said(error: BaseException) -> str:
    return str(getattr(error, "message", None) or error or type(error).__name__)
