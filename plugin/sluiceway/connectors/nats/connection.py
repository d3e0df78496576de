"""The keys of connections to NATS, and the base of the connectors."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, NonEmptyString, OrNull
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.https import Tls, stores_of, tls_keys
from sluiceway.connectors.keys import text, whole
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.connectors.nats.session import Session

SERVERS, USER, PASSWORD, TOKEN = "nats.servers", "nats.user", "nats.password", "nats.token"
NKEY, CREDENTIALS = "nats.nkey.seed", "nats.credentials.file"
TIMEOUT, RECONNECT = "nats.timeout.ms", "nats.reconnect.max.ms"
INBOX, DOMAIN = "nats.inbox.prefix", "nats.jetstream.domain"
TLS_PREFIX = "nats."
TRUST, STORE = f"{TLS_PREFIX}ssl.truststore.location", f"{TLS_PREFIX}ssl.keystore.location"
CONNECTION = "Connection"
WITH_TLS = "tls"
"""The scheme of a server's URL that asks for TLS."""
_SCHEMES = ("nats", WITH_TLS)
_SUBJECT = re.compile(r"[^\s.*>$][^\s.*>]*(\.[^\s.*>]+)*")
_TOKEN = re.compile(r"[^\s.*>]+")

secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM)


def _check_servers(name: str, value: ConfigValue) -> None:
    schemes = set()
    for each in value if isinstance(value, list) else []:
        told = None if "@" in each else each  # it may be a password
        try:
            parts = urlsplit(each)
            known = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known:
            raise ConfigError(name, told, "needs the URL of a server, such as nats://nats:4222, or tls://nats:4222 for TLS")
        if "@" in each:
            raise ConfigError(name, None, f"must not have a login: set {USER} and {PASSWORD}, or {TOKEN}")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ConfigError(name, told, "must end with the port")
        schemes.add(parts.scheme)
    if not schemes:
        raise ConfigError(name, None, "needs the URL of a server, such as nats://nats:4222")
    if len(schemes) > 1:
        raise ConfigError(name, None, "must have TLS for all servers or for none")


def _check_prefix(name: str, value: ConfigValue) -> None:
    if not _SUBJECT.fullmatch(str(value)):
        raise ConfigError(name, value, "must be the beginning of a subject, such as _INBOX or _INBOX.me, without wildcards")


def _check_domain(name: str, value: ConfigValue) -> None:
    if not _TOKEN.fullmatch(str(value)):
        raise ConfigError(name, value, "must be a name without dots, spaces, and wildcards")


CONNECTION_KEYS = (
    ConfigKey(
        name=SERVERS,
        type=Type.LIST,
        default="nats://localhost:4222",
        validator=Check(_check_servers, "URLs of servers"),
        importance=Importance.HIGH,
        group=CONNECTION,
        doc="The server, or servers of a cluster, separated by commas: the next one is tried when one does not answer. "
        "tls:// for TLS, which is then demanded.",
    ),
    text(name=USER, default=None, validator=OrNull(NonEmptyString()), group=CONNECTION, doc="The user."),
    secret(
        name=PASSWORD,
        group=CONNECTION,
        doc="The user's password; preferably a reference such as ${file:/run/secrets/nats:password}.",
    ),
    secret(name=TOKEN, group=CONNECTION, doc="The token, where the server has one instead of users."),
    secret(
        name=NKEY, group=CONNECTION, doc="The seed of the user's nkey, which begins with SU. The server knows its public key."
    ),
    text(
        name=CREDENTIALS,
        default=None,
        validator=OrNull(NonEmptyString()),
        group=CONNECTION,
        doc="A .creds file with the user's JWT and the seed of its nkey. It must be on all executors.",
    ),
    whole(TIMEOUT, 10_000, 1, CONNECTION, "Milliseconds to wait for a connection, and for an answer."),
    whole(RECONNECT, 10_000, 1, CONNECTION, "The most milliseconds between two attempts to connect."),
    text(
        name=INBOX,
        default="_INBOX",
        validator=Check(_check_prefix, "the beginning of a subject"),
        importance=Importance.LOW,
        group=CONNECTION,
        doc="The beginning of the subjects of answers, where the user may not subscribe to all of _INBOX.",
    ),
    text(
        name=DOMAIN,
        default=None,
        validator=OrNull(Check(_check_domain, "a name without dots")),
        importance=Importance.LOW,
        group=CONNECTION,
        doc="The domain of JetStream, where the server is a leaf node of another one.",
    ),
    *tls_keys(TLS_PREFIX),
)


@dataclass(frozen=True, slots=True)
class Server:
    """The servers of a cluster, and the login. Times are in seconds. The repr shows no secret."""

    urls: Sequence[str]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    nkey: str | None = field(default=None, repr=False)
    credentials: str | None = None
    timeout: float = 10.0
    longest_pause: float = 10.0
    inbox: str = "_INBOX"
    domain: str | None = None
    tls: Tls | None = field(default=None, repr=False)

    @property
    def api(self) -> str:
        """The beginning of the subjects of JetStream's requests."""
        return "$JS.API" if self.domain is None else f"$JS.{self.domain}.API"

    @property
    def login_key(self) -> str:
        """The config key to look at when the login is refused."""
        given = {CREDENTIALS: self.credentials, NKEY: self.nkey, TOKEN: self.token, PASSWORD: self.password}
        return next((key for key, value in given.items() if value is not None), USER)


def server_of(values: Mapping[str, ConfigValue]) -> Server:
    """Return the servers of parsed values."""
    urls = values[SERVERS]
    assert isinstance(urls, list)  # noqa: S101 (parsed as such)
    tls = urlsplit(str(urls[0])).scheme == WITH_TLS
    domain = values[DOMAIN]
    return Server(
        urls=tuple(map(str, urls)),
        user=revealed(values[USER]),
        password=revealed(values[PASSWORD]),
        token=revealed(values[TOKEN]),
        nkey=revealed(values[NKEY]),
        credentials=revealed(values[CREDENTIALS]),
        timeout=int(str(values[TIMEOUT])) / 1000,
        longest_pause=int(str(values[RECONNECT])) / 1000,
        inbox=str(values[INBOX]),
        domain=None if domain is None else str(domain),
        tls=Tls(stores_of(values, TLS_PREFIX), TLS_PREFIX) if tls else None,
    )


class NatsConnector(CheckedConnector):
    """Base of the NATS connectors."""

    address_key = SERVERS

    @classmethod
    def connection_conflicts(cls, values: Mapping[str, ConfigValue]) -> Mapping[str, str]:
        urls = values[SERVERS]
        assert isinstance(urls, list)  # noqa: S101 (parsed as such)
        stores = [name for name in values if ".ssl." in name and name.endswith((".location", ".password")) and values[name]]
        if stores and urlsplit(str(urls[0])).scheme != WITH_TLS:
            return {SERVERS: f"must begin with tls://, since {stores[0]} is set"}
        if (values[USER] is None) != (values[PASSWORD] is None):
            missing, given = (USER, PASSWORD) if values[USER] is None else (PASSWORD, USER)
            return {missing: f"is needed with {given}"}
        logins = [key for key in (USER, TOKEN, NKEY, CREDENTIALS) if values[key] is not None]
        if len(logins) > 1:
            return {logins[1]: f"cannot be set together with {logins[0]}: a connection has one login"}
        return {}

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        """Add what is wrong with what the config names to the errors of its keys. The login has been tried. Changes nothing."""

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        from sluiceway.connectors.nats.session import opened

        with closing(opened(server_of(values), "validation")) as session:
            session.check_jetstream()
            cls.try_server(session, found)
