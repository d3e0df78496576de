"""Declares the keys of MockSource and MockSink: Kafka's, those of the verifiable connectors, and ours."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf, Range
from sluiceway.connectors.verifiable import config as verifiable

MOCK_MODE = "mock_mode"
DELAY_MS = "delay_ms"
FAILURE_IN = "failure.in"
FAILURE_KIND = "failure.kind"
FAILURE_AFTER = "failure.after.records"
FAILURE_TIMES = "failure.times"
FAILURE_TASK = "failure.task"
FAILURE_HANG_MS = "failure.hang.ms"
BAD_RECORDS_SHARE = "bad.records.share"

CONNECTOR_FAILURE, TASK_FAILURE = "connector-failure", "task-failure"
CONNECTOR_START, CONNECTOR_STOP = "connector-start", "connector-stop"
START, STOP, POLL, PUT, COMMIT = "start", "stop", "poll", "put", "commit"
ERROR, RETRIABLE, HANG = "error", "retriable", "hang"

_MOCK = ConfigDef(
    [
        ConfigKey(
            name=MOCK_MODE,
            type=Type.STRING,
            default="",
            importance=Importance.MEDIUM,
            validator=OneOf(("", CONNECTOR_FAILURE, TASK_FAILURE)),
            doc="Whether the connector or its tasks fail once, delay_ms after the start.",
        ),
        ConfigKey(
            name=DELAY_MS,
            type=Type.LONG,
            default=15000,
            validator=Range(0),
            importance=Importance.LOW,
            doc="Milliseconds before the failure of mock_mode.",
        ),
        ConfigKey(
            name=FAILURE_IN,
            type=Type.STRING,
            default="",
            importance=Importance.MEDIUM,
            validator=OneOf(("", CONNECTOR_START, CONNECTOR_STOP, START, STOP, POLL, PUT, COMMIT)),
            doc="Call of the connector or its tasks that fails; empty: none.",
        ),
        ConfigKey(
            name=FAILURE_KIND,
            type=Type.STRING,
            default=ERROR,
            importance=Importance.MEDIUM,
            validator=OneOf((ERROR, RETRIABLE, HANG)),
            doc="Kind of failure: ConnectError, RetriableError, or a call that does not return.",
        ),
        ConfigKey(
            name=FAILURE_AFTER,
            type=Type.LONG,
            default=0,
            validator=Range(0),
            importance=Importance.LOW,
            doc="Number of records before a task fails: exact for a source, a maximum for a sink.",
        ),
        ConfigKey(
            name=FAILURE_TIMES,
            type=Type.INT,
            default=-1,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="Number of calls that fail before calls succeed again; -1: all calls.",
        ),
        ConfigKey(
            name=FAILURE_TASK,
            type=Type.INT,
            default=-1,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="Number of the task that fails; -1: all tasks.",
        ),
        ConfigKey(
            name=FAILURE_HANG_MS,
            type=Type.LONG,
            default=-1,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="Milliseconds after which a hanging call returns; -1: never.",
        ),
        ConfigKey(
            name=BAD_RECORDS_SHARE,
            type=Type.DOUBLE,
            default=0.0,
            validator=Range(0, 1),
            importance=Importance.LOW,
            doc="Share of bad records, spread evenly: a source sends values that cannot be converted, a sink rejects records.",
        ),
    ]
)

# Optional, because configs of Kafka's MockSource have no topic and send no records.
_TOPIC = ConfigKey(
    name=verifiable.TOPIC,
    type=Type.STRING,
    default="",
    importance=Importance.HIGH,
    doc="Topic for the numbered records; if not set, the source sends no records.",
)
_THROUGHPUT = ConfigKey(
    name=verifiable.THROUGHPUT,
    type=Type.DOUBLE,
    default=-1.0,
    validator=Range(-1),
    importance=Importance.MEDIUM,
    doc="Maximum records per second of put; -1: no limit.",
)

SOURCE = ConfigDef([_TOPIC, *(key for key in verifiable.SOURCE if key.name != verifiable.TOPIC)]) + _MOCK
SINK = ConfigDef([_THROUGHPUT]) + verifiable.SINK + _MOCK
