"""The keys of a connection to HBase, and the base of its connectors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, EnumText
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.hbase.client import CA, Gateways, HBaseClient
from sluiceway.connectors.keys import flag, text, whole
from sluiceway.errors import ConfigError, ConnectError

SERVERS, TRANSPORT, PROTOCOL = "hbase.thrift.servers", "hbase.thrift.transport", "hbase.thrift.protocol"
TLS, INSECURE, TIMEOUT = "hbase.thrift.tls", "hbase.thrift.insecure", "hbase.thrift.timeout"
TABLE = "hbase.table"
CONNECTION = "Connection"
DEFAULT_PORT = 9090
_TRY_SECONDS = 2.0
_VALIDATION_SECONDS = 10.0
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+)(?::([0-9]{1,5}))?")
_TABLE_NAME = re.compile(r"(?:[A-Za-z0-9_]+:)?[A-Za-z0-9_][A-Za-z0-9_.-]*")


def addresses_of(servers: ConfigValue) -> tuple[tuple[str, int], ...]:
    """Return hosts and ports. Raises ConfigError."""
    found = []
    for server in servers if isinstance(servers, list) else []:
        match = _SERVER.fullmatch(str(server))
        port = int(match[2]) if match and match[2] else DEFAULT_PORT
        if not match or not 0 < port < 2**16:
            raise ConfigError(SERVERS, server, f"is no host and port of a Thrift server, such as hbase-thrift:{DEFAULT_PORT}")
        found.append((match[1].strip("[]"), port))
    if not found:
        raise ConfigError(SERVERS, servers, f"names no Thrift server, such as hbase-thrift:{DEFAULT_PORT}")
    return tuple(found)


def _check_servers(_name: str, value: ConfigValue) -> None:
    addresses_of(value)


def check_table(name: str, value: ConfigValue) -> None:
    """Raise ConfigError for what cannot be the name of a table."""
    if not _TABLE_NAME.fullmatch(str(value)):
        raise ConfigError(name, value, "is no name of a table, such as orders, or shop:orders with a namespace")


CONNECTION_KEYS = (
    ConfigKey(
        name=SERVERS,
        type=Type.LIST,
        default=[f"localhost:{DEFAULT_PORT}"],
        validator=Check(_check_servers, "host:port,..."),
        importance=Importance.HIGH,
        group=CONNECTION,
        doc="HBase's Thrift 2 servers (`hbase thrift2 start`) as host:port. If one fails, the next one is used.",
    ),
    text(
        name=TRANSPORT,
        default="buffered",
        validator=EnumText("buffered", "framed"),
        group=CONNECTION,
        doc="The servers' transport: framed if they run with hbase.regionserver.thrift.framed, or as a nonblocking server.",
    ),
    text(
        name=PROTOCOL,
        default="binary",
        validator=EnumText("binary", "compact"),
        group=CONNECTION,
        doc="The servers' protocol: compact if they run with hbase.regionserver.thrift.compact.",
    ),
    flag(name=TLS, default=False, group=CONNECTION, doc="Whether the servers use TLS (hbase.thrift.ssl.enabled)."),
    text(name=CA, default=None, group=CONNECTION, doc="A PEM file with the trusted certificates; by default the system's."),
    flag(name=INSECURE, default=False, group=CONNECTION, doc="Whether any certificate of the servers is taken."),
    whole(TIMEOUT, 60, 1, CONNECTION, "Seconds to wait for an answer. HBase itself retries a call while a region moves."),
)


def gateways_of(values: Mapping[str, ConfigValue]) -> Gateways:
    """Return the Thrift servers of parsed values. Raises ConfigError."""
    return Gateways(
        addresses_of(values[SERVERS]),
        framed=str(values[TRANSPORT]).lower() == "framed",
        compact=str(values[PROTOCOL]).lower() == "compact",
        timeout=float(str(values[TIMEOUT])),
        tls=bool(values[TLS]),
        ca=None if values[CA] is None else str(values[CA]),
        insecure=bool(values[INSECURE]),
    )


def _that_answers(gateways: Gateways) -> Gateways | None:
    """Return the other transport and protocol with which a server answers, None if none does."""
    for framed in (False, True):
        for compact in (False, True):
            other = replace(gateways, framed=framed, compact=compact, timeout=min(gateways.timeout, _TRY_SECONDS))
            if (framed, compact) == (gateways.framed, gateways.compact):
                continue
            with closing(HBaseClient(other)) as client:
                try:
                    client.table_exists("sluiceway")
                    return other
                except (UnreachableError, ConnectError):
                    continue
    return None


def _differences(given: Gateways, right: Gateways) -> Iterator[tuple[str, str, str]]:
    """Yield the keys to change, with the right and the given value."""
    names = {True: ("framed", "compact"), False: ("buffered", "binary")}
    if given.framed != right.framed:
        yield TRANSPORT, names[right.framed][0], names[given.framed][0]
    if given.compact != right.compact:
        yield PROTOCOL, names[right.compact][1], names[given.compact][1]


class HBaseConnector(CheckedConnector):
    """Base of the HBase connectors."""

    address_key = SERVERS

    @classmethod
    def try_table(cls, client: HBaseClient, found: Mapping[str, ValidatedValue]) -> None:
        """Add what is wrong with the table to the errors of the keys. Changes nothing."""

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        gateways = gateways_of(values)
        gateways = replace(gateways, timeout=min(gateways.timeout, _VALIDATION_SECONDS))
        try:
            with closing(HBaseClient(gateways)) as client:
                cls.try_table(client, found)
        except UnreachableError:
            other = _that_answers(gateways)
            if other is None:
                raise
            for name, right, said in _differences(gateways, other):
                found[name].errors.append(str(ConfigError(name, said, f"is not that of the server, which answers with {right}")))
