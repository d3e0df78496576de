"""Names the options of Debezium that are accepted and have no effect here. No I/O.

The reference says so of each, and a warning names those that a config sets when its connector starts.
"""

from __future__ import annotations

_OF_ALL = frozenset(
    {
        "connect.keep.alive",
        "connect.keep.alive.interval.ms",
        "custom.metric.tags",
        "database.query.timeout.ms",
        "database.server.id.offset",
        "database.sslfactory",
        "database.tcpKeepAlive",
        "event.deserialization.failure.handling.mode",
        "event.processing.failure.handling.mode",
        "incremental.snapshot.allow.schema.changes",
        "inconsistent.schema.handling.mode",
        "lsn.flush.timeout.action",
        "lsn.flush.timeout.ms",
        "query.fetch.size",
        "replica.identity.autoset.values",
        "schema.history.internal.skip.unparseable.ddl",
        "schema.refresh.mode",
        "snapshot.mode.configuration.based.snapshot.on.schema.error",
        "snapshot.mode.custom.name",
        "streaming.delay.ms",
        "table.ignore.builtin",
        "topic.cache.size",
        "use.nongraceful.disconnect",
        "xmin.fetch.interval.ms",
    }
)
OF_POSTGRESQL = _OF_ALL | frozenset(
    {
        "database.initial.statements",
        "include.schema.comments",
        "snapshot.delay.ms",
        "snapshot.fetch.size",
        "snapshot.mode.configuration.based.snapshot.schema",
    }
)
"""Those of the PostgreSQL connector."""

OF_BINLOG = _OF_ALL | frozenset({"snapshot.lock.timeout.ms", "snapshot.locking.mode"})
"""Those of the MariaDB and MySQL connectors."""
