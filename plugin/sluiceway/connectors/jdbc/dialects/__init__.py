"""The databases that the JDBC connectors support: one dialect each.

To add a database, write a module with a subclass of ``Dialect`` and list it in ``DIALECTS``.
"""

from __future__ import annotations

import re

from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.mysql import MySqlDialect
from sluiceway.connectors.jdbc.dialects.postgresql import PostgreSqlDialect
from sluiceway.connectors.jdbc.dialects.sqlite import SqliteDialect
from sluiceway.connectors.jdbc.dialects.sqlserver import SqlServerDialect
from sluiceway.connectors.jdbc.url import CONNECTION_URL, DatabaseUrl, Login
from sluiceway.errors import ConfigError

DIALECTS: tuple[type[Dialect], ...] = (PostgreSqlDialect, MySqlDialect, SqliteDialect, SqlServerDialect)

_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
_BY_SCHEME = {scheme: dialect for dialect in DIALECTS for scheme in dialect.schemes}
_FORMS = [form for dialect in DIALECTS for form in dialect.url_forms]
URL_FORMS = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"
"""Example URLs, for messages and documentation."""

JAVA_NAMES = {java_name: dialect.name for dialect in DIALECTS for java_name in dialect.java_names}
"""Dialect names by the values of ``dialect.name``."""

_SCHEME = re.compile(r"(jdbc:)?\w+:")


def dialect_class(name: str) -> type[Dialect]:
    """Return the class of the dialect of that name."""
    return _BY_NAME[name]


def dialect_of(name: str, *, quote: bool = True) -> Dialect:
    """Return the dialect of that name; ``quote`` False leaves identifiers in SQL unquoted."""
    return _BY_NAME[name](quote=quote)


def parse_url(url: str, user: str | None = None, password: str | None = None) -> DatabaseUrl:
    """Return the location that a JDBC URL names; ``user`` and ``password`` take precedence over those in the URL.

    Raises ConfigError, which shows no more than the URL's scheme, because a password may follow.
    """
    scheme, _, rest = url.strip().removeprefix("jdbc:").partition(":")
    if not url.strip().startswith("jdbc:") or scheme not in _BY_SCHEME:
        match = _SCHEME.match(url.strip())
        shown = f"{match[0] if match else ''}..."
        raise ConfigError(CONNECTION_URL, shown, f"is not a JDBC URL of a database that is supported; write {URL_FORMS}")
    return _BY_SCHEME[scheme].parse_url(rest, Login(user or None, password))
