"""Defines the keys that the table sinks share, and their typed values.

Names and meanings are those of Apache's Iceberg sink, with ``delta.`` for ``iceberg.`` in the Delta sink; keys below
``sluiceway.`` are additional.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import EnumText, Range
from sluiceway.connectors.null_values import REPLACE_NULLS, replace_nulls
from sluiceway.connectors.replacement import IntervalReplacement, interval_column
from sluiceway.errors import ConfigError

TABLES = "tables"
DYNAMIC = "tables.dynamic-enabled"
ROUTE_FIELD = "tables.route-field"
ID_COLUMNS = "tables.default-id-columns"
PARTITION_BY = "tables.default-partition-by"
AUTO_CREATE = "tables.auto-create-enabled"
EVOLVE = "tables.evolve-schema-enabled"
FORCE_OPTIONAL = "tables.schema-force-optional"
CASE_INSENSITIVE = "tables.schema-case-insensitive"
UPSERT = "tables.upsert-mode-enabled"
CDC_FIELD = "tables.cdc-field"
CREATE_PROPS = "tables.auto-create-props."
WRITE_PROPS = "tables.write-props."
INTERVAL = "control.commit.interval-ms"
KEEP_NULLS = "tables.replace-null-with-default"

FLUSH_SIZE = "sluiceway.flush.size"
VALUE_FORMAT = "sluiceway.value.format"
ORPHAN_AGE_MS = "sluiceway.orphans.age.ms"

PLAIN, DEBEZIUM = "plain", "debezium"

_TABLES, _COMMITS = "Tables", "Commits"

_text = functools.partial(ConfigKey, type=Type.STRING)
_flag = functools.partial(ConfigKey, type=Type.BOOLEAN, default=False, importance=Importance.MEDIUM, group=_TABLES)
_list = functools.partial(ConfigKey, type=Type.LIST, default=[], importance=Importance.MEDIUM, group=_TABLES)


def shared_keys(prefix: str, product: str) -> list[ConfigKey]:
    """Return the keys of a table sink; ``prefix`` is ``iceberg.`` or ``delta.``."""
    return [*_routing(prefix, product), *_schemas(prefix), *_commits(prefix)]


def _routing(prefix: str, product: str) -> list[ConfigKey]:
    return [
        _list(
            name=prefix + TABLES,
            importance=Importance.HIGH,
            doc=f"The {product} tables to write to. With several tables and {prefix}{ROUTE_FIELD}, a record goes to the tables "
            f"whose {prefix}table.<table>.route-regex matches the field; without it, to all of them.",
        ),
        _flag(
            name=prefix + DYNAMIC,
            doc=f"Whether {prefix}{ROUTE_FIELD} holds the table's name, in lower case after conversion, instead of a text for "
            "the regular expressions. Records without a name are skipped. A text with a character such as / or %, or with an "
            "empty part between dots, is an error of its record.",
        ),
        _text(
            name=prefix + ROUTE_FIELD,
            default=None,
            group=_TABLES,
            doc="The field of the value that selects the tables; a dot separates the fields of nested structs.",
        ),
        _list(
            name=prefix + ID_COLUMNS,
            doc=f"The columns that identify a row. Needed to create tables with identifier columns and for {prefix}{UPSERT}. "
            f"{prefix}table.<table>.id-columns overrides it.",
        ),
        _text(
            name=prefix + PARTITION_BY,
            default="",
            group=_TABLES,
            doc=f"How a created table is partitioned, separated by commas. {prefix}table.<table>.partition-by overrides it.",
        ),
        _flag(
            name=prefix + UPSERT,
            doc="Whether a record replaces the row with the same id columns, and a tombstone deletes it. Each commit rewrites "
            "the data files that hold such rows.",
        ),
        _text(
            name=prefix + CDC_FIELD,
            default=None,
            group=_TABLES,
            doc="The field of the value that holds the change: D or d deletes the row, anything else writes it. Needs "
            f"{prefix}{UPSERT}.",
        ),
    ]


def _schemas(prefix: str) -> list[ConfigKey]:
    return [
        _flag(
            name=prefix + AUTO_CREATE, doc="Whether a table that does not exist is created with the columns of the first records."
        ),
        _flag(
            name=prefix + EVOLVE,
            doc="Whether tables follow the records' schemas: missing columns are added, types are widened, and required columns "
            "become optional. Without it, fields without a column are not written.",
        ),
        _flag(name=prefix + FORCE_OPTIONAL, doc="Whether columns of created tables and added columns are always optional."),
        _flag(name=prefix + CASE_INSENSITIVE, doc="Whether columns are found by name without regard to case."),
        replace_nulls(_TABLES),
        _text(
            name=VALUE_FORMAT,
            default=PLAIN,
            validator=EnumText(PLAIN, DEBEZIUM),
            group=_TABLES,
            doc="plain: the value is the row. debezium: the value is a change event; its field after is the row, and an event "
            f"with op=d deletes the row in its field before. debezium needs {prefix}{UPSERT}.",
        ),
    ]


def _commits(prefix: str) -> list[ConfigKey]:
    return [
        ConfigKey(
            name=prefix + INTERVAL,
            type=Type.INT,
            default=60_000,
            validator=Range(0),
            importance=Importance.MEDIUM,
            group=_COMMITS,
            doc="The maximum number of milliseconds between two commits to a table. Each offset commit of the worker "
            "(offset.flush.interval.ms) commits to the tables too.",
        ),
        ConfigKey(
            name=FLUSH_SIZE,
            type=Type.INT,
            default=1_000_000,
            validator=Range(1),
            importance=Importance.MEDIUM,
            group=_COMMITS,
            doc="The number of records after which a task commits, even if the interval is not over.",
        ),
        ConfigKey(
            name=UNREACHABLE_MS,
            type=Type.LONG,
            default=3_600_000,
            validator=Range(-1),
            importance=Importance.LOW,
            group=_COMMITS,
            doc="Milliseconds to wait for an unreachable catalog or storage before the task fails; -1 is unlimited. Meanwhile "
            "the task reads nothing from Kafka.",
        ),
        ConfigKey(
            name=ORPHAN_AGE_MS,
            type=Type.LONG,
            default=86_400_000,
            validator=Range(-1),
            importance=Importance.LOW,
            group=_COMMITS,
            doc="The age in milliseconds from which data files that this connector wrote but never committed, such as those of "
            "killed tasks, are deleted when a task opens the table; -1 keeps them. Must exceed the longest time between "
            "writing and committing a file.",
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The typed values of a table sink's shared keys; times in seconds, None for unlimited or never."""

    connector: str
    prefix: str
    namespaced: bool
    tables: tuple[str, ...]
    dynamic: bool
    route_field: tuple[str, ...] | None
    auto_create: bool
    evolve: bool
    force_optional: bool
    case_insensitive: bool
    upsert: bool
    cdc_field: str | None
    debezium: bool
    replace_nulls: bool
    interval: float
    flush_size: int
    unreachable: float | None
    orphan_age: float | None
    interval_column: str | None
    replacement: IntervalReplacement | None
    config: Mapping[str, str]

    @classmethod
    def of(
        cls, prefix: str, definition: ConfigDef, config: Mapping[str, str], *, namespaced: bool, by_topic: bool
    ) -> TableOptions:
        """Return the values of a config. Raises ConfigError for an invalid value and for keys that conflict.

        ``by_topic``: whether topics name the tables if the config names none.
        """
        values = definition.parse(config)
        for name, message in conflicts(prefix, values, config, by_topic=by_topic).items():
            raise ConfigError(name, values.get(name), message)
        field = values[prefix + ROUTE_FIELD]
        return cls(
            connector=config.get("name", ""),
            prefix=prefix,
            namespaced=namespaced,
            tables=tuple(_strings(values[prefix + TABLES])),
            dynamic=bool(values[prefix + DYNAMIC]),
            route_field=tuple(str(field).split(".")) if field else None,
            auto_create=bool(values[prefix + AUTO_CREATE]),
            evolve=bool(values[prefix + EVOLVE]),
            force_optional=bool(values.get(prefix + FORCE_OPTIONAL, True)),
            case_insensitive=bool(values.get(prefix + CASE_INSENSITIVE)),
            upsert=bool(values[prefix + UPSERT]),
            cdc_field=str(values[prefix + CDC_FIELD]) if values[prefix + CDC_FIELD] else None,
            debezium=str(values[VALUE_FORMAT]).lower() == DEBEZIUM,
            replace_nulls=bool(values[REPLACE_NULLS]) and values.get(prefix + KEEP_NULLS) is not False,
            interval=_whole(values[prefix + INTERVAL]) / 1000,
            flush_size=_whole(values[FLUSH_SIZE]),
            unreachable=_seconds(values[UNREACHABLE_MS]),
            orphan_age=_seconds(values.get(ORPHAN_AGE_MS, -1)),
            interval_column=interval_column(config),
            replacement=IntervalReplacement.of(config),
            config=dict(config),
        )

    def id_columns(self, table: str) -> tuple[str, ...]:
        """Return the columns that identify a row of a table."""
        return tuple(part.strip() for part in self._of(table, "id-columns", ID_COLUMNS).split(",") if part.strip())

    def partition_by(self, table: str) -> tuple[str, ...]:
        """Return the partition fields of a table to create."""
        return partition_fields(self._of(table, "partition-by", PARTITION_BY))

    def route_regex(self, table: str) -> re.Pattern[str] | None:
        text = self.config.get(f"{self.prefix}table.{table}.route-regex")
        return re.compile(text) if text else None

    def setting(self, table: str, name: str, default: str) -> str:
        """Return a table's setting, or the value of the key ``default`` (without prefix)."""
        return self._of(table, name, default)

    def properties(self, suffix: str) -> dict[str, str]:
        """Return the config's keys that start with the prefix and ``suffix``, without these."""
        return keys_below(self.config, self.prefix + suffix)

    def _of(self, table: str, name: str, default: str) -> str:
        return self.config.get(f"{self.prefix}table.{table}.{name}", self.config.get(self.prefix + default, ""))


