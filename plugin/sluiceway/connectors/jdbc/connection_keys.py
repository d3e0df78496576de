"""Defines the connection keys that source and sink share. Names and defaults are those of Confluent's JDBC connectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, Width
from sluiceway.config.password import Password
from sluiceway.config.validators import Check, OneOf, Range
from sluiceway.connectors.jdbc.dialects import JAVA_NAMES, URL_FORMS, parse_url
from sluiceway.connectors.jdbc.url import CONNECTION_URL, DatabaseUrl
from sluiceway.errors import ConfigError

CONNECTION_USER = "connection.user"
CONNECTION_PASSWORD = "connection.password"  # noqa: S105 (a key's name)
CONNECTION_ATTEMPTS = "connection.attempts"
CONNECTION_BACKOFF_MS = "connection.backoff.ms"
DIALECT_NAME = "dialect.name"
DB_TIMEZONE = "db.timezone"
QUOTE_SQL_IDENTIFIERS = "quote.sql.identifiers"

ALWAYS, NEVER = "always", "never"


def _check_url(_name: str, value: ConfigValue) -> None:
    if value is not None:
        parse_url(str(value))


def _check_timezone(name: str, value: ConfigValue) -> None:
    try:
        ZoneInfo(str(value))
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(name, value, "is not the name of a time zone, such as UTC or Europe/Berlin") from error


CONNECTION = ConfigDef(
    [
        ConfigKey(
            name=CONNECTION_URL,
            type=Type.STRING,
            importance=Importance.HIGH,
            width=Width.LONG,
            group="Database",
            order_in_group=1,
            display_name="JDBC URL",
            validator=Check(_check_url, "a JDBC URL"),
            doc=f"The location of the database, as a JDBC URL: {URL_FORMS}.",
        ),
        ConfigKey(
            name=CONNECTION_USER,
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            width=Width.MEDIUM,
            group="Database",
            order_in_group=2,
            display_name="JDBC User",
            doc="The database user.",
        ),
        ConfigKey(
            name=CONNECTION_PASSWORD,
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            width=Width.SHORT,
            group="Database",
            order_in_group=3,
            display_name="JDBC Password",
            doc="The user's password; preferably a reference such as ${file:/run/secrets/db:password}.",
        ),
        ConfigKey(
            name=CONNECTION_ATTEMPTS,
            type=Type.INT,
            default=3,
            validator=Range(1),
            importance=Importance.LOW,
            width=Width.SHORT,
            group="Database",
            order_in_group=4,
            display_name="JDBC connection attempts",
            doc="The number of attempts to connect before the connector or task fails.",
        ),
        ConfigKey(
            name=CONNECTION_BACKOFF_MS,
            type=Type.LONG,
            default=10_000,
            validator=Range(0),
            importance=Importance.LOW,
            width=Width.SHORT,
            group="Database",
            order_in_group=5,
            display_name="JDBC connection backoff (ms)",
            doc="Milliseconds between two attempts to connect.",
        ),
        ConfigKey(
            name=DIALECT_NAME,
            type=Type.STRING,
            default="",
            validator=OneOf(("", *JAVA_NAMES)),
            importance=Importance.LOW,
            width=Width.LONG,
            group="Database",
            order_in_group=6,
            display_name="Database Dialect",
            doc="The SQL dialect; empty for the one of the URL. Accepted for configs of other JDBC connectors.",
        ),
    ]
)
"""The keys of every JDBC connector; each connector adds its own."""

DB_TIMEZONE_KEY = ConfigKey(
    name=DB_TIMEZONE,
    type=Type.STRING,
    default="UTC",
    validator=Check(_check_timezone, "a time zone"),
    importance=Importance.MEDIUM,
    width=Width.MEDIUM,
    group="Database",
    display_name="DB Time Zone",
    doc="The time zone of dates and times that the database stores without a zone.",
)

QUOTE_SQL_IDENTIFIERS_KEY = ConfigKey(
    name=QUOTE_SQL_IDENTIFIERS,
    type=Type.STRING,
    default=ALWAYS,
    validator=OneOf((ALWAYS, NEVER), ignore_case=True),
    importance=Importance.MEDIUM,
    width=Width.MEDIUM,
    group="Database",
    display_name="Quote Identifiers",
    doc="Whether table and column names are quoted in SQL: always, or never, which leaves their case to the database.",
)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The connection keys of a config; ``backoff`` in seconds. The repr shows no password."""

    url: DatabaseUrl = field(repr=False)
    attempts: int = 3
    backoff: float = 10.0
    timezone: str = "UTC"
    quote: bool = True

    @classmethod
    def of(cls, values: Mapping[str, ConfigValue]) -> ConnectionSettings:
        """Return the settings of a parsed config. Raises ConfigError."""
        password = values.get(CONNECTION_PASSWORD)
        user = values.get(CONNECTION_USER)
        secret = password.value if isinstance(password, Password) else None
        url = parse_url(str(values[CONNECTION_URL]), None if user is None else str(user), secret)
        dialect = JAVA_NAMES.get(str(values.get(DIALECT_NAME) or ""), url.dialect)
        if dialect != url.dialect:
            raise ConfigError(DIALECT_NAME, values[DIALECT_NAME], f"does not go with {CONNECTION_URL}, which is of {url.dialect}")
        return cls(
            url,
            int(str(values[CONNECTION_ATTEMPTS])),
            int(str(values[CONNECTION_BACKOFF_MS])) / 1000,
            str(values.get(DB_TIMEZONE) or "UTC"),
            quote=str(values.get(QUOTE_SQL_IDENTIFIERS) or ALWAYS).lower() == ALWAYS,
        )
