"""Chooses how topics are named by ``topic.naming.strategy`` and its options. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sluiceway.connectors.cdc.naming import Routing, TopicNames, topic_name, unicode_topic_name
from sluiceway.java.blanks import trim
from sluiceway.java.regex import RegexError, compile_java

if TYPE_CHECKING:
    from sluiceway.connectors.cdc.config import Values

Config = Mapping[str, str]

NAMING_STRATEGY = "topic.naming.strategy"
NAMING_STRATEGY_DOC = (
    "What names topics: Default-, Schema-, DefaultRegex-, SchemaRegex-, DefaultUnicode-, SchemaUnicodeTopicNamingStrategy."
)

_PACKAGE = "io.debezium.schema."
_KINDS = ("Default", "Schema")
_FORMS = ("", "Regex", "Unicode")
STRATEGIES = tuple(f"{_PACKAGE}{kind}{form}TopicNamingStrategy" for kind in _KINDS for form in _FORMS)

_REGEX, _REPLACEMENT = "topic.regex", "topic.replacement"
_KEY_REGEX, _KEY_REPLACEMENT = "topic.key.field.regex", "topic.key.field.replacement"
_KEY_FIELD, _UNIQUE = "topic.key.field.name", "topic.key.enforce.uniqueness"
REGEX_OPTIONS = (_REGEX, _REPLACEMENT, _UNIQUE, _KEY_FIELD, _KEY_REGEX, _KEY_REPLACEMENT)
"""The options that only the strategies with a regular expression read."""


def topic_names(values: Values, *, own: str) -> TopicNames:
    """Return the names of topics by the values of a valid config.

    Args:
        own: the connector's default strategy. Debezium's tables of PostgreSQL have a schema and no database, those of MariaDB and
            MySQL a database and no schema; so the strategies of the other kind name the table alone.
    """
    strategy = values.text(NAMING_STRATEGY) or own
    return TopicNames(
        values.text("topic.prefix") or "",
        delimiter=values.text("topic.delimiter") or ".",
        heartbeat_prefix=values.text("topic.heartbeat.prefix") or "",
        transaction=values.text("topic.transaction") or "",
        namespace=_kind(strategy) == _kind(own),
        valid=unicode_topic_name if "Unicode" in strategy else topic_name,
        routing=_routing(values) if has_regex(strategy) else None,
    )


def has_regex(strategy: str | None) -> bool:
    return "Regex" in (strategy or "")


def _kind(strategy: str) -> str:
    return next((kind for kind in _KINDS if strategy.strip().startswith(_PACKAGE + kind)), "")


def _routing(values: Values) -> Routing:
    key_regex = values.text(_KEY_REGEX) or ""
    return Routing(
        regex=compile_java(values.text(_REGEX) or ""),
        replacement=values.text(_REPLACEMENT) or "",
        key_field=values.text(_KEY_FIELD) if values.flag(_UNIQUE) else None,
        key_regex=compile_java(key_regex) if trim(key_regex) else None,
        key_replacement=values.text(_KEY_REPLACEMENT) or "",
    )


def naming_problems(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the keys of a config whose values name no topics, with what is wrong."""
    strategy = config.get(NAMING_STRATEGY, "").strip()
    if strategy and strategy not in STRATEGIES:
        yield NAMING_STRATEGY, f"{strategy} is not supported, and topics would have other names. Use {', '.join(STRATEGIES)}"
    elif has_regex(strategy):
        yield from _replacement_problems(config, _REGEX, _REPLACEMENT, required=True)
        yield from _replacement_problems(config, _KEY_REGEX, _KEY_REPLACEMENT, required=False)


def _replacement_problems(config: Config, regex_key: str, replacement_key: str, *, required: bool) -> Iterator[tuple[str, str]]:
    regex, replacement = config.get(regex_key, ""), config.get(replacement_key, "")
    if not trim(regex):
        if required:
            yield regex_key, "A value is required"
        return
    if not trim(replacement):
        yield replacement_key, f"{replacement_key} must be non-empty if {regex_key} is set."
    try:
        compile_java(regex)
    except RegexError as error:
        yield regex_key, f"A regular expression is expected, but {error}"
        return
    try:
        compile_java(f"(?:{regex})|").replace_first("", replacement)  # matches, so that the replacement is read
    except (ValueError, IndexError) as error:
        yield replacement_key, f"{replacement} is no replacement: {error}"
