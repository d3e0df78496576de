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
            doc="What fails once, delay_ms after its start: the connector or its tasks.",
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
            doc="The call that fails: of the connector, of its tasks, or none.",
        ),
        ConfigKey(
            name=FAILURE_KIND,
            type=Type.STRING,
            default=ERROR,
            importance=Importance.MEDIUM,
            validator=OneOf((ERROR, RETRIABLE, HANG)),
            doc="How it fails: with a ConnectError, with a RetriableError, or by not returning.",
        ),
        ConfigKey(
            name=FAILURE_AFTER,
            type=Type.LONG,
            default=0,
            validator=Range(0),
            importance=Importance.LOW,
            doc="Records that a task moves since its start before it fails: a source exactly so many, a sink at most.",
        ),
        ConfigKey(
            name=FAILURE_TIMES,
            type=Type.INT,
            default=-1,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="How many calls fail before they succeed again; -1 is all of them.",
        ),
        ConfigKey(
            name=FAILURE_TASK,
            type=Type.INT,
            default=-1,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="The number of the task that fails; -1 is each of them.",
        ),
        ConfigKey(
            name=FAILURE_HANG_MS,
            type=Type.LONG,
            default=-1,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="Milliseconds after which a call that hangs returns; -1 is never.",
        ),
        ConfigKey(
            name=BAD_RECORDS_SHARE,
            type=Type.DOUBLE,
            default=0.0,
            validator=Range(0, 1),
            importance=Importance.LOW,
            doc="Share of bad records, spread evenly: a source gives values that no converter can write, a sink refuses records.",
        ),
    ]
)

# Optional, because configs of Kafka's MockSource have no topic and send no records.
_TOPIC = ConfigKey(
    name=verifiable.TOPIC,
    type=Type.STRING,
    default="",
    importance=Importance.HIGH,
    doc="The topic to publish numbered records to; without one the source has no records.",
)
_THROUGHPUT = ConfigKey(
    name=verifiable.THROUGHPUT,
    type=Type.DOUBLE,
    default=-1.0,
    validator=Range(-1),
    importance=Importance.MEDIUM,
    doc="Records per second that put takes; -1 is as many as possible.",
)

SOURCE = ConfigDef([_TOPIC, *(key for key in verifiable.SOURCE if key.name != verifiable.TOPIC)]) + _MOCK
SINK = ConfigDef([_THROUGHPUT]) + verifiable.SINK + _MOCK
