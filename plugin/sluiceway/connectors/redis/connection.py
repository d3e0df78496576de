"""The connection to Redis: its keys, the client, and what its errors mean. Runs on executors and, to validate, on drivers."""

from __future__ import annotations

import functools
import logging
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.errors import LoginError, UnreachableError
from sluiceway.connectors.keys import flag, text, whole
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

URI, USER, PASSWORD = "redis.uri", "redis.username", "redis.password"
TIMEOUT = "redis.timeout"
CONNECTION = "Connection"
_INSECURE, _CA = "redis.insecure", "redis.cacert"
_KEY_FILE, _KEY_CERTIFICATE, _KEY_PASSWORD = "redis.key.file", "redis.key.cert", "redis.key.password"
_PIPELINED = re.compile(r"^Command # \d+ \(.*\) of pipeline caused error: ", re.DOTALL)
_LONGEST_BLOCK = 1.0  # seconds
_GONE = ("NOGROUP ", "UNBLOCKED ")  # of a stream or a group that was deleted: a new connection creates it again
_SCHEMES = ("redis", "rediss", "unix")

secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM)


class ForbiddenError(ConnectError):
    """The user has not the right to a command."""


def _check_uri(name: str, value: ConfigValue) -> None:
    uri = str(value)
    told = None if "@" in uri else uri  # it may be a password
    try:
        parts = urlsplit(uri)
        database = parts.path.strip("/")
        known = uri.startswith(tuple(f"{scheme}://" for scheme in _SCHEMES)) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise ConfigError(name, told, "is no URI of Redis, such as redis://redis:6379/0, or rediss:// for TLS")
    if "@" in uri:
        raise ConfigError(name, None, f"must not have a login: set {USER} and {PASSWORD}")
    if parts.query or parts.fragment:
        raise ConfigError(name, told, "must be the URI of a server and a database, without ? and #")
    if parts.scheme != "unix" and (not parts.hostname or not re.fullmatch("[0-9]*", database)):
        raise ConfigError(name, told, "needs a host, and after it only the number of a database: redis://redis:6379/0")


CONNECTION_KEYS = (
    text(
        name=URI,
        default="redis://localhost:6379",
        validator=Check(_check_uri, "the URI of a Redis server"),
        importance=Importance.HIGH,
        group=CONNECTION,
        doc="The server and its database, such as redis://redis:6379/0; rediss:// for TLS, unix:///run/redis.sock for a socket. "
        "Redis Cluster is not supported.",
    ),
    text(name=USER, default=None, group=CONNECTION, doc="The user, by Redis' access control lists."),
    secret(
        name=PASSWORD,
        group=CONNECTION,
        doc="The password; preferably a reference such as ${file:/run/secrets/redis:password}.",
    ),
    whole(TIMEOUT, 10, 1, CONNECTION, "Seconds to wait for a connection, and for an answer."),
    flag(name=_INSECURE, default=False, group=CONNECTION, doc="Whether any certificate of the server is taken."),
    text(name=_CA, default=None, group=CONNECTION, doc="A PEM file with the trusted certificates; by default the system's."),
    text(name=_KEY_CERTIFICATE, default=None, group=CONNECTION, doc="A PEM file with the client's certificate."),
    text(name=_KEY_FILE, default=None, group=CONNECTION, doc="A PEM file with the key of the client's certificate."),
    secret(name=_KEY_PASSWORD, group=CONNECTION, doc="The password of the key."),
)


@dataclass(frozen=True, slots=True)
class Server:
    """A server, its database and the login. The repr shows no password. ``timeout`` is in seconds."""

    uri: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: float = 10.0
    tls: Mapping[str, Any] = field(default_factory=dict, repr=False)


