"""Checks what a config of change data capture asks for beyond single keys' types: conflicts, and options without effect. No I/O.

An option that would be ignored, and other records come than the user wants, is refused. Others without effect are in
``ignored_options``. Messages for what Debezium refuses, too, are Debezium's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.cdc.columns import rule_problem
from sluiceway.connectors.cdc.filters import check_patterns, split_list
from sluiceway.connectors.cdc.keys import OVERRIDES, invalid
from sluiceway.connectors.cdc.naming_strategies import naming_problems
from sluiceway.errors import ConfigError
from sluiceway.java.numbers import whole_number

Config = Mapping[str, str]
Check = Callable[[str, Config], "str | None"]
"""Returns what is wrong with a key that is set, given its value and the config."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_KEY_COLUMNS = re.compile(r"\s*[^\s:]+:[^:\s]+\s*")
_REPLICA_IDENTITY = re.compile(r"\s*[^\s:]+:(DEFAULT|FULL|NOTHING|INDEX \S+)\s*", re.IGNORECASE)
_HEX = "hex:"
_SSL_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity", "disable", "trust", "verify-ca", "verify-full")
_VERIFIED = frozenset({"verify_ca", "verify_identity", "verify-ca", "verify-full"})
_LARGEST_SERVER_ID = (1 << 32) - 1


def add_problems(found: dict[str, ValidatedValue], config: Config, *, postgresql: bool) -> None:
    """Add the errors of keys that have no error of their own."""
    for name, problem in _problems(config, postgresql=postgresql):
        if name in config:
            found.setdefault(name, ValidatedValue(name, config[name]))  # the names of masks have parameters
        if name in found and not found[name].errors:
            found[name].errors.append(str(invalid(name, problem)))


def _problems(config: Config, *, postgresql: bool) -> Iterator[tuple[str, str]]:
    checks = {**_CHECKS, **(_POSTGRESQL_CHECKS if postgresql else _BINLOG_CHECKS)}
    for name, check in checks.items():
        value = config.get(name)
        problem = None if value is None else check(value, config)
        if problem:
            yield name, problem
    for name, value in config.items():
        problem = rule_problem(name, value)
        if problem:
            yield name, problem
    yield from naming_problems(config)
    channels = split_list(config.get("notification.enabled.channels"))
    if "sink" in channels and not config.get("notification.sink.topic.name"):
        yield (
            "notification.sink.topic.name",
            "Notification topic name must be provided for the channel sink",
        )
    if _number(config, "max.queue.size", 8192) <= _number(config, "max.batch.size", 2048):
        yield "max.queue.size" if "max.queue.size" in config else "max.batch.size", "Must be larger than the maximum batch size"


def _number(config: Config, name: str, default: int) -> int:
    number = whole_number(config.get(name, "").strip())
    return default if number is None else number


def _topic(value: str, _config: Config) -> str | None:
    if not value or _TOPIC.fullmatch(value):
        return None
    return f"{value} has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"


def _key_columns(value: str, _config: Config) -> str | None:
    parts = [part for part in value.split(";") if part.strip()]
    if not parts or not all(_KEY_COLUMNS.fullmatch(part) for part in parts):
        return f"{value} has an invalid format: expecting table:column,column;table:column"
    try:
        check_patterns("message.key.columns", ",".join(part.partition(":")[0].strip() for part in parts))
    except ConfigError as error:
        return str(error)
    return None


def _operations(value: str, _config: Config) -> str | None:
    operations = [each.strip() for each in value.split(",")]
    return (
        "'none' cannot be specified with other skipped operation types" if "none" in operations and len(operations) > 1 else None
    )


def _placeholder(value: str, _config: Config) -> str | None:
    try:
        bytes.fromhex(value[len(_HEX) :] if value.startswith(_HEX) else "")
    except ValueError:
        return f"{value} has {_HEX} and then no hexadecimal digits"
    return None


def _replica_identities(value: str, _config: Config) -> str | None:
    if not value.strip() or all(_REPLICA_IDENTITY.fullmatch(part) for part in value.split(",")):
        return None
    return f"{value} has an invalid format: expecting schema.table:FULL,schema.table:INDEX name, and so on"


