"""Declares the keys of VerifiableSource and VerifiableSink: Kafka's and ours."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import NonEmptyString, OneOf, Range
from sluiceway.errors import ConfigError

NAME = "name"
ID = "id"
TOPIC = "topic"
THROUGHPUT = "throughput"
COMPLETE_RECORD_DATA = "complete.record.data"
RECORD_SCHEMA = "record.schema.enable"
RECORD_SIZE = "record.size"
RECORD_KEY = "record.key"
BATCH_SIZE = "batch.size"
PARTITIONS = "partitions"
RECORDS_MAX = "records.max"
TRANSACTION_RECORDS = "transaction.records"
TRANSACTION_ABORT_EVERY = "transaction.abort.every"
FILE = "file"
OFFSETS_FROM_FILE = "offsets.from.file"

KEY_TASK, KEY_SEQNO, KEY_NONE = "task", "seqno", "none"

_ID = ConfigKey(
    name=ID,
    type=Type.INT,
    default=0,
    validator=Range(0),
    importance=Importance.LOW,
    doc="Number of the task; the connector sets it in task configs.",
)

SOURCE = ConfigDef(
    [
        ConfigKey(
            name=TOPIC,
            type=Type.STRING,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            doc="Topic for the numbered records.",
        ),
        ConfigKey(
            name=THROUGHPUT,
            type=Type.LONG,
            default=-1,
            validator=Range(-1),
            importance=Importance.HIGH,
            doc="Records per second of each task; -1: no limit, 0: no records.",
        ),
        ConfigKey(
            name=COMPLETE_RECORD_DATA,
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.MEDIUM,
            doc="Whether the value contains the connector's name, task, topic, time and sequence number; "
            "false: only the sequence number.",
        ),
        ConfigKey(
            name=RECORD_SCHEMA,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether keys and values have a schema; false: schemaless numbers and maps.",
        ),
        ConfigKey(
            name=RECORD_SIZE,
            type=Type.INT,
            default=0,
            validator=Range(0),
            importance=Importance.LOW,
            doc="Number of characters in an additional field payload; requires complete.record.data.",
        ),
        ConfigKey(
            name=RECORD_KEY,
            type=Type.STRING,
            default=KEY_TASK,
            importance=Importance.LOW,
            validator=OneOf((KEY_TASK, KEY_SEQNO, KEY_NONE)),
            doc="Key of records: the task's number, the sequence number, or none. seqno and none require "
            "complete.record.data, so that the record still contains the task.",
        ),
        ConfigKey(
            name=BATCH_SIZE,
            type=Type.INT,
            default=500,
            validator=Range(1),
            importance=Importance.LOW,
            doc="Maximum number of records that a poll returns.",
        ),
        ConfigKey(
            name=PARTITIONS,
            type=Type.INT,
            default=0,
            validator=Range(0),
            importance=Importance.LOW,
            doc="Number of partitions to write to in turn; 0: the producer chooses.",
        ),
        ConfigKey(
            name=RECORDS_MAX,
            type=Type.LONG,
            default=-1,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="Sequence number at which each task stops; -1: never.",
        ),
        ConfigKey(
            name=TRANSACTION_RECORDS,
            type=Type.INT,
            default=100,
            validator=Range(1),
            importance=Importance.LOW,
            doc="With transaction.boundary=connector: number of records in a transaction.",
        ),
        ConfigKey(
            name=TRANSACTION_ABORT_EVERY,
            type=Type.INT,
            default=0,
            validator=Range(0),
            importance=Importance.LOW,
            doc="With transaction.boundary=connector: number of transactions after which the last records are sent again in "
            "a transaction that is aborted; 0: never.",
        ),
        _ID,
    ]
)

SINK = ConfigDef(
    [
        ConfigKey(
            name=FILE,
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="File to which each flush appends a JSON line per record; if not set, standard output.",
        ),
        ConfigKey(
            name=OFFSETS_FROM_FILE,
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.LOW,
            doc="Whether tasks resume after the last record in the file instead of the committed offsets, for exactly-once.",
        ),
        _ID,
    ]
)


def source_values(config: Mapping[str, str], definition: ConfigDef = SOURCE) -> dict[str, ConfigValue]:
    """Return the typed config of a source. Raises ConfigError, also for keys that exclude each other."""
    values = definition.parse(config)
    if not values[COMPLETE_RECORD_DATA]:
        if values[RECORD_SIZE]:
            raise ConfigError(RECORD_SIZE, values[RECORD_SIZE], f"needs {COMPLETE_RECORD_DATA}=true")
        if values[RECORD_KEY] != KEY_TASK:
            raise ConfigError(RECORD_KEY, values[RECORD_KEY], f"needs {COMPLETE_RECORD_DATA}=true")
    return values


def sink_values(config: Mapping[str, str], definition: ConfigDef = SINK) -> dict[str, ConfigValue]:
    """Return the typed config of a sink. Raises ConfigError, also for keys that exclude each other."""
    values = definition.parse(config)
    if values[OFFSETS_FROM_FILE] and not values[FILE]:
        raise ConfigError(OFFSETS_FROM_FILE, values[OFFSETS_FROM_FILE], f"needs {FILE}")
    return values


def whole(values: Mapping[str, ConfigValue], key: str) -> int:
    """Return the value of a key whose type is an integer type."""
    value = values[key]
    assert isinstance(value, int)  # noqa: S101 (the definition says so)
    return value
