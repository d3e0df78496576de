"""Database locations parsed from JDBC URLs, and the helpers with which each dialect parses its own. No I/O.

A parameter of the Java driver is translated if the Python driver has a counterpart and ignored if it only tunes the Java
driver. All others are refused, because ignoring them would change how the connection behaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from sluiceway.errors import ConfigError
from sluiceway.java.numbers import whole_number

CONNECTION_URL = "connection.url"

# Such a character in a password makes its rest look like a port, a host, a database, or a parameter: messages show none of them.
_ESCAPES = "in a password of the URL, / ? , and @ are written %2F %3F %2C and %40"

Translation = Callable[[str], Mapping[str, object]]
"""Returns the Python driver's arguments for the value of a Java parameter; raises ValueError for an unusable value."""


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """The location of a database. ``options`` are arguments of the Python driver. The repr shows no password."""

    dialect: str
    host: str = ""
    port: int = 0
    database: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def location(self) -> str:
        """Host, port and database, or the database's file, for messages. Holds no secret."""
        return f"{self.host}:{self.port}/{self.database}" if self.host else self.database


class Login(NamedTuple):
    """A user and a password; None if not given."""

    user: str | None = None
    password: str | None = None

    def or_else(self, user: str | None, password: str | None) -> Login:
        """Return this login with the parts that it lacks taken from another."""
        return Login(self.user or user, password if self.password is None else self.password)


class Parameters(NamedTuple):
    """The parameters of a Java driver that a dialect knows: those with a counterpart, and those that only tune Java."""

    translated: Mapping[str, Translation]
    ignored: frozenset[str]

    def options(self, values: Mapping[str, str], *, beside_password: bool = False) -> dict[str, object]:
        """Return the Python driver's arguments. Raises ConfigError for unknown parameters and unusable values.

        The error shows no value, and the name of a parameter only if it cannot be a part of a password with separators in it:
        not ``beside_password``, and without the at sign before a host in any of them.
        """
        is_shown = not beside_password and not any("@" in each for item in values.items() for each in item)
        options: dict[str, object] = {}
        for name, value in values.items():
            if name in self.translated:
                try:
                    options.update(self.translated[name](value))
                except ValueError as error:
                    raise ConfigError(CONNECTION_URL, f"...{name}=...", str(error)) from error
            elif name not in self.ignored:
                known = ", ".join(sorted(self.translated))
                message = f"has a parameter without a counterpart in the Python driver; supported are {known}"
                raise ConfigError(CONNECTION_URL, f"...{name}=..." if is_shown else "//...", message)
        return options


def server_url(dialect: str, text: str, default_port: int, parameters: Parameters, login: Login) -> DatabaseUrl:
    """Return the location that ``//user:password@host:port/database?name=value&...``, or a bare database, names.

    ``login`` takes precedence over the URL. Raises ConfigError.
    """
    location, _, query = text.partition("?")
    values = dict(parse_qsl(query.replace(";", "&"), keep_blank_values=True))
    in_url, host, port, database = _location(location, default_port)
    password = values.pop("password", None)
    login = login.or_else(values.pop("user", None), password).or_else(*in_url)
    options = parameters.options(values, beside_password=password is not None)
    return DatabaseUrl(dialect, host, port, database, login.user, login.password, options)


def _location(text: str, default_port: int) -> tuple[Login, str, int, str]:
    if not text.startswith("//"):
        return Login(), "localhost", default_port, unquote(text.removeprefix("/"))
    authority, _, database = text[2:].partition("/")
    credentials, _, address = authority.rpartition("@")
    if "@" in database:
        raise ConfigError(CONNECTION_URL, "//...", f"has a database with @ ({_ESCAPES})")
    user, _, password = credentials.partition(":")
    host, port = host_and_port(address, default_port)
    return Login(unquote(user) or None, unquote(password) if password else None), host, port, unquote(database)


def host_and_port(address: str, default_port: int) -> tuple[str, int]:
    """Return the parts of ``host``, ``host:port`` or ``[address]:port``. Raises ConfigError for several hosts or a bad port."""
    if "," in address:
        reason = f"names several hosts; name one, or a virtual address in front of them ({_ESCAPES})"
        raise ConfigError(CONNECTION_URL, "//...", reason)
    host, port = address, ""
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        port = port.removeprefix(":")
    elif ":" in address:
        host, _, port = address.partition(":")
    number = whole_number(port) if port else default_port
    if number is None:
        raise ConfigError(CONNECTION_URL, "//...", f"has a port that is not a number ({_ESCAPES})")
    return host or "localhost", number


def renamed(name: str, change: Callable[[str], object] = str) -> Translation:
    """Return the translation into one argument of the Python driver."""
    return lambda value: {name: change(value)}


def one_of(name: str, choices: Mapping[str, object]) -> Translation:
    """Return the translation of a value out of a list (compared in lower case) into one argument of the Python driver."""

    def translate(value: str) -> Mapping[str, object]:
        if value.lower() not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return {name: choices[value.lower()]}

    return translate


def is_true(value: str) -> bool:
    """Return whether a flag is set; a flag without a value is."""
    return value.lower() in ("", "true", "1", "yes")