def _overrides(value: str, config: Config) -> str | None:
    missing = [f"{OVERRIDES}.{name}" for name in split_list(value) if not config.get(f"{OVERRIDES}.{name}", "").strip()]
    return f"The statement is missing: set {', '.join(missing)}" if missing else None


def _server_id(value: str, _config: Config) -> str | None:
    if 0 < (whole_number(value.strip()) or 0) <= _LARGEST_SERVER_ID:
        return None
    return f"A positive number of {_LARGEST_SERVER_ID} at most is expected"


def _channels(*known: str) -> Check:
    def check(value: str, _config: Config) -> str | None:
        unknown = [each for each in split_list(value) if each.lower() not in known]
        return f"Unknown channel {', '.join(unknown)}; this connector has {', '.join(known)}" if unknown else None

    return check


def _only(*allowed: str) -> Check:
    def check(value: str, _config: Config) -> str | None:
        return None if value.strip().lower() in allowed else f"Value must be one of {', '.join(allowed)}"

    return check


def _refused(reason: str) -> Check:
    return lambda _value, _config: f"{reason}. Remove it"


def _default_class(name: str) -> Check:
    def check(value: str, _config: Config) -> str | None:
        return None if value.strip() in ("", name) else f"{value} is a Java class, which cannot be loaded. Use {name}"

    return check


def _authorities(value: str, config: Config) -> str | None:
    if value.strip().lower() not in _VERIFIED or not config.get("database.ssl.truststore"):
        return None
    return "The certificate authorities are the system's, or those of the file SSL_CERT_FILE. Remove database.ssl.truststore"


def _ssl_mode(value: str, config: Config) -> str | None:
    return _only(*_SSL_MODES)(value, config) or _authorities(value, config)


def _no_custom(value: str, _config: Config) -> str | None:
    return "custom needs a Java class, which cannot be loaded. Choose another one" if value.strip().lower() == "custom" else None


def _without(other: str) -> Check:
    def check(value: str, config: Config) -> str | None:
        return f'"{other}" is already specified' if value and config.get(other) else None

    return check


_CHECKS: dict[str, Check] = {
    **dict.fromkeys(
        (
            "topic.prefix",
            "topic.delimiter",
            "topic.heartbeat.prefix",
            "topic.transaction",
            "notification.sink.topic.name",
            "signal.kafka.topic",
        ),
        _topic,
    ),
    "message.key.columns": _key_columns,
    "skipped.operations": _operations,
    "unavailable.value.placeholder": _placeholder,
    "post.processors": _refused("This connector has no post processors"),
    "sourceinfo.struct.maker": _refused("Source blocks have Debezium's form"),
    "transaction.metadata.factory": _default_class("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory"),
    "snapshot.mode": _no_custom,
    "snapshot.locking.mode": _no_custom,
    "snapshot.query.mode": _only("select_all"),
    OVERRIDES: _overrides,
    "snapshot.tables.order.by.row.count": _only("disabled", "ascending", "descending"),
    "notification.enabled.channels": _channels("sink", "log", "jmx"),
    "signal.enabled.channels": _channels("source", "kafka", "file", "in-process", "jmx"),
    "event.processing.failure.handling.mode": _only("fail", "warn", "skip", "ignore"),
}
_POSTGRESQL_CHECKS: dict[str, Check] = {
    "converters": _refused("This connector has no custom converters"),
    "replica.identity.autoset.values": _replica_identities,
    "database.sslmode": _only("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
}
_BINLOG_CHECKS: dict[str, Check] = {
    "converters": lambda value, _config: None if split_list(value) else "It names no converter",
    "database.server.id": _server_id,
    "database.ssl.mode": _ssl_mode,
    "schema.history.internal.kafka.topic": _topic,
    "schema.history.internal": _default_class("io.debezium.storage.kafka.history.KafkaSchemaHistory"),
    "gtid.source.excludes": _without("gtid.source.includes"),
    "inconsistent.schema.handling.mode": _only("fail", "warn", "skip"),
    "event.deserialization.failure.handling.mode": _only("fail", "warn", "skip", "ignore"),
}