def keys_below(config: Mapping[str, str], start: str) -> dict[str, str]:
    """Return the keys of a config that start with a text, without it."""
    return {name[len(start) :]: value for name, value in config.items() if name.startswith(start)}


def partition_fields(text: str) -> tuple[str, ...]:
    """Split at the commas outside of parentheses, so that ``bucket(id, 4), day(at)`` has two parts."""
    return tuple(part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip())


def conflicts(prefix: str, values: Mapping[str, ConfigValue], config: Mapping[str, str], *, by_topic: bool) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems = _routing_conflicts(prefix, values, config, by_topic=by_topic)
    if not values[prefix + UPSERT]:
        for name, given in ((prefix + CDC_FIELD, values[prefix + CDC_FIELD]), (VALUE_FORMAT, _is_debezium(values))):
            if given:
                problems[name] = f"needs {prefix}{UPSERT}=true"
    elif not values[prefix + ID_COLUMNS]:
        tables = _strings(values[prefix + TABLES])
        if not tables or not all(config.get(f"{prefix}table.{table}.id-columns") for table in tables):
            problems[prefix + ID_COLUMNS] = f"{prefix}{UPSERT}=true needs the columns that identify a row"
    age, wait = _whole(values.get(ORPHAN_AGE_MS, -1)), max(_whole(values[UNREACHABLE_MS]), 0)
    if age >= 0 and values[UNREACHABLE_MS] == -1:
        problems[ORPHAN_AGE_MS] = f"must be -1 with {UNREACHABLE_MS}=-1, because files may wait for their commit without limit"
    elif 0 <= age < wait + _whole(values[prefix + INTERVAL]):
        problems[ORPHAN_AGE_MS] = (
            f"must be at least {UNREACHABLE_MS} + {prefix}{INTERVAL}, or files may be deleted before their commit"
        )
    return problems


