"""Defines the keys that the table sources share, and their typed values."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import EnumText, NonEmptyList, Range
from sluiceway.connectors.tables.config import ID_COLUMNS, TABLES, keys_below
from sluiceway.connectors.tables.source.store import Selection
from sluiceway.errors import ConfigError

TOPIC, TOPIC_PREFIX = "topic", "topic.prefix"
START = "start.position"
CHANGES = "changes.mode"
COLUMNS, ROW_FILTER = "columns", "row.filter"
POLL_INTERVAL, BATCH_ROWS = "poll.interval.ms", "batch.max.rows"

EARLIEST, LATEST = "earliest", "latest"
FAIL, SKIP, TOMBSTONE, HEADER = "fail", "skip", "tombstone", "header"

_TABLES, _ROWS, _READING = "Tables", "Rows", "Reading"

_text = functools.partial(ConfigKey, type=Type.STRING, default="")
_list = functools.partial(ConfigKey, type=Type.LIST, default=[], importance=Importance.MEDIUM, group=_ROWS)
_number = functools.partial(ConfigKey, importance=Importance.MEDIUM, group=_READING)


def shared_keys(prefix: str, product: str) -> list[ConfigKey]:
    """Return the keys of a table source; ``prefix`` is ``iceberg.`` or ``delta.``."""
    return [*_tables(prefix, product), *_rows(prefix), *_reading()]


def _tables(prefix: str, product: str) -> list[ConfigKey]:
    return [
        ConfigKey(
            name=prefix + TABLES,
            type=Type.LIST,
            validator=NonEmptyList(),
            importance=Importance.HIGH,
            group=_TABLES,
            doc=f"The {product} tables to read. They are divided among tasks.max tasks; a table has one task.",
        ),
        _text(
            name=TOPIC_PREFIX,
            importance=Importance.HIGH,
            group=_TABLES,
            doc="The rows of a table go to the topic with this prefix and the table's name.",
        ),
        _text(
            name=TOPIC,
            importance=Importance.HIGH,
            group=_TABLES,
            doc=f"The topic for the rows of all tables, instead of {TOPIC_PREFIX}. {prefix}table.<table>.topic overrides it.",
        ),
        _text(
            name=START,
            default=EARLIEST,
            importance=Importance.HIGH,
            group=_TABLES,
            doc="Where to start in a table without a stored offset. earliest: with all rows of the newest snapshot. latest: with "
            "the rows that are added from now on. Otherwise after a snapshot id or version, or after a moment such as "
            "2026-01-31T12:00:00Z. Until the first record is produced, no offset is stored.",
        ),
    ]


def _rows(prefix: str) -> list[ConfigKey]:
    return [
        _text(
            name=CHANGES,
            default=FAIL,
            validator=EnumText(FAIL, SKIP, TOMBSTONE, HEADER),
            importance=Importance.HIGH,
            group=_ROWS,
            doc="What to do with commits that change or delete rows. fail: the task fails. skip: the whole commit is left out. "
            "tombstone: a new or changed row is a record with its key, a deleted row is a tombstone. header: all rows are "
            "records with the header _change_type, which is insert, update_preimage, update_postimage or delete. tombstone and "
            f"header need {prefix}{ID_COLUMNS}, and hold the rows before and after the commit in memory.",
        ),
        _list(
            name=prefix + ID_COLUMNS,
            doc="The columns that identify a row, which become the fields of the records' keys. By default the identifier "
            f"columns of the table, if it has any. {prefix}table.<table>.id-columns overrides it.",
        ),
        _list(name=COLUMNS, doc=f"The columns to read; all by default. {prefix}table.<table>.columns overrides it."),
        _text(
            name=ROW_FILTER,
            importance=Importance.MEDIUM,
            group=_ROWS,
            doc="A condition on the rows to read, such as: country = 'NO' and amount >= 100. Files that cannot have such rows "
            f"are skipped by their statistics. {prefix}table.<table>.row-filter overrides it.",
        ),
    ]


def _reading() -> list[ConfigKey]:
    return [
        _number(
            name=POLL_INTERVAL,
            type=Type.INT,
            default=5000,
            validator=Range(0),
            doc="Milliseconds after which a table that had no new snapshot is checked again.",
        ),
        _number(
            name=BATCH_ROWS,
            type=Type.INT,
            default=10_000,
            validator=Range(1),
            doc="Maximum number of rows that a poll returns.",
        ),
        _number(
            name=UNREACHABLE_MS,
            type=Type.LONG,
            default=3_600_000,
            validator=Range(-1),
            doc="Milliseconds to wait for an unreachable catalog or storage before the task fails; -1 is unlimited.",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Start:
    """The start: with all rows, at the end, after a snapshot, or after a moment."""

    earliest: bool = False
    snapshot: int | None = None
    moment: dt.datetime | None = None

    @classmethod
    def of(cls, text: str) -> Start:
        """Raises ConfigError."""
        if text.lower() in (EARLIEST, LATEST):
            return cls(earliest=text.lower() == EARLIEST)
        try:
            return cls(snapshot=int(text))
        except ValueError:
            pass
        try:
            moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            raise ConfigError(
                START, text, "must be earliest, latest, a snapshot id or version, or a moment such as 2026-01-31T12:00:00Z"
            ) from None
        return cls(moment=moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The typed values of a table source's shared keys; times in seconds, None for unlimited."""

    connector: str
    prefix: str
    tables: tuple[str, ...]
    start: Start
    changes: str
    poll_interval: float
    batch_rows: int
    unreachable: float | None
    config: Mapping[str, str]

    @classmethod
    def of(cls, prefix: str, definition: ConfigDef, config: Mapping[str, str]) -> SourceOptions:
        """Return the values of a config. Raises ConfigError for an invalid value and for keys that conflict."""
        values = definition.parse(config)
        for name, message in conflicts(values).items():
            raise ConfigError(name, values[name], message)
        tables, wait = values[prefix + TABLES], int(str(values[UNREACHABLE_MS]))
        return cls(
            connector=config.get("name", ""),
            prefix=prefix,
            tables=tuple(dict.fromkeys(tables)) if isinstance(tables, list) else (),
            start=Start.of(str(values[START])),
            changes=str(values[CHANGES]).lower(),
            poll_interval=int(str(values[POLL_INTERVAL])) / 1000,
            batch_rows=int(str(values[BATCH_ROWS])),
            unreachable=None if wait < 0 else wait / 1000,
            config=dict(config),
        )

    def selection(self, table: str) -> Selection:
        """Return the columns and rows to read of a table."""
        return Selection(_names(self._of(table, "columns", COLUMNS)), self._of(table, "row-filter", ROW_FILTER).strip())

    def id_columns(self, table: str) -> tuple[str, ...]:
        """Return the columns that the config names as those that identify a row of a table."""
        return _names(self._of(table, "id-columns", self.prefix + ID_COLUMNS))

    def topic(self, table: str) -> str:
        return self._of(table, "topic", TOPIC) or self.config.get(TOPIC_PREFIX, "") + table

    def properties(self, suffix: str) -> dict[str, str]:
        """Return the config's keys that start with the prefix and ``suffix``, without these."""
        return keys_below(self.config, self.prefix + suffix)

    def _of(self, table: str, name: str, default: str) -> str:
        return self.config.get(f"{self.prefix}table.{table}.{name}", self.config.get(default, ""))


def conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems: dict[str, str] = {}
    if values[TOPIC] and values[TOPIC_PREFIX]:
        problems[TOPIC_PREFIX] = f"does not go with {TOPIC}: set one of them"
    try:
        Start.of(str(values[START]))
    except ConfigError as error:
        problems[START] = error.message or str(error)
    return problems


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
