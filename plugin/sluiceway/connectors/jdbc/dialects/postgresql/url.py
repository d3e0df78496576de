"""Translates the parameters of PostgreSQL's JDBC driver into those of libpq. No I/O.

Source: https://jdbc.postgresql.org/documentation/use/ and https://www.postgresql.org/docs/current/libpq-connect.html.
"""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.jdbc.url import Parameters, is_true, one_of, renamed

PORT = 5432

_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_SERVER_TYPES = {
    "any": "any",
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "slave": "standby",
    "prefersecondary": "prefer-standby",
}


def _schema(value: str) -> Mapping[str, object]:
    return {"options": "-csearch_path=" + value.replace("\\", "\\\\").replace(" ", "\\ ")}


PARAMETERS = Parameters(
    translated={
        "sslmode": one_of("sslmode", {mode: mode for mode in _SSL_MODES}),
        "ssl": lambda value: {"sslmode": "verify-full" if is_true(value) else "disable"},
        "sslrootcert": renamed("sslrootcert"),
        "sslcert": renamed("sslcert"),
        "sslkey": renamed("sslkey"),
        "sslpassword": renamed("sslpassword"),
        "currentSchema": _schema,
        "options": renamed("options"),
        "ApplicationName": renamed("application_name"),
        "connectTimeout": renamed("connect_timeout", int),
        "loginTimeout": renamed("connect_timeout", int),
        "socketTimeout": renamed("tcp_user_timeout", lambda value: int(value) * 1000),
        "tcpKeepAlive": renamed("keepalives", lambda value: int(is_true(value))),
        "channelBinding": renamed("channel_binding"),
        "gssEncMode": renamed("gssencmode"),
        "kerberosServerName": renamed("krbsrvname"),
        "targetServerType": one_of("target_session_attrs", _SERVER_TYPES),
    },
    ignored=frozenset(
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
)
