"""Validates a config of the PostgreSQL connector: each key, conflicts, and the login."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.cdc.keys import invalid
from sluiceway.connectors.cdc.option_checks import add_problems
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.connection import connect, driver, is_transient
from sluiceway.connectors.cdc.postgres.keys import CONFIG
from sluiceway.connectors.jdbc.dialects.postgresql.errors import refuses_login
from sluiceway.errors import MissingToolError, TemporaryProblem

_LOGIN_KEYS = "database.user, database.password, and database.dbname"
_SERVER_KEYS = "database.hostname and database.port"


def checked(config: Mapping[str, str]) -> dict[str, ValidatedValue]:
    """Return each key's value and errors. No I/O."""
    found = CONFIG.validate(config)
    for kind in ("schema", "table", "column"):
        include, exclude = f"{kind}.include.list", f"{kind}.exclude.list"
        if config.get(include) and config.get(exclude):
            found[exclude].errors.append(str(invalid(exclude, f'"{include}" is already specified')))
    add_problems(found, config, postgresql=True)
    return found


def check_login(config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
    """Connect once; a refused login is an error of the host name's key, as in Debezium."""
    key = found["database.hostname"]
    try:
        psycopg = driver()
    except MissingToolError as error:
        key.errors.append(str(error))
        return
    try:
        with connect(postgres_config(config).address) as connection:
            row = connection.execute("show wal_level").fetchone()
            if row is None or row[0] != "logical":
                key.errors.append(f"Postgres server wal_level property must be 'logical' but is: '{row and row[0]}'")
    except psycopg.Error as error:
        keys = _LOGIN_KEYS if refuses_login(error) else _SERVER_KEYS
        text = f"Error while validating connector config: {_server_text(str(error)).rstrip('.')}. Check {keys}."
        key.errors.append(TemporaryProblem(text) if is_transient(error) else text)


def _server_text(text: str) -> str:
    """Return the server's message without libpq's description of the connection."""
    marker = text.rfind("FATAL:")
    if marker < 0:
        return text.strip()
    return "FATAL: " + text[marker + len("FATAL:") :].strip().splitlines()[0]
