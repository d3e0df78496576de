"""Names the options of Debezium that are accepted and have no effect here. No I/O.

The reference says so of each, and a warning names those that a config sets when its connector starts.
"""

from __future__ import annotations

from sluiceway.connectors.cdc.keys import BOOLEAN, INT, LONG, LOW, PASSWORD, STRING, Entry

_LINEAGE = "openlineage.integration."
_COMMON: list[Entry] = [
    ("connection.validation.timeout.ms", LONG, 60000, LOW, "Milliseconds that a validation may take to connect."),
    ("custom.sanitize.pattern", STRING, None, LOW, "A regular expression of options whose values are left out of the log."),
    ("executor.shutdown.timeout.ms", LONG, 4000, LOW, "Milliseconds to wait for threads that end."),
    ("guardrail.collections.max", INT, 0, LOW, "The most captured tables; 0: any number."),
    ("guardrail.collections.limit.action", STRING, "warn", LOW, "What to do about more captured tables: warn or fail."),
    ("heartbeat.topics.prefix", STRING, "__debezium-heartbeat", LOW, "The former name of topic.heartbeat.prefix."),
    (
        f"{_LINEAGE}enabled",
        BOOLEAN,
        False,
        LOW,
        "Whether OpenLineage events are sent. Airflow's provider sends those of connectors.",
    ),
    (f"{_LINEAGE}config.file.path", STRING, "./openlineage.yml", LOW, "The file of OpenLineage's client."),
    (f"{_LINEAGE}dataset.kafka.bootstrap.servers", STRING, None, LOW, "The brokers in OpenLineage's names of topics."),
    (
        f"{_LINEAGE}job.description",
        STRING,
        "Debezium change data capture job",
        LOW,
        "The description of the job for OpenLineage.",
    ),
    (f"{_LINEAGE}job.namespace", STRING, None, LOW, "The namespace of the job for OpenLineage."),
    (f"{_LINEAGE}job.owners", STRING, None, LOW, "The owners of the job for OpenLineage."),
    (f"{_LINEAGE}job.tags", STRING, None, LOW, "The tags of the job for OpenLineage."),
    ("snapshot.max.threads.multiplier", INT, 1, LOW, "The parts of a table for each thread of a snapshot."),
    ("snapshot.mode.custom.name", STRING, None, LOW, "The name of a custom snapshotter; custom ones are not supported."),
    (
        "snapshot.query.mode.custom.name",
        STRING,
        None,
        LOW,
        "The name of a custom form of queries; custom ones are not supported.",
    ),
]
UNREAD_IN_POSTGRESQL: list[Entry] = [
    *_COMMON,
    ("database.include.list", STRING, None, LOW, "Databases to capture; there is one, database.dbname."),
    ("database.exclude.list", STRING, None, LOW, "Databases not to capture."),
    (
        "event.converting.failure.handling.mode",
        STRING,
        "warn",
        LOW,
        "What to do with a value that does not fit: fail, warn, skip.",
    ),
    ("legacy.snapshot.max.threads", BOOLEAN, False, LOW, "Whether each thread of a snapshot reads whole tables."),
    *(
        (f"memory.management.{part}.class", STRING, "io.debezium.relational.ConcurrentMapTableMappingStorage", LOW, doc)
        for part, doc in (("schemas", "The class that keeps schemas."), ("tables", "The class that keeps structures of tables."))
    ),
    ("notification.http.url", STRING, None, LOW, "The URL of the channel http, which does not exist."),
    ("notification.http.allow.private.networks", BOOLEAN, False, LOW, "Whether the channel http may use private addresses."),
    ("notification.http.retries", INT, 2, LOW, "The retries of the channel http."),
    ("notification.http.timeout.ms", INT, 5000, LOW, "The timeout of the channel http."),
    ("signal.emit.failure.backoff.ms", LONG, 10000, LOW, "Milliseconds between attempts to write a signal."),
    ("signal.emit.failure.max.retries", INT, 0, LOW, "How often to try to write a signal again."),
    (
        "snapshot.locking.mode.custom.name",
        STRING,
        None,
        LOW,
        "The name of a custom form of locks; custom ones are not supported.",
    ),
    ("statistics.metrics.enabled", BOOLEAN, True, LOW, "Whether metrics have statistics."),
]
"""Keys of the PostgreSQL connector that nothing reads."""

UNREAD_IN_BINLOG: list[Entry] = [
    *_COMMON,
    ("binlog.net.read.timeout", LONG, 0, LOW, "Seconds that the server waits to read; 0: its default."),
    ("binlog.net.write.timeout", LONG, 0, LOW, "Seconds that the server waits to write; 0: its default."),
    ("database.jdbc.driver", STRING, "com.mysql.cj.jdbc.Driver", LOW, "The class of the JDBC driver."),
    ("database.protocol", STRING, "jdbc:mysql", LOW, "The protocol of the JDBC driver."),
    ("database.ssl.keystore", STRING, None, LOW, "A file with the client's certificate, in Java's format."),
    ("database.ssl.keystore.password", PASSWORD, None, LOW, "The password of that file."),
    (
        "database.ssl.truststore",
        STRING,
        None,
        LOW,
        "A file with trusted certificates, in Java's format. The system's are trusted.",
    ),
    ("database.ssl.truststore.password", PASSWORD, None, LOW, "The password of that file."),
    ("min.row.count.to.stream.results", INT, 1000, LOW, "The rows of a table from which on a snapshot reads them in parts."),
]
"""Keys of the MariaDB and MySQL connectors that nothing reads."""

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
        "streaming.delay.ms",
        "table.ignore.builtin",
        "topic.cache.size",
        "use.nongraceful.disconnect",
        "xmin.fetch.interval.ms",
    }
)
OF_POSTGRESQL = _OF_ALL.union(entry[0] for entry in UNREAD_IN_POSTGRESQL) | frozenset(
    {
        "database.initial.statements",
        "include.schema.comments",
        "snapshot.delay.ms",
        "snapshot.fetch.size",
        "snapshot.mode.configuration.based.snapshot.schema",
    }
)
"""Those of the PostgreSQL connector."""

OF_BINLOG = _OF_ALL.union(entry[0] for entry in UNREAD_IN_BINLOG) | frozenset(
    {"snapshot.lock.timeout.ms", "snapshot.locking.mode"}
)
"""Those of the MariaDB and MySQL connectors."""
