"""JDBC URLs: what ``connection.url`` names, as Python's drivers want to be told. Pure.

The parameters of the Java drivers are translated where there is a counterpart, passed over where they only tune Java, and
refused where leaving them out would change what the user gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from sluiceway.errors import ConfigError

CONNECTION_URL = "connection.url"

POSTGRESQL, MYSQL, SQLITE = "postgresql", "mysql", "sqlite"

_FORMS = "jdbc:postgresql://host:5432/database, jdbc:mysql://host:3306/database, jdbc:mariadb://... or jdbc:sqlite:/path/file.db"
_SCHEME = re.compile(r"(jdbc:)?\w+:")
_PORTS = {POSTGRESQL: 5432, MYSQL: 3306}


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Where a database is. ``options`` are arguments of the Python driver; a repr shows no password."""

    dialect: str
    host: str = ""
    port: int = 0
    database: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """Host, port and database, for messages: nothing secret."""
        return self.database if self.dialect == SQLITE else f"{self.host}:{self.port}/{self.database}"


def parse_url(url: str, user: str | None = None, password: str | None = None) -> DatabaseUrl:
    """Return what a JDBC URL names; ``user`` and ``password`` come before those in the URL.

    Raises ConfigError, which repeats the URL's beginning at most, for there may be a password behind it.
    """
    head, _, rest = url.strip().removeprefix("jdbc:").partition(":")
    if not url.strip().startswith("jdbc:") or head not in ("postgresql", "mysql", "mariadb", "sqlite"):
        scheme = _SCHEME.match(url.strip())
        shown = f"{scheme[0] if scheme else ''}..."  # where other databases' URLs have their passwords is not known
        raise ConfigError(CONNECTION_URL, shown, f"is not a JDBC URL of a database that is supported; write {_FORMS}")
    if head == "sqlite":
        return DatabaseUrl(SQLITE, database=rest.split("?")[0].removeprefix("file:") or ":memory:")
    dialect = POSTGRESQL if head == "postgresql" else MYSQL
    location, _, query = rest.partition("?")
    parameters = dict(parse_qsl(query.replace(";", "&"), keep_blank_values=True))
    credentials, host, port, database = _location(location, dialect)
    user = user or parameters.pop("user", None) or credentials[0]
    password = password if password is not None else parameters.pop("password", credentials[1])
    parameters.pop("user", None)
    parameters.pop("password", None)
    options = _options(parameters, _PARAMETERS[dialect], _TUNING[dialect])
    return DatabaseUrl(dialect, host, port, database or (user or "" if dialect == POSTGRESQL else ""), user, password, options)


def _location(text: str, dialect: str) -> tuple[tuple[str | None, str | None], str, int, str]:
    """Return credentials, host, port and database of ``//user:password@host:port/database``, or of a bare database."""
    if not text.startswith("//"):
        return (None, None), "localhost", _PORTS[dialect], unquote(text.removeprefix("/"))
    authority, _, database = text[2:].partition("/")
    credentials, _, address = authority.rpartition("@")
    name, _, secret = credentials.partition(":")
    if "," in address:
        raise ConfigError(CONNECTION_URL, address, "names several hosts; name one, or a virtual address in front of them")
    host, port = address, ""
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        port = port.removeprefix(":")
    elif ":" in address:
        host, _, port = address.partition(":")
    if port and not port.isdigit():
        # A password with a slash is taken for host and port, so nothing of it is shown.
        reason = "has a port that is not a number (in a password of the URL, / ? and @ are written %2F %3F and %40)"
        raise ConfigError(CONNECTION_URL, "//...", reason)
    found = (unquote(name) or None, unquote(secret) if secret else None)
    return found, host or "localhost", int(port or _PORTS[dialect]), unquote(database)


Translation = Callable[[str], Mapping[str, object]]


def _options(parameters: Mapping[str, str], known: Mapping[str, Translation], tuning: frozenset[str]) -> dict[str, object]:
    options: dict[str, object] = {}
    for name, value in parameters.items():
        if name in known:
            try:
                options.update(known[name](value))
            except ValueError as error:
                raise ConfigError(CONNECTION_URL, f"...{name}={value}", str(error)) from error
        elif name not in tuning:
            able = ", ".join(sorted(known))
            raise ConfigError(
                CONNECTION_URL, f"...{name}=...", f"has a parameter without a counterpart here; understood are {able}"
            )
    return options


def _as(name: str, change: Callable[[str], object] = str) -> Translation:
    return lambda value: {name: change(value)}


def _true(value: str) -> bool:
    return value.lower() in ("", "true", "1", "yes")


def _chosen(name: str, choices: Mapping[str, object]) -> Translation:
    def translate(value: str) -> Mapping[str, object]:
        if value.lower() not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return {name: choices[value.lower()]}

    return translate