def _routing_conflicts(
    prefix: str, values: Mapping[str, ConfigValue], config: Mapping[str, str], *, by_topic: bool
) -> dict[str, str]:
    problems: dict[str, str] = {}
    if values[prefix + DYNAMIC]:
        if not values[prefix + ROUTE_FIELD]:
            problems[prefix + ROUTE_FIELD] = f"{prefix}{DYNAMIC}=true needs the field that holds the table's name"
    elif not values[prefix + TABLES] and (not by_topic or values[prefix + ROUTE_FIELD]):
        problems[prefix + TABLES] = f"must name a table, unless {prefix}{DYNAMIC}=true"
    for table in _strings(values[prefix + TABLES]):
        try:
            re.compile(config.get(f"{prefix}table.{table}.route-regex", ""))
        except re.error as error:
            problems[prefix + TABLES] = f"{prefix}table.{table}.route-regex is no regular expression: {error}"
    return problems


def _is_debezium(values: Mapping[str, ConfigValue]) -> bool:
    return str(values[VALUE_FORMAT]).lower() == DEBEZIUM


def _strings(value: ConfigValue) -> Sequence[str]:
    return value if isinstance(value, list) else []


def _whole(value: ConfigValue) -> int:
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value


def _seconds(value: ConfigValue) -> float | None:
    number = _whole(value)
    return None if number < 0 else number / 1000
