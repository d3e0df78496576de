"""The keys of the Singer sink, and what they mean. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import EnumText, NonEmptyString, OneOf
from sluiceway.connectors.keys import text, whole
from sluiceway.connectors.null_values import REPLACE_NULLS, replace_nulls
from sluiceway.connectors.singer.plugin import Plugin, plugin_conflicts, plugin_keys, plugin_of
from sluiceway.errors import ConfigError

TARGET = "singer.target"
STREAM, PK_MODE, PK_FIELDS = "singer.stream", "pk.mode", "pk.fields"
ON_NULL = "behavior.on.null.values"
FLUSH_SIZE, FLUSH_BYTES, FLUSH_INTERVAL, FLUSH_TIMEOUT = "flush.size", "flush.bytes", "flush.interval.ms", "flush.timeout.ms"
MAX_RETRIES, RETRY_BACKOFF = "max.retries", "retry.backoff.ms"
TOPIC_PLACEHOLDER = "${topic}"
KAFKA_FIELDS = ("__connect_topic", "__connect_partition", "__connect_offset")

_STREAMS, _FLUSHES = "Streams", "Flushes"


class PkMode(enum.Enum):
    """The source of key properties."""

    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


class OnNull(enum.Enum):
    """The ways to handle records without a value."""

    FAIL = "fail"
    IGNORE = "ignore"


DEFINITION = ConfigDef(
    [
        *plugin_keys(TARGET, "target", "target-postgres", "meltanolabs-target-postgres==0.8.1"),
        text(
            name=STREAM,
            default=TOPIC_PLACEHOLDER,
            validator=NonEmptyString(),
            group=_STREAMS,
            doc="The stream of a record, which names the target's table or file; "
            f"{TOPIC_PLACEHOLDER} stands for the record's topic.",
        ),
        text(
            name=PK_MODE,
            default=PkMode.NONE.value,
            validator=EnumText(*(mode.value for mode in PkMode)),
            importance=Importance.HIGH,
            group=_STREAMS,
            doc="The source of key_properties, by which many targets replace rows. none: no key. kafka: topic, partition, and "
            "offset of the record. record_key: the record's key, or fields of it. record_value: fields of the record's value.",
        ),
        ConfigKey(
            name=PK_FIELDS,
            type=Type.LIST,
            default=[],
            importance=Importance.HIGH,
            group=_STREAMS,
            doc="The key properties. kafka: three names for topic, partition, and offset, in this order; by default "
            "__connect_topic, __connect_partition, __connect_offset. record_key: fields of the key, all if empty; one name if "
            "the key is a single value. record_value: fields of the value, all if empty.",
        ),
        text(
            name=ON_NULL,
            default=OnNull.FAIL.value,
            validator=OneOf((OnNull.FAIL.value, OnNull.IGNORE.value), ignore_case=True),
            group=_STREAMS,
            doc="What to do with records without a value (tombstones): fail handles them as the errors.* keys say, ignore skips "
            "them. Targets cannot delete single rows.",
        ),
        replace_nulls(_STREAMS),
        whole(
            FLUSH_SIZE,
            20_000,
            1,
            _FLUSHES,
            "The number of records after which the target runs. It runs once for each flush.",
            importance=Importance.HIGH,
        ),
        whole(
            FLUSH_BYTES,
            64 << 20,
            1,
            _FLUSHES,
            "The number of bytes of waiting records, as JSON, after which the target runs. They are in the task's memory.",
        ),
        whole(
            FLUSH_INTERVAL,
            30_000,
            0,
            _FLUSHES,
            f"Milliseconds after the first waiting record after which the target runs, also for fewer than {FLUSH_SIZE}.",
            importance=Importance.HIGH,
        ),
        whole(
            FLUSH_TIMEOUT,
            240_000,
            1,
            _FLUSHES,
            "Milliseconds after which a run of the target is ended, as one that failed. Must be below max.poll.interval.ms of "
            "the consumer, which is not polled meanwhile.",
        ),
        whole(
            MAX_RETRIES,
            10,
            0,
            _FLUSHES,
            "How often in a row a failed run of the target is repeated before the task fails. A target that appends may "
            "have some of the records after each failed run.",
            importance=Importance.MEDIUM,
        ),
        whole(
            RETRY_BACKOFF, 3000, 0, _FLUSHES, "Milliseconds between two runs after a failed one.", importance=Importance.MEDIUM
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a config; times in seconds."""

    target: Plugin
    stream: str
    pk_mode: PkMode
    pk_fields: tuple[str, ...]
    on_null: OnNull
    replace_nulls: bool
    flush_size: int
    flush_bytes: int
    flush_interval: float
    flush_timeout: float
    max_retries: int
    backoff: float


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config whose references are resolved. Raises ConfigError."""
    values = DEFINITION.parse(config)
    for name, problem in conflicts(values).items():
        raise ConfigError(name, None, problem)
    return SinkOptions(
        target=plugin_of(TARGET, values, config),
        stream=str(values[STREAM]),
        pk_mode=_pk_mode(values),
        pk_fields=_fields(values),
        on_null=OnNull(str(values[ON_NULL]).lower()),
        replace_nulls=bool(values[REPLACE_NULLS]),
        flush_size=_whole(values, FLUSH_SIZE),
        flush_bytes=_whole(values, FLUSH_BYTES),
        flush_interval=_whole(values, FLUSH_INTERVAL) / 1000,
        flush_timeout=_whole(values, FLUSH_TIMEOUT) / 1000,
        max_retries=_whole(values, MAX_RETRIES),
        backoff=_whole(values, RETRY_BACKOFF) / 1000,
    )


def conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    found = plugin_conflicts(values)
    mode, fields = _pk_mode(values), _fields(values)
    if mode is PkMode.NONE and fields:
        found[PK_FIELDS] = f"has no effect with {PK_MODE}=none"
    if mode is PkMode.KAFKA and len(fields) not in (0, len(KAFKA_FIELDS)):
        found[PK_FIELDS] = "must name three fields, for topic, partition, and offset, or none"
    if len(set(fields)) < len(fields):
        found[PK_FIELDS] = "names a field twice"
    return found


def _pk_mode(values: Mapping[str, ConfigValue]) -> PkMode:
    return PkMode(str(values[PK_MODE]).lower())


def _fields(values: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    given = values[PK_FIELDS]
    return tuple(map(str, given)) if isinstance(given, list) else ()


def _whole(values: Mapping[str, ConfigValue], name: str) -> int:
    return int(str(values[name]))
