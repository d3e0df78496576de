"""Translates the parameters of MySQL's and MariaDB's JDBC drivers into those of PyMySQL. No I/O.

Source: https://dev.mysql.com/doc/connector-j/en/connector-j-reference-configuration-properties.html and
https://mariadb.com/kb/en/about-mariadb-connector-j/.
"""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.jdbc.url import Parameters, is_true, renamed

PORT = 3306

_UNVERIFIED: dict[str, object] = {"ssl": {"check_hostname": False}}
_SSL_MODES: dict[str, dict[str, object]] = {
    "disabled": {"ssl_disabled": True},
    "disable": {"ssl_disabled": True},
    "preferred": {},
    "required": _UNVERIFIED,
    "trust": _UNVERIFIED,
    "verify_ca": {"ssl_verify_cert": True},
    "verify-ca": {"ssl_verify_cert": True},
    "verify_identity": {"ssl_verify_cert": True, "ssl_verify_identity": True},
    "verify-full": {"ssl_verify_cert": True, "ssl_verify_identity": True},
}


def _ssl_mode(value: str) -> Mapping[str, object]:
    if value.lower() not in _SSL_MODES:
        raise ValueError(f"must be one of {', '.join(_SSL_MODES)}")
    return _SSL_MODES[value.lower()]


def _only_utc(value: str) -> Mapping[str, object]:
    if value.upper() not in ("UTC", "GMT", "ETC/UTC", "+00:00", "Z"):
        raise ValueError("has no effect here; set db.timezone instead")
    return {}


def _seconds(milliseconds: str) -> int:
    return max(1, -(-int(milliseconds) // 1000))


PARAMETERS = Parameters(
    translated={
        "useSSL": lambda value: _UNVERIFIED if is_true(value) else {"ssl_disabled": True},
        "requireSSL": lambda value: _UNVERIFIED if is_true(value) else {},
        "sslMode": _ssl_mode,
        "verifyServerCertificate": renamed("ssl_verify_cert", is_true),
        "serverSslCert": renamed("ssl_ca"),
        "sslCa": renamed("ssl_ca"),
        "serverTimezone": _only_utc,
        "connectionTimeZone": _only_utc,
        "connectTimeout": renamed("connect_timeout", _seconds),
        "socketTimeout": renamed("read_timeout", _seconds),
    },
    ignored=frozenset(
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
)
