"""The config of DltSource. No I/O, and no import of dlt: it is read on drivers and API servers, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, OneOf, Range
from sluiceway.connectors.dlt.values import arguments, json_arguments, nested_values, secrets
from sluiceway.connectors.keys import text, unreachable_key, unreachable_seconds
from sluiceway.errors import ConfigError

SOURCE, ARGS, RESOURCES = "dlt.source", "dlt.args", "dlt.resources"
COMMIT, NESTED, TIMES = "dlt.commit", "dlt.nested", "time.precision.mode"
INTERVAL, PREFIX = "dlt.run.interval.ms", "topic.prefix"
AUTO, PAGE, RUN = "auto", "page", "run"
JSON, STRUCT, TOPICS = "json", "struct", "topics"
MICROSECONDS, CONNECT = "microseconds", "connect"

_DLT, _RECORDS = "dlt", "Records"
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_TOPIC_PREFIX = re.compile(r"[a-zA-Z0-9._-]*")
_DAY_MS = 86_400_000


def _check_source(name: str, value: ConfigValue) -> None:
    if not _FUNCTION.fullmatch(str(value)):
        raise ConfigError(name, value, "must be module.function, such as dlt.sources.rest_api.rest_api_source")


def _check_prefix(name: str, value: ConfigValue) -> None:
    if not _TOPIC_PREFIX.fullmatch(str(value)):
        raise ConfigError(name, value, "may have letters, digits, and . _ - only")


CONFIG = ConfigDef(
    [
        text(
            name=SOURCE,
            validator=Check(_check_source, "module.function"),
            importance=Importance.HIGH,
            group=_DLT,
            doc="The function that returns the source: a dlt source, a resource, or a list of them, such as "
            "dlt.sources.rest_api.rest_api_source. The module must be installed where tasks run, or be in a folder of the "
            "worker's plugin.path.",
        ),
        text(
            name=ARGS,
            default="{}",
            validator=json_arguments("function", '{"rows": 100}'),
            importance=Importance.HIGH,
            group=_DLT,
            doc="The function's keyword arguments, as a JSON object. A text in it that is the name of a key dlt.secret.NAME or "
            'dlt.config.NAME of this config, such as "dlt.secret.token", stands for the key\'s value.',
        ),
        ConfigKey(
            name=RESOURCES,
            type=Type.LIST,
            default="",
            importance=Importance.MEDIUM,
            group=_DLT,
            doc="The resources to read. By default those that the source selects.",
        ),
        text(
            name=COMMIT,
            default=AUTO,
            validator=OneOf((AUTO, PAGE, RUN)),
            group=_DLT,
            doc="When the state of a resource becomes its offset. auto: after each page if the resource says that its rows come "
            'in ascending order of its cursor (row_order="asc") and no transformer reads it, else at the end of a run. page: as '
            "auto, and the rows of every cursor are taken as ascending; if they are not, the connector notices it, but a crash "
            "before that loses rows. run: at the end of a run.",
        ),
        ConfigKey(
            name=INTERVAL,
            type=Type.LONG,
            default=60_000,
            validator=Range(0, 365 * _DAY_MS),
            importance=Importance.MEDIUM,
            group=_DLT,
            doc="Milliseconds from the end of a run to the begin of the next one. Each run starts a Python process, which takes "
            "about two seconds of CPU time. A run of a DAG with a schedule reads the source once.",
        ),
        unreachable_key(_DLT, "a source"),
        text(
            name=PREFIX,
            default="",
            validator=Check(_check_prefix, "letters, digits, and . _ -"),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc="The begin of the topics' names. The table's name follows, which is the resource's unless it has another. "
            "Characters that topics cannot have become underscores.",
        ),
        text(
            name=NESTED,
            default=JSON,
            validator=OneOf((JSON, STRUCT, TOPICS)),
            group=_RECORDS,
            doc="The form of nested values. json: JSON texts. struct: structs and arrays. topics: as dlt's tables: the fields of "
            "an object become fields with its name and two underscores before theirs, and the elements of a list become records "
            "of the topic TABLE__FIELD.",
        ),
        text(
            name=TIMES,
            default=MICROSECONDS,
            validator=OneOf((MICROSECONDS, CONNECT)),
            group=_RECORDS,
            doc="The form of times and timestamps. microseconds: INT64 with Debezium's names io.debezium.time.MicroTime and "
            "MicroTimestamp. connect: Connect's Time and Timestamp, without what is below a millisecond.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class DltConfig:
    """The typed values of a config. ``values`` are those for dlt's own configuration. Times in seconds. No repr has a secret."""

    source: str
    args: Mapping[str, Any] = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    resources: tuple[str, ...]
    commit: str
    nested: str
    micros: bool
    prefix: str
    interval: float
    unreachable: float | None

    @classmethod
    def of(cls, config: Mapping[str, str]) -> DltConfig:
        """Parse a config. Raises ConfigError, whose ``name`` is the key."""
        values = CONFIG.parse(config)
        resources: Any = values[RESOURCES]
        return cls(
            source=str(values[SOURCE]),
            args=arguments(config, ARGS, str(values[ARGS])),
            values=nested_values(config),
            secrets=secrets(config),
            resources=tuple(resources or ()),
            commit=str(values[COMMIT]),
            nested=str(values[NESTED]),
            micros=values[TIMES] == MICROSECONDS,
            prefix=str(values[PREFIX]),
            interval=int(str(values[INTERVAL])) / 1000,
            unreachable=unreachable_seconds(values),
        )