def server_of(values: Mapping[str, ConfigValue]) -> Server:
    """Return the server of parsed values."""
    uri = str(values[URI])
    tls: dict[str, Any] = {}
    if urlsplit(uri).scheme == "rediss":
        tls = {
            "ssl_ca_certs": values[_CA],
            "ssl_certfile": values[_KEY_CERTIFICATE],
            "ssl_keyfile": values[_KEY_FILE],
            "ssl_password": revealed(values[_KEY_PASSWORD]),
        }
        if values[_INSECURE]:
            tls |= {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return Server(uri, revealed(values[USER]), revealed(values[PASSWORD]), float(str(values[TIMEOUT])), tls)


def opened(server: Server) -> Redis:
    """Return a client, which connects with its first command. Closed by the caller.

    A command may block for a second. Entries of streams are as Redis sends them: lists of names and values, in which names may
    repeat. Raises MissingToolError without the package, and ConfigError for certificates that cannot be read.
    """
    try:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError as error:
        raise MissingToolError(
            f"Redis needs a Python package that is not installed ({error}). Run: {install_command('redis')} in the Python "
            "environment of the tasks."
        ) from error
    _check_files(server)
    client = Redis.from_url(
        server.uri,
        username=server.user,
        password=server.password,
        socket_timeout=server.timeout + _LONGEST_BLOCK,
        socket_connect_timeout=server.timeout,
        retry=Retry(NoBackoff(), 0),  # the tasks do it, and say so
        protocol=2,
        **server.tls,
    )
    for command in ("XREAD", "XREADGROUP", "XAUTOCLAIM"):
        client.set_response_callback(command, lambda answer, **_options: answer)
    return client


def _check_files(server: Server) -> None:
    for key, files in ((_CA, ("ssl_ca_certs",)), (_KEY_CERTIFICATE, ("ssl_certfile", "ssl_keyfile"))):
        paths = [server.tls.get(name) for name in files]
        if not paths[0]:
            continue
        context = ssl.create_default_context()
        try:
            if key == _CA:
                context.load_verify_locations(paths[0])
            else:
                context.load_cert_chain(str(paths[0]), paths[1], server.tls.get("ssl_password") or "")
        except (OSError, ValueError) as error:  # an error of SSL is one of the system's, too
            raise ConfigError(key, paths[0], f"cannot be read: {error}") from error


@contextmanager
def redis_errors(server: Server) -> Iterator[None]:
    """Raise UnreachableError for what passes, LoginError, ForbiddenError, and ConnectError for what does not pass otherwise."""
    from redis import exceptions as errors

    later = (errors.ConnectionError, errors.TimeoutError, errors.ReadOnlyError, errors.BusyLoadingError, OSError)
    try:
        yield
    except UnreachableError:
        raise
    except errors.NoPermissionError as error:
        raise ForbiddenError(f"Redis at {server.uri} does not allow the user a command: {reason_of(error)}") from None
    except (errors.AuthenticationError, errors.AuthorizationError) as error:
        raise _refused(server, str(error)) from error
    except later as error:
        raise UnreachableError(f"Redis at {server.uri}: {reason_of(error)}") from None
    except errors.RedisError as error:
        reason = reason_of(error)
        if reason.startswith(("NOAUTH", "WRONGPASS")):
            raise _refused(server, reason) from None
        if is_busy(error) or reason.startswith(_GONE):
            raise UnreachableError(f"Redis at {server.uri}: {reason}") from None
        raise ConnectError(f"Redis at {server.uri}: {reason}") from None


def _refused(server: Server, reason: str) -> LoginError:
    return LoginError(f"Redis at {server.uri} refused the login: {reason}. Check {USER} and {PASSWORD}.", PASSWORD)


def reason_of(error: Exception) -> str:
    """Return what an error says, without the command of a pipeline, which has a record's data."""
    return _PIPELINED.sub("", str(error))


def is_busy(error: Exception) -> bool:
    """Return whether an answer says that Redis takes a command later: its memory is full, or it is no primary now."""
    from redis import exceptions as errors

    kinds = (errors.OutOfMemoryError, errors.ReadOnlyError, errors.BusyLoadingError, errors.TryAgainError, errors.MasterDownError)
    words = ("OOM ", "LOADING ", "READONLY ", "BUSY ", "MASTERDOWN ", "NOREPLICAS ", "MISCONF ", "TRYAGAIN ", "CLUSTERDOWN ")
    return isinstance(error, kinds) or reason_of(error).startswith(words)


class RedisConnector(CheckedConnector):
    """Base of the Redis connectors."""

    address_key = URI

    @classmethod
    def connection_conflicts(cls, values: Mapping[str, ConfigValue]) -> Mapping[str, str]:
        if values[_KEY_FILE] and not values[_KEY_CERTIFICATE]:
            return {_KEY_CERTIFICATE: f"is needed with {_KEY_FILE}"}
        return {}

    @classmethod
    def try_server(cls, client: Redis, found: Mapping[str, ValidatedValue]) -> None:
        """Add what is wrong with what the config names to the errors of its keys. The login has been tried. Changes nothing."""

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        server = server_of(values)
        with closing(opened(server)) as client:
            try:
                with redis_errors(server):
                    client.ping()
                    cls.try_server(client, found)
            except ForbiddenError as error:  # who may use keys need not have the right to PING
                log.warning("%s", error)
