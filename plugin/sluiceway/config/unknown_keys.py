"""Finds keys of a connector's config that nothing defines, so that typing errors are noticed. No I/O."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.parsing import parse_list
from sluiceway.config.validators import OneOf

POLICY = "errors.unknown.keys"
WARN, FAIL, IGNORE = "warn", "fail", "ignore"

UNKNOWN_KEYS = ConfigDef(
    [
        ConfigKey(
            name=POLICY,
            type=Type.STRING,
            default=WARN,
            importance=Importance.LOW,
            validator=OneOf((WARN, FAIL, IGNORE)),
            doc="What to do about keys of a connector's config that nothing defines, such as misspelled ones. warn: name them in "
            "the log when the connector starts. fail: refuse the config. ignore: nothing, as Kafka Connect. The worker's value "
            "applies to connectors that do not set the key.",
        )
    ]
)

# Keys with these prefixes are read by the runtime, the plugins, their clients, or their drivers, which no ConfigDef lists.
_OPEN = (
    *("airflow.", "spark.", "sluiceway.", "producer.", "consumer.", "admin.", "topic.creation."),
    *("key.converter.", "value.converter.", "header.converter.", "transforms.", "predicates."),
    *("option.", "iceberg.", "delta.", "source.", "target.", "offset-syncs."),
    *("column.mask.", "column.truncate.", "database.", "driver.", "schema.history.internal.", "signal.consumer."),
    "snapshot.select.statement.overrides.",
)
_SIMILAR = 0.75
_ALMOST_EQUAL = 0.92  # keys with an open prefix are only reported if they are almost equal to a known one of this project


def policy_of(config: Mapping[str, str | None], worker: Mapping[str, str]) -> str:
    """Return what to do about unknown keys, by a connector's config and its worker's properties. Raises ConfigError."""
    given = config.get(POLICY) or worker.get(POLICY)
    return str(UNKNOWN_KEYS.parse({} if given is None else {POLICY: given})[POLICY])


def unknown_keys(config: Mapping[str, str | None], defined: Collection[str]) -> dict[str, str | None]:
    """Return the keys of a config that nothing defines, each with the most similar defined key or None."""
    own = (*_OPEN, *(f"{name}." for name in parse_list(config.get("converters"))))  # Debezium's converters have keys of their own
    found: dict[str, str | None] = {}
    for key in config:
        if key in defined:
            continue
        is_open = key.startswith(own)
        similar = similar_key(key, defined, _ALMOST_EQUAL if is_open else _SIMILAR)
        if not is_open or (similar is not None and key.startswith("sluiceway.")):
            found[key] = similar
    return found


def similar_key(key: str, known: Iterable[str], cutoff: float) -> str | None:
    """Return the most similar known key, None if no one is similar enough."""
    return next(iter(difflib.get_close_matches(key, list(known), n=1, cutoff=cutoff)), None)


def unknown_key_text(key: str, similar: str | None) -> str:
    """Return the sentence about an unknown key. It does not contain the value, which may be a secret."""
    return f"Nothing defines the key {key}, so it has no effect." + (f" Did you mean {similar}?" if similar else "")
