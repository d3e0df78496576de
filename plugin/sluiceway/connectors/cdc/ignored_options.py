"""Names the options of a config that have no effect here, for a warning when a connector starts. No I/O."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.cdc.columns import is_rule
from sluiceway.connectors.cdc.filters import split_list
from sluiceway.connectors.cdc.keys import OVERRIDES
from sluiceway.connectors.cdc.naming_strategies import NAMING_STRATEGY, REGEX_OPTIONS, has_regex
from sluiceway.connectors.cdc.without_effect import OF_BINLOG, OF_POSTGRESQL

log = logging.getLogger(__name__)

Config = Mapping[str, str]

_READ = ("signal.consumer.", "topic.creation.")
_READ_IN_BINLOG = ("schema.history.internal.producer.", "schema.history.internal.consumer.")
_NAMESPACES = (
    *("binlog", "column", "connect", "connection", "database", "driver", "errors", "event", "executor", "field", "guardrail"),
    *("gtid", "heartbeat", "incremental", "internal", "include", "lsn", "max", "message", "min", "notification", "offset"),
    *("openlineage", "poll", "publication", "schema", "signal", "skip", "slot", "snapshot", "source", "sourceinfo", "streaming"),
    *("table", "time", "tombstones", "topic", "transaction", "unavailable", "xmin"),
)
"""The first parts of the names of Debezium's options."""
_OF_CONNECT = (
    *("errors.tolerance", "errors.retry.", "errors.log.", "errors.deadletterqueue.", "transaction.boundary"),
    *("offsets.storage.topic", "connector.class"),
)
"""Options of Connect that begin like those."""
_CHANNELS = {"signal.enabled.channels": ("jmx", "in-process"), "notification.enabled.channels": ("jmx",)}


def warn_of_ignored(config: Config, definition: ConfigDef, *, postgresql: bool) -> None:
    """Log the keys of a config that have no effect."""
    names = ignored_options(config, definition, postgresql=postgresql)
    if names:
        log.warning("[%s] These options have no effect here: %s", config.get("name", ""), ", ".join(names))


def ignored_options(config: Config, definition: ConfigDef, *, postgresql: bool) -> list[str]:
    """Return the keys of a config that have no effect, sorted. A key that is set to its default is not one of them."""
    names = OF_POSTGRESQL if postgresql else OF_BINLOG
    if not has_regex(config.get(NAMING_STRATEGY)):
        names = names.union(REGEX_OPTIONS)
    if not (config.get("gtid.source.includes") or config.get("gtid.source.excludes")):
        names = names.union(("gtid.source.filter.dml.events",))
    found = [key.name for key in definition if key.name in names and _differs(config.get(key.name), key.default)]
    found += _unknown(config, definition, postgresql=postgresql)
    found += _channels(config)
    return sorted(found)


def _differs(value: str | None, default: object) -> bool:
    return value is not None and value.strip() != (str(default).lower() if isinstance(default, bool) else str(default))


def _unknown(config: Config, definition: ConfigDef, *, postgresql: bool) -> Iterator[str]:
    """Yield keys that begin like Debezium's and that nothing reads: options of other versions, and misspelled ones."""
    read = (*_READ, *_OF_CONNECT) if postgresql else (*_READ, *_READ_IN_BINLOG, *_OF_CONNECT)
    statements = {f"{OVERRIDES}.{table}" for table in split_list(config.get(OVERRIDES))}
    names = split_list(config.get("converters"))  # each has options of its own
    for key in config:
        first = key.partition(".")[0]
        known = key in definition or key in statements or is_rule(key) or key.startswith(read)
        if not known and first in _NAMESPACES and first not in names:
            yield key


def _channels(config: Config) -> Iterator[str]:
    """Yield the channels of signals and notifications that nothing opens."""
    for key, closed in _CHANNELS.items():
        for channel in split_list(config.get(key)):
            if channel.lower() in closed:
                yield f"{key}={channel}"
