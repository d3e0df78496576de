"""The keys of the Singer source, and what they mean. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, ListRule, OneOf
from sluiceway.connectors.keys import flag, text, whole
from sluiceway.connectors.singer.catalog import Selection
from sluiceway.connectors.singer.fields import CONNECT, DOUBLE, MICROSECONDS, TEXT, Forms
from sluiceway.connectors.singer.plugin import Plugin, json_object, plugin_conflicts, plugin_keys, plugin_of
from sluiceway.errors import ConfigError

TAP = "singer.tap"
CATALOG, CATALOG_OPTION, SELECT, METADATA = "singer.catalog", "singer.catalog.option", "singer.select", "singer.metadata"
TIMESTAMPS, NUMBERS, RECORD_METADATA = "singer.timestamps", "singer.numbers", "singer.add.record.metadata"
TOPIC_PREFIX, POLL_INTERVAL = "topic.prefix", "poll.interval.ms"
WITH_CATALOG, WITH_PROPERTIES, WITHOUT = "catalog", "properties", "none"

_STREAMS, _RECORDS = "Streams", "Records"
_PREFIX = re.compile(r"[a-zA-Z0-9._-]*")


def _json_object(name: str, value: ConfigValue) -> None:
    given = str(value or "")
    if "${" in given or (name == CATALOG and not given.lstrip().startswith("{")):
        return  # a reference is resolved on the driver; a path is a file of the executors
    found = json_object(name, given)
    if name == METADATA and not all(isinstance(each, dict) for each in found.values()):
        raise ConfigError(name, None, 'must have an object for each stream: {"orders": {"replication-method": "FULL_TABLE"}}')


def _topic_prefix(name: str, value: ConfigValue) -> None:
    if not _PREFIX.fullmatch(str(value)):
        raise ConfigError(name, value, "has characters that topics cannot have")


_OBJECT = Check(_json_object, "a JSON object")

DEFINITION = ConfigDef(
    [
        *plugin_keys(TAP, "tap", "tap-postgres", "meltanolabs-tap-postgres==0.10.0"),
        ConfigKey(
            name=SELECT,
            type=Type.LIST,
            default="",
            validator=ListRule(),
            importance=Importance.HIGH,
            group=_STREAMS,
            doc="What to read, by Meltano's rules: orders.*, orders.id, !orders.secret; * stands for any characters. By default "
            "all streams with all fields.",
        ),
        text(
            name=METADATA,
            default="{}",
            validator=_OBJECT,
            group=_STREAMS,
            doc="Metadata of streams in the catalog, as a JSON object by stream or pattern: "
            '{"orders": {"replication-method": "INCREMENTAL", "replication-key": "updated_at"}}',
        ),
        text(
            name=CATALOG,
            default=None,
            validator=_OBJECT,
            group=_STREAMS,
            doc="The catalog: a JSON object, or the path of a file on the executors. By default the tap is asked for it before "
            "each run, with --discover.",
        ),
        text(
            name=CATALOG_OPTION,
            default=WITH_CATALOG,
            validator=OneOf((WITH_CATALOG, WITH_PROPERTIES, WITHOUT)),
            importance=Importance.LOW,
            group=_STREAMS,
            doc="How the tap takes the catalog: catalog (--catalog), properties (--properties, of older taps), or none, for taps "
            "without one, which are not asked for it either.",
        ),
        whole(
            POLL_INTERVAL,
            60_000,
            0,
            _STREAMS,
            "Milliseconds between the end of a run of the tap and the next one. A run of a scheduled DAG runs it once.",
            importance=Importance.MEDIUM,
        ),
        text(
            name=TOPIC_PREFIX,
            default="",
            validator=Check(_topic_prefix, "the beginning of a topic's name"),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc="The beginning of topic names; the stream's name follows. Characters that topics cannot have become underscores.",
        ),
        text(
            name=TIMESTAMPS,
            default=CONNECT,
            validator=OneOf((CONNECT, MICROSECONDS, TEXT)),
            group=_RECORDS,
            doc="The form of fields with the format date-time: connect (Connect's Timestamp, in milliseconds), microseconds "
            "(io.debezium.time.MicroTimestamp), or string, as the tap has written them. Dates become Connect's Date, or strings.",
        ),
        text(
            name=NUMBERS,
            default=DOUBLE,
            validator=OneOf((DOUBLE, TEXT)),
            group=_RECORDS,
            doc="The form of numbers whose schema has no multipleOf: double, or string, which keeps every digit. With "
            "multipleOf, such as 0.01, they are decimals of that scale.",
        ),
        flag(
            name=RECORD_METADATA,
            default=False,
            group=_RECORDS,
            doc="Whether to add the fields _sdc_extracted_at, when the tap has read the record, and _sdc_table_version, by which "
            "the records of one full reading of a table are told from those of others.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a config. ``interval`` is in seconds."""

    tap: Plugin
    selection: Selection
    catalog: str | None
    catalog_option: str
    forms: Forms
    record_metadata: bool
    topic_prefix: str
    interval: float

    @property
    def name(self) -> str:
        """The name of the tap's program, which is in its offset's partition and in messages."""
        return self.tap.name


def options_of(config: Mapping[str, str]) -> Options:
    """Return the options of a config whose references are resolved. Raises ConfigError."""
    values = DEFINITION.parse(config)
    for name, problem in conflicts(values).items():
        raise ConfigError(name, None, problem)
    select = values[SELECT]
    assert isinstance(select, list)  # noqa: S101 (parsed as such)
    return Options(
        tap=plugin_of(TAP, values, config),
        selection=Selection(tuple(map(str, select)), json_object(METADATA, str(values[METADATA]))),
        catalog=None if values[CATALOG] is None else str(values[CATALOG]),
        catalog_option=str(values[CATALOG_OPTION]),
        forms=Forms(str(values[TIMESTAMPS]), str(values[NUMBERS])),
        record_metadata=bool(values[RECORD_METADATA]),
        topic_prefix=str(values[TOPIC_PREFIX]),
        interval=int(str(values[POLL_INTERVAL])) / 1000,
    )


def conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change. No I/O."""
    found = plugin_conflicts(values)
    if values[CATALOG_OPTION] == WITHOUT:
        for key, unset in ((CATALOG, None), (SELECT, []), (METADATA, "{}")):
            if values[key] != unset:
                found[key] = f"has no effect with {CATALOG_OPTION}={WITHOUT}"
    return found
