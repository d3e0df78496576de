"""The keys of connections to RabbitMQ, in the form of Confluent's connectors, and the base of the connectors."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.password import Password, revealed
from sluiceway.config.validators import Check, EnumText, NonEmptyString, Range
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.https import Tls, stores_of, tls_keys
from sluiceway.connectors.keys import refused_keys, text, whole
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.connectors.rabbitmq.session import Session

HOSTS, PORT, VIRTUAL_HOST = "rabbitmq.host", "rabbitmq.port", "rabbitmq.virtual.host"
USER, PASSWORD = "rabbitmq.username", "rabbitmq.password"
TIMEOUT, HANDSHAKE = "rabbitmq.connection.timeout.ms", "rabbitmq.handshake.timeout.ms"
HEARTBEAT, RECOVERY = "rabbitmq.requested.heartbeat.seconds", "rabbitmq.network.recovery.interval.ms"
PROTOCOL, TLS_PREFIX = "rabbitmq.security.protocol", "rabbitmq.https."
TRUST = f"{TLS_PREFIX}ssl.truststore.location"
CONNECTION = "Connection"


def _check_hosts(name: str, value: ConfigValue) -> None:
    if not value:
        raise ConfigError(name, None, "needs the name of a server")
    for host in value if isinstance(value, list) else []:
        if (":" in host and not _is_address(host)) or any(each in host for each in "/@?# "):
            told = None if "@" in host else host  # it may be a password
            raise ConfigError(name, told, f"must have names or addresses of servers only: set {PORT}, {USER}, and {PASSWORD}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


CONNECTION_KEYS = (
    ConfigKey(
        name=HOSTS,
        type=Type.LIST,
        default="localhost",
        validator=Check(_check_hosts, "names or addresses of servers"),
        importance=Importance.HIGH,
        group=CONNECTION,
        doc="The server, or servers of a cluster, separated by commas: the next one is tried when one does not answer.",
    ),
    ConfigKey(
        name=PORT,
        type=Type.INT,
        default=5672,
        validator=Range(1, 65535),
        importance=Importance.MEDIUM,
        group=CONNECTION,
        doc="The port for AMQP 0.9.1. Servers have 5671 for TLS by default.",
    ),
    text(name=USER, default="guest", importance=Importance.HIGH, group=CONNECTION, doc="The user."),
    ConfigKey(
        name=PASSWORD,
        type=Type.PASSWORD,
        default=Password("guest"),
        importance=Importance.HIGH,
        group=CONNECTION,
        doc="The user's password; preferably a reference such as ${file:/run/secrets/rabbitmq:password}.",
    ),
    text(
        name=VIRTUAL_HOST,
        default="/",
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        group=CONNECTION,
        doc="The virtual host.",
    ),
    whole(TIMEOUT, 10_000, 1, CONNECTION, "Milliseconds to wait for a connection, and for an answer."),
    whole(HANDSHAKE, 10_000, 1, CONNECTION, "Milliseconds to wait for TLS and the login after that."),
    ConfigKey(
        name=HEARTBEAT,
        type=Type.INT,
        default=60,
        validator=Range(0, 65535),
        importance=Importance.LOW,
        group=CONNECTION,
        doc="Seconds without a sign of life after which a connection is lost, if the server does not ask for fewer; 0 is never.",
    ),
    whole(RECOVERY, 10_000, 1, CONNECTION, "The most milliseconds between two attempts to connect."),
    text(
        name=PROTOCOL,
        default="PLAINTEXT",
        validator=EnumText("PLAINTEXT", "SSL"),
        group="Security",
        doc=f"SSL for TLS, by the keys below {TLS_PREFIX}.",
    ),
    *tls_keys(TLS_PREFIX),
    *refused_keys(
        {
            "rabbitmq.automatic.recovery.enabled": "a lost connection is always opened again",
            "rabbitmq.topology.recovery.enabled": "queues and exchanges are not created by the connector",
            "rabbitmq.requested.channel.max": "a task needs one channel",
            "rabbitmq.requested.frame.max": "the server's limit is used",
            "rabbitmq.shutdown.timeout.ms": "the worker's task.shutdown.graceful.timeout.ms limits the end of a task",
        }
    ),
)


@dataclass(frozen=True, slots=True)
class Server:
    """The servers of a cluster, and the login. Times are in seconds. The repr shows no password."""

    hosts: Sequence[str]
    port: int
    virtual_host: str
    user: str
    password: str = field(repr=False)
    timeout: float
    handshake: float
    heartbeat: int
    longest_pause: float
    tls: Tls | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return f"{','.join(self.hosts)}:{self.port}"


def server_of(values: Mapping[str, ConfigValue]) -> Server:
    """Return the server of parsed values."""
    hosts = values[HOSTS]
    assert isinstance(hosts, list)  # noqa: S101 (parsed as such)
    tls = str(values[PROTOCOL]).upper() == "SSL"
    return Server(
        hosts=tuple(hosts),
        port=int(str(values[PORT])),
        virtual_host=str(values[VIRTUAL_HOST]),
        user=str(values[USER]),
        password=revealed(values[PASSWORD]) or "",
        timeout=int(str(values[TIMEOUT])) / 1000,
        handshake=int(str(values[HANDSHAKE])) / 1000,
        heartbeat=int(str(values[HEARTBEAT])),
        longest_pause=int(str(values[RECOVERY])) / 1000,
        tls=Tls(stores_of(values, TLS_PREFIX), TLS_PREFIX) if tls else None,
    )


class RabbitConnector(CheckedConnector):
    """Base of the RabbitMQ connectors."""

    address_key = HOSTS

    @classmethod
    def connection_conflicts(cls, values: Mapping[str, ConfigValue]) -> Mapping[str, str]:
        stores = [
            name for name in values if name.startswith(TLS_PREFIX) and name.endswith((".location", ".password")) and values[name]
        ]
        if stores and str(values[PROTOCOL]).upper() != "SSL":
            return {PROTOCOL: f"must be SSL, since {stores[0]} is set"}
        return {}

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        """Add what is wrong with what the config names to the errors of its keys. The login has been tried. Changes nothing."""

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        from sluiceway.connectors.rabbitmq.session import opened

        with closing(opened(server_of(values), "validation")) as session:
            cls.try_server(session, found)
