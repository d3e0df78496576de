"""Defines the keys of the PostgreSQL connector, with Debezium's names, defaults and messages."""

from __future__ import annotations

import re

from sluiceway.config.definition import ConfigValue, Validator
from sluiceway.config.validators import Check
from sluiceway.connectors.cdc.keys import (
    BOOLEAN,
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PATTERNS,
    REQUIRED,
    STRING,
    Entry,
    config_def,
    invalid,
    one_of,
)
from sluiceway.connectors.cdc.without_effect import OF_POSTGRESQL, UNREAD_IN_POSTGRESQL

_SLOT = re.compile(r"[a-z0-9_]{1,63}")


def _check_slot(name: str, value: ConfigValue) -> None:
    if not _SLOT.fullmatch(str(value)):
        raise invalid(
            name, "Valid replication slot name must contain only digits, lowercase characters and underscores with length <= 63"
        )


def _check_money(name: str, value: ConfigValue) -> None:
    if isinstance(value, int) and not 0 <= value <= 18:
        raise invalid(name, "A number of digits between 0 and 18 is expected")


_KEYS: list[Entry] = [
    ("database.port", INT, 5432, HIGH, "The port of the database server."),
    ("database.dbname", STRING, None, HIGH, "The database to capture."),
    ("plugin.name", STRING, "pgoutput", MEDIUM, "The output plugin; only pgoutput, which the server itself has, is supported."),
    ("slot.name", STRING, "debezium", MEDIUM, "The replication slot, which is created if it does not exist."),
    ("slot.drop.on.stop", BOOLEAN, False, MEDIUM, "Whether to drop the slot when the connector stops. For tests only."),
    ("slot.failover", BOOLEAN, False, MEDIUM, "Whether standbys keep the slot; needs PostgreSQL 17."),
    ("slot.stream.params", STRING, None, LOW, "Parameters of the output plugin: name=value;name=value."),
    ("slot.max.retries", INT, 6, LOW, "How often to try again to connect to the slot."),
    ("slot.retry.delay.ms", LONG, 10000, LOW, "Milliseconds between two tries to connect to the slot."),
    ("publication.name", STRING, "dbz_publication", MEDIUM, "The publication, which says what the log contains."),
    (
        "publication.autocreate.mode",
        STRING,
        "all_tables",
        MEDIUM,
        "How to create the publication: all_tables, filtered (captured tables), no_tables, or disabled.",
    ),
    ("publish.via.partition.root", BOOLEAN, False, LOW, "Whether changes of partitions are those of the partitioned table."),
    ("replica.identity.autoset.values", STRING, None, LOW, "Replica identities to set: table:FULL,table:INDEX name."),
    ("schema.include.list", STRING, None, MEDIUM, "Regular expressions of the schemas to capture."),
    ("schema.exclude.list", STRING, None, MEDIUM, "Regular expressions of the schemas not to capture."),
    (
        "snapshot.mode",
        STRING,
        "initial",
        MEDIUM,
        "When to read the tables: initial, always, initial_only, no_data, when_needed, configuration_based.",
    ),
    ("snapshot.isolation.mode", STRING, "serializable", LOW, "The isolation of a snapshot's transaction."),
    ("snapshot.locking.mode", STRING, "none", LOW, "Whether a snapshot locks tables against changes of their columns."),
    ("snapshot.query.mode", STRING, "select_all", LOW, "How a snapshot reads tables."),
    ("time.precision.mode", STRING, "adaptive", MEDIUM, "The form of dates and times."),
    ("interval.handling.mode", STRING, "numeric", LOW, "The form of intervals: numeric or string."),
    ("hstore.handling.mode", STRING, "json", LOW, "The form of hstore: json or map."),
    ("money.fraction.digits", INT, 2, LOW, "The digits of money after the point."),
    ("include.unknown.datatypes", BOOLEAN, False, LOW, "Whether columns of unknown types are included, as bytes of their text."),
    (
        "schema.refresh.mode",
        STRING,
        "columns_diff",
        MEDIUM,
        "When structures of tables are read again. The log announces changed columns.",
    ),
    ("message.prefix.include.list", STRING, None, MEDIUM, "Regular expressions of the prefixes of logical messages to capture."),
    (
        "message.prefix.exclude.list",
        STRING,
        None,
        MEDIUM,
        "Regular expressions of the prefixes of logical messages not to capture.",
    ),
    ("status.update.interval.ms", INT, 10000, MEDIUM, "Milliseconds between two reports of the position to the server."),
    ("xmin.fetch.interval.ms", LONG, 0, MEDIUM, "Milliseconds between two reads of the slot's xmin; 0: never."),
    ("flush.lsn.source", BOOLEAN, True, LOW, "Whether the server may drop the log behind stored offsets."),
    (
        "lsn.flush.mode",
        STRING,
        "connector",
        MEDIUM,
        "Who reports positions to the server: connector, connector_and_driver, manual.",
    ),
    ("lsn.flush.timeout.ms", LONG, 30000, LOW, "Milliseconds to wait for the position that was flushed."),
    ("lsn.flush.timeout.action", STRING, "fail", LOW, "What to do after that: fail, warn, ignore."),
    ("offset.mismatch.strategy", STRING, "no_validation", LOW, "Which of stored offset and slot wins if the slot is ahead."),
    ("database.sslmode", STRING, "prefer", MEDIUM, "Whether the connection is encrypted; libpq's sslmode."),
    ("database.sslcert", STRING, None, MEDIUM, "The file of the client's certificate."),
    ("database.sslkey", STRING, None, MEDIUM, "The file of the client's key."),
    ("database.sslpassword", PASSWORD, None, MEDIUM, "The password of the client's key."),
    ("database.sslrootcert", STRING, None, MEDIUM, "The file of the certificate authorities."),
    ("database.sslfactory", STRING, None, LOW, "A Java class that makes encrypted connections."),
    ("database.tcpKeepAlive", BOOLEAN, True, LOW, "Whether TCP keep-alive probes are sent."),
]

_VALIDATORS: dict[str, Validator] = {
    "database.dbname": REQUIRED,
    "plugin.name": one_of("decoderbufs", "pgoutput"),
    "slot.name": Check(_check_slot, "a slot's name"),
    "publication.autocreate.mode": one_of("disabled", "all_tables", "filtered", "no_tables"),
    "snapshot.mode": one_of("always", "initial", "initial_only", "no_data", "when_needed", "configuration_based", "custom"),
    "snapshot.isolation.mode": one_of("serializable", "repeatable_read", "read_committed", "read_uncommitted"),
    "snapshot.locking.mode": one_of("none", "shared", "custom"),
    "time.precision.mode": one_of(
        "adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"
    ),
    "interval.handling.mode": one_of("numeric", "string"),
    "hstore.handling.mode": one_of("json", "map"),
    "lsn.flush.mode": one_of("manual", "connector", "connector_and_driver"),
    "offset.mismatch.strategy": one_of("no_validation", "trust_offset", "trust_slot", "trust_greater_lsn"),
    "money.fraction.digits": Check(_check_money, "[0,...,18]"),
    **dict.fromkeys(
        ("schema.include.list", "schema.exclude.list", "message.prefix.include.list", "message.prefix.exclude.list"), PATTERNS
    ),
}

CONFIG = config_def([*_KEYS, *UNREAD_IN_POSTGRESQL], _VALIDATORS, "PostgreSQL", OF_POSTGRESQL)
