"""Finds keys of a connector's config that nothing defines, so that typing errors are noticed. No I/O."""

from __future__ import annotations

import difflib
import re
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

READ_BY_RUNTIME = (
    *("airflow.", "spark.", "sluiceway.", "producer.", "consumer.", "admin.", "topic.creation."),
    *("key.converter.", "value.converter.", "header.converter.", "transforms.", "predicates."),
)
"""Prefixes of keys that are not the connector's own."""

# Keys with these prefixes are read by the runtime, the plugins, their clients, or their drivers, which no ConfigDef lists.
_OPEN = (
    *READ_BY_RUNTIME,
    *("option.", "iceberg.", "delta.", "source.", "target.", "offset-syncs.", "singer.config."),
    *("column.mask.", "column.truncate.", "database.", "driver.", "schema.history.internal.", "signal.consumer."),
    "snapshot.select.statement.overrides.",
    "labels.",
    *("dlt.config.", "dlt.secret."),
    *("confluent.license", "confluent.topic"),  # of Confluent's licenses, which nothing here needs
)
# A validation lists the keys that a converter, transform, or predicate defines. It may read others below its prefix.
_PLUGIN = re.compile(r"(?:key|value|header)\.converter\.|(?:transforms|predicates)\.[^.]+\.")
_SIMILAR = 0.75
_ALMOST_EQUAL = 0.92
_MISSPELT = 0.8  # two letters of five that changed places


def policy_of(config: Mapping[str, str | None], worker: Mapping[str, str]) -> str:
    """Return what to do about unknown keys, by a connector's config and its worker's properties. Raises ConfigError."""
    given = config.get(POLICY) or worker.get(POLICY)
    return str(UNKNOWN_KEYS.parse({} if given is None else {POLICY: given})[POLICY])


def unknown_keys(
    config: Mapping[str, str | None], defined: Collection[str], *, reads_others: bool = False
) -> dict[str, str | None]:
    """Return the keys of a config that nothing defines, each with the most similar defined key or None.

    ``reads_others`` is whether the connector may read keys that it does not define, as Java plugins do. Then only those are
    returned that are almost equal to a defined one.
    """
    own = (*_OPEN, *(f"{name}." for name in parse_list(config.get("converters"))))  # Debezium's converters have keys of their own
    # Of the open prefixes, only "sluiceway." is of keys that this project defines.
    guessed = (key for key in config if key.startswith("sluiceway.") or not key.startswith(own))
    return {**unknown_among(guessed, defined, ("",) if reads_others else own), **_misspelt_of_plugins(config, defined)}


def _misspelt_of_plugins(config: Mapping[str, str | None], defined: Collection[str]) -> dict[str, str | None]:
    """Return the keys of converters, transforms, and predicates that differ little from a key which the config does not set."""
    found: dict[str, str | None] = {}
    for key in config:
        prefix = match[0] if (match := _PLUGIN.match(key)) else None
        if prefix is None or key in defined:
            continue
        unset = [each.removeprefix(prefix) for each in defined if each.startswith(prefix) and each not in config]
        alike = difflib.get_close_matches(key.removeprefix(prefix), unset, n=1, cutoff=_MISSPELT)
        if alike:
            found[key] = prefix + alike[0]
    return found


def unknown_among(keys: Iterable[str], known: Collection[str], is_open: tuple[str, ...]) -> dict[str, str | None]:
    """Return the keys that are not known, each with the most similar known key or None.

    Keys that begin with one of ``is_open`` are only returned if they are almost equal to a known one.
    """
    found: dict[str, str | None] = {}
    for key in keys:
        if key in known:
            continue
        may_be_read = key.startswith(is_open)
        cutoff = _ALMOST_EQUAL if may_be_read else _SIMILAR
        similar = next(iter(difflib.get_close_matches(key, list(known), n=1, cutoff=cutoff)), None)
        if similar or not may_be_read:
            found[key] = similar
    return found


def unknown_key_text(key: str, similar: str | None) -> str:
    """Return the sentence about an unknown key. It does not contain the value, which may be a secret."""
    return f"Nothing defines the key {key}, so it has no effect." + (f" Did you mean {similar}?" if similar else "")
