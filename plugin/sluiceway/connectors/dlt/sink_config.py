"""The config of DltSink: the keys of the table sinks below ``dlt.``, and those of dlt. No I/O, and no import of dlt."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance
from sluiceway.config.intervals import IntervalRun
from sluiceway.config.validators import Check, NonEmptyString, OneOf
from sluiceway.connectors.dlt.values import SECRET_PREFIX, arguments, json_arguments, nested_values, secrets
from sluiceway.connectors.keys import flag, text
from sluiceway.connectors.tables import config as shared
from sluiceway.errors import ConfigError

PREFIX = "dlt."
DESTINATION, ARGS, DATASET, FOLDER = "dlt.destination", "dlt.destination.args", "dlt.dataset", "dlt.folder"
POSITIONS, STRATEGY = "dlt.positions.enabled", "dlt.merge.strategy"
TABLE_FORMAT, FILE_FORMAT = "dlt.table.format", "dlt.file.format"
UPSERT, ID_COLUMNS = PREFIX + shared.UPSERT, PREFIX + shared.ID_COLUMNS

TOPIC_COLUMN, PARTITION_COLUMN, OFFSET_COLUMN = "_kafka_topic", "_kafka_partition", "_kafka_offset"
POSITION_COLUMNS = (TOPIC_COLUMN, PARTITION_COLUMN, OFFSET_COLUMN)
DELETED_COLUMN = "_kafka_deleted"

DEFAULT, NATIVE = "default", "native"
_DLT = "dlt"
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")

_INTERVAL, _FLUSH = PREFIX + shared.INTERVAL, shared.FLUSH_SIZE
_DEFAULTS: Mapping[str, ConfigValue] = {
    PREFIX + shared.AUTO_CREATE: True,
    PREFIX + shared.EVOLVE: True,
    _INTERVAL: 10_000,
    _FLUSH: 50_000,
}
_DOCS = {
    PREFIX + shared.TABLES: "The tables to write to. By default each topic has its own, whose name is the topic's as dlt writes "
    "names. With several tables and dlt.tables.route-field, a record goes to the tables whose dlt.table.<table>.route-regex "
    "matches the field; without it, to all of them.",
    PREFIX + shared.PARTITION_BY: "The columns by which a created table is partitioned, where the destination can, separated by "
    "commas. dlt.table.<table>.partition-by overrides it.",
    UPSERT: "Whether a record replaces the row with the same id columns, and a tombstone deletes it: dlt's write disposition "
    "merge. Without it, rows are appended.",
    PREFIX + shared.EVOLVE: "Whether missing columns are added. Without it, fields without a column are not written. The types "
    "of columns never change: a value that does not fit its column is a bad record.",
    _INTERVAL: "The maximum number of milliseconds between two loads. Each offset commit of the worker "
    "(offset.flush.interval.ms) loads, too.",
    _FLUSH: "The number of records after which a task loads, even if the interval is not over. Each load has a fixed cost of "
    "some tenths of a second, and of seconds in a warehouse.",
}
_WITHOUT = {PREFIX + shared.FORCE_OPTIONAL, PREFIX + shared.CASE_INSENSITIVE, shared.ORPHAN_AGE_MS}


def _check_destination(name: str, value: ConfigValue) -> None:
    if not _NAME.fullmatch(str(value)):
        raise ConfigError(name, value, "must be the name of a destination of dlt, such as duckdb, or module.function")


def _shared_keys() -> list[ConfigKey]:
    """Return the keys of the table sinks that have an effect here, with the defaults of dlt."""
    return [
        dataclasses.replace(key, default=_DEFAULTS.get(key.name, key.default), doc=_DOCS.get(key.name, key.doc))
        for key in shared.shared_keys(PREFIX, _DLT)
        if key.name not in _WITHOUT
    ]


SINK = ConfigDef(
    [
        text(
            name=DESTINATION,
            validator=Check(_check_destination, "a destination of dlt"),
            importance=Importance.HIGH,
            group=_DLT,
            doc="The destination: a name of dlt's, such as duckdb, postgres, filesystem, bigquery, snowflake, redshift, "
            "databricks, mssql, clickhouse or motherduck, or module.function of another one. What it needs must be installed "
            "where tasks run, such as dlt[bigquery].",
        ),
        text(
            name=ARGS,
            default="{}",
            validator=json_arguments("destination", '{"bucket_url": "s3://lake/raw"}'),
            importance=Importance.HIGH,
            group=_DLT,
            doc="The destination's keyword arguments, as a JSON object, such as credentials. Relative paths in it are below "
            f"{FOLDER}. A text in it that is the name of a key {SECRET_PREFIX}NAME or dlt.config.NAME of this config stands for "
            "the key's value.",
        ),
        text(
            name=DATASET,
            default=None,
            importance=Importance.HIGH,
            group=_DLT,
            doc="The dataset: a schema of a database, or a folder. By default it has the connector's name, as dlt writes names.",
        ),
        text(
            name=FOLDER,
            default=None,
            validator=NonEmptyString(),
            group=_DLT,
            doc="The folder in which a load is kept until it is complete, on the machine of the task. A load that a crash ended "
            "is completed from there; if it is lost, rows that were loaded in part are appended again, or replaced with "
            f"{UPSERT}. By default dlt in $SLUICEWAY_HOME, or else ~/.local/state/sluiceway/dlt.",
        ),
        flag(
            name=POSITIONS,
            default=False,
            importance=Importance.MEDIUM,
            group=_DLT,
            doc=f"Whether each row has its record's position in the columns {', '.join(POSITION_COLUMNS)}. With {UPSERT} and no "
            "id columns, they are the id columns: each record is a row, and once, whatever is killed or lost.",
        ),
        text(
            name=STRATEGY,
            default=DEFAULT,
            validator=OneOf((DEFAULT, "delete-insert", "upsert")),
            group=_DLT,
            doc=f"dlt's strategy of a merge, with {UPSERT}. default: the destination's first one.",
        ),
        text(
            name=TABLE_FORMAT,
            default=NATIVE,
            validator=OneOf((NATIVE, "delta", "iceberg")),
            group=_DLT,
            doc="The format of created tables, for destinations that have several, such as filesystem.",
        ),
        text(
            name=FILE_FORMAT,
            default=DEFAULT,
            validator=OneOf((DEFAULT, "parquet", "csv", "jsonl", "insert_values")),
            group=_DLT,
            doc="The format of the files in which rows are handed to the destination. default: the destination's own choice.",
        ),
        *_shared_keys(),
    ]
)


@dataclass(frozen=True, slots=True)
class DltSinkConfig:
    """The typed values of dlt's own keys. ``values`` are those for dlt's configuration. No repr has a secret.

    ``owner`` is the connector of an interval's run, which has a name of its own; of other connectors it is ``connector``.
    """

    connector: str
    owner: str
    destination: str
    args: Mapping[str, Any] = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    dataset: str | None
    folder: str
    upsert: bool
    positions: bool
    strategy: str | None
    table_format: str | None
    file_format: str | None

    @classmethod
    def of(cls, config: Mapping[str, str]) -> DltSinkConfig:
        """Parse a config. Raises ConfigError, whose ``name`` is the key."""
        values = SINK.parse(config)

        def chosen(name: str, none: str) -> str | None:
            return None if values[name] == none else str(values[name])

        return cls(
            connector=config.get("name", ""),
            owner=run.connector if (run := IntervalRun.of(config)) is not None else config.get("name", ""),
            destination=str(values[DESTINATION]),
            args=arguments(config, ARGS, str(values[ARGS])),
            values=nested_values(config),
            secrets=secrets(config),
            dataset=str(values[DATASET]) if values[DATASET] else None,
            folder=str(values[FOLDER] or default_folder()),
            upsert=bool(values[UPSERT]),
            positions=bool(values[POSITIONS]),
            strategy=chosen(STRATEGY, DEFAULT),
            table_format=chosen(TABLE_FORMAT, NATIVE),
            file_format=chosen(FILE_FORMAT, DEFAULT),
        )


def default_folder() -> Path:
    """Return the folder of loads that are not complete, of all connectors."""
    home = os.environ.get("SLUICEWAY_HOME")
    return Path(home).absolute() / "dlt" if home else Path.home() / ".local" / "state" / "sluiceway" / "dlt"


def with_id_columns(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return a config whose id columns are the positions if it has these, merges, and names no others."""
    is_on = {name: config.get(name, "").strip().lower() == "true" for name in (UPSERT, POSITIONS)}
    given = any(name == ID_COLUMNS or (name.startswith("dlt.table.") and name.endswith(".id-columns")) for name in config)
    return config if given or not all(is_on.values()) else {**config, ID_COLUMNS: ",".join(POSITION_COLUMNS)}


def problems(config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of dlt's own keys, by key."""
    try:
        found = DltSinkConfig.of(config)
    except ConfigError as error:
        return {error.name or DESTINATION: error.message or str(error)}
    if found.strategy is not None and not found.upsert:
        return {STRATEGY: f"has an effect only with {UPSERT}=true"}
    return {}