def _schema(value: str) -> Mapping[str, object]:
    return {"options": "-csearch_path=" + value.replace("\\", "\\\\").replace(" ", "\\ ")}


def _only_utc(value: str) -> Mapping[str, object]:
    if value.upper() not in ("UTC", "GMT", "ETC/UTC", "+00:00", "Z"):
        raise ValueError("has no effect here; say it with db.timezone")
    return {}


_MYSQL_SSL: dict[str, dict[str, object]] = {
    "disabled": {"ssl_disabled": True},
    "disable": {"ssl_disabled": True},
    "preferred": {},
    "required": {"ssl": {"check_hostname": False}},
    "trust": {"ssl": {"check_hostname": False}},
    "verify_ca": {"ssl_verify_cert": True},
    "verify-ca": {"ssl_verify_cert": True},
    "verify_identity": {"ssl_verify_cert": True, "ssl_verify_identity": True},
    "verify-full": {"ssl_verify_cert": True, "ssl_verify_identity": True},
}


def _mysql_ssl(value: str) -> Mapping[str, object]:
    if value.lower() not in _MYSQL_SSL:
        raise ValueError(f"must be one of {', '.join(_MYSQL_SSL)}")
    return _MYSQL_SSL[value.lower()]


def _seconds_of_millis(value: str) -> int:
    return max(1, -(-int(value) // 1000))


_PARAMETERS: dict[str, dict[str, Translation]] = {
    POSTGRESQL: {
        "sslmode": _chosen("sslmode", {m: m for m in ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")}),
        "ssl": lambda value: {"sslmode": "verify-full" if _true(value) else "disable"},
        "sslrootcert": _as("sslrootcert"),
        "sslcert": _as("sslcert"),
        "sslkey": _as("sslkey"),
        "sslpassword": _as("sslpassword"),
        "currentSchema": _schema,
        "options": _as("options"),
        "ApplicationName": _as("application_name"),
        "connectTimeout": _as("connect_timeout", int),
        "loginTimeout": _as("connect_timeout", int),
        "socketTimeout": _as("tcp_user_timeout", lambda value: int(value) * 1000),
        "tcpKeepAlive": _as("keepalives", lambda value: int(_true(value))),
        "channelBinding": _as("channel_binding"),
        "gssEncMode": _as("gssencmode"),
        "kerberosServerName": _as("krbsrvname"),
        "targetServerType": _chosen(
            "target_session_attrs",
            {
                "any": "any",
                "primary": "primary",
                "master": "primary",
                "secondary": "standby",
                "slave": "standby",
                "prefersecondary": "prefer-standby",
            },
        ),
    },
    MYSQL: {
        "useSSL": lambda value: {"ssl": {"check_hostname": False}} if _true(value) else {"ssl_disabled": True},
        "requireSSL": lambda value: {"ssl": {"check_hostname": False}} if _true(value) else {},
        "sslMode": _mysql_ssl,
        "verifyServerCertificate": _as("ssl_verify_cert", _true),
        "serverSslCert": _as("ssl_ca"),
        "sslCa": _as("ssl_ca"),
        "serverTimezone": _only_utc,
        "connectionTimeZone": _only_utc,
        "connectTimeout": _as("connect_timeout", _seconds_of_millis),
        "socketTimeout": _as("read_timeout", _seconds_of_millis),
    },
}
"""Names of Java's parameters, and what each is here."""

_TUNING: dict[str, frozenset[str]] = {
    POSTGRESQL: frozenset(
        {
            "reWriteBatchedInserts",
            "prepareThreshold",
            "preparedStatementCacheQueries",
            "preparedStatementCacheSizeMiB",
            "defaultRowFetchSize",
            "binaryTransfer",
            "loggerLevel",
            "loggerFile",
            "assumeMinServerVersion",
            "autosave",
            "cleanupSavepoints",
            "stringtype",
            "adaptiveFetch",
            "logUnclosedConnections",
            "databaseMetadataCacheFields",
            "tcpNoDelay",
        }
    ),
    MYSQL: frozenset(
        {
            "useUnicode",
            "characterEncoding",
            "rewriteBatchedStatements",
            "useCursorFetch",
            "defaultFetchSize",
            "autoReconnect",
            "cachePrepStmts",
            "prepStmtCacheSize",
            "prepStmtCacheSqlLimit",
            "useServerPrepStmts",
            "useLegacyDatetimeCode",
            "zeroDateTimeBehavior",
            "tcpKeepAlive",
            "useCompression",
            "allowPublicKeyRetrieval",
            "permitMysqlScheme",
            "nullCatalogMeansCurrent",
            "useInformationSchema",
            "tinyInt1isBit",
            "useBulkStmts",
            "allowMultiQueries",
        }
    ),
}
"""Parameters that only tune Java's drivers, or ask for what is the case here anyway."""
