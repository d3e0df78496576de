"""Collects the keys that every connector has: Kafka Connect's and Sluiceway's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluiceway.config.common_keys import (
    CONNECTOR,
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    HEADER_CONVERTER,
    KEY_CONVERTER,
    NAME,
    PREDICATES,
    TASKS_MAX,
    TASKS_MAX_ENFORCE,
    TRANSFORMS,
    VALUE_CONVERTER,
)
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.intervals import KEYS as INTERVALS
from sluiceway.config.live_assets import KEYS as LIVE_ASSETS
from sluiceway.config.parsing import parse_list
from sluiceway.config.restarts import RESTARTS
from sluiceway.config.schedules import (
    CATCHUP,
    CONFIG_TASK,
    DAG,
    LONG_RUNNING,
    MICRO_BATCH,
    MODE,
    START_DATE,
    are_assets,
    are_functions,
    is_moment,
)
from sluiceway.config.sink_keys import DLQ_TOPIC, SINK, TOPICS, TOPICS_REGEX
from sluiceway.config.source_keys import SOURCE
from sluiceway.config.unknown_keys import UNKNOWN_KEYS
from sluiceway.config.validators import Check, OneOf, OrNull, Range
from sluiceway.config.variables import referring_keys

__all__ = [
    "APPLICATION",
    "CONFIG_TASK",
    "CONNECTOR",
    "CONNECTOR_CLASS",
    "CONNECTOR_VERSION",
    "DAG",
    "DLQ_TOPIC",
    "HEADER_CONVERTER",
    "JAVA_OPTS",
    "KEY_CONVERTER",
    "LONG_RUNNING",
    "MICRO_BATCH",
    "MODE",
    "MOVED",
    "MOVING",
    "NAME",
    "OWN",
    "PREDICATES",
    "SINK",
    "SOURCE",
    "TASKS_MAX",
    "TASKS_MAX_ENFORCE",
    "TASK_CLASS",
    "TASK_ISOLATION",
    "TOPICS",
    "TOPICS_REGEX",
    "TRACE_HEADERS",
    "TRANSFORMS",
    "VALUE_CONVERTER",
    "overrides",
    "sink_topics",
    "without_marks",
]

TASK_CLASS = "task.class"
APPLICATION = "sluiceway.application"
"""Key of the application name. Connectors with the same value share a driver."""
CALLBACKS = ("airflow.on.failure.callback", "airflow.on.success.callback", "airflow.on.retry.callback")
"""Keys of functions that Airflow calls with the task's context."""
OUTLETS = "airflow.outlets"
"""Key of the URIs of further assets that the connector writes to."""
TASK_ISOLATION = "sluiceway.task.isolation"
"""Key of the choice whether tasks share a process."""
JAVA_OPTS = "sluiceway.java.opts"
"""Key of the JVM options for a connector's Java plugins."""
TRACE_HEADERS = "sluiceway.trace.headers"
"""Key of the choice whether records carry the trace of their batch."""
MOVED = "sluiceway.moved.to"
"""Key of the REST API of the cluster that a connector has moved to."""
MOVING = "sluiceway.migrate.state"
"""Key of the state that a move gives a connector in the end, while it moves."""

OWN = ConfigDef(
    [
        ConfigKey(
            name="airflow.mode",
            type=Type.STRING,
            default="long-running",
            importance=Importance.MEDIUM,
            validator=OneOf(("long-running", "micro-batch")),
            doc="long-running: run until stopped. micro-batch: process the available records, then end.",
        ),
        ConfigKey(
            name="airflow.schedule",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Schedule of a connector in micro-batch mode: a cron expression, a preset of Airflow such as @hourly, "
            "@continuous, asset:<uri>,<uri> (all), asset:<uri>|<uri> (any), lag:<n> (a sink that has n records left), "
            "or on-change (a source whose system has something new).",
        ),
        ConfigKey(
            name=CATCHUP,
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.LOW,
            doc="Whether Airflow makes runs for the intervals since airflow.start.date.",
        ),
        ConfigKey(
            name=START_DATE,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            validator=Check(is_moment, "a date or time in ISO 8601"),
            doc="Start of the first data interval; UTC unless it says otherwise.",
        ),
        ConfigKey(
            name="airflow.retries",
            type=Type.INT,
            default=None,
            importance=Importance.LOW,
            validator=OrNull(Range(0)),
            doc="Number of times that Airflow starts a failed task again before the DAG run fails. A long-running connector's "
            "task starts a driver that dies again itself, without limit.",
        ),
        ConfigKey(
            name="airflow.owner",
            type=Type.STRING,
            default="airflow",
            importance=Importance.LOW,
            doc="Owner of the connector's DAG.",
        ),
        ConfigKey(
            name="airflow.tags",
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            doc="Tags of the connector's DAG, separated by commas.",
        ),
        ConfigKey(
            name=OUTLETS,
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            validator=Check(are_assets, "URIs of assets"),
            doc="URIs of assets that the connector writes to, beside those that Sluiceway finds.",
        ),
        *(
            ConfigKey(
                name=name,
                type=Type.LIST,
                default=[],
                importance=Importance.LOW,
                validator=Check(are_functions, "functions with their modules"),
                doc="Functions that Airflow calls with the task's context, as module.function, from modules that [sluiceway] "
                "callbacks allows.",
            )
            for name in CALLBACKS
        ),
        ConfigKey(
            name=DAG,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            doc="Id of a hand-written DAG that runs the connector. No DAG is generated for it.",
        ),
        ConfigKey(
            name=CONFIG_TASK,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            doc="Id of the task of that DAG which sets this config. The task writes it. While it is there, the REST API refuses "
            "changes of the config, which the task's next try would undo.",
        ),
        ConfigKey(
            name=APPLICATION,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            doc="Spark application that the connector shares with others of the same value. none: an application of its own, "
            "also if the worker has sluiceway.application.default.",
        ),
        ConfigKey(
            name=TASK_ISOLATION,
            type=Type.STRING,
            default="auto",
            importance=Importance.LOW,
            validator=OneOf(("auto", "process", "shared")),
            doc="process: each task has a Python process of its own. shared: it runs beside other tasks in one. auto: in an "
            "application that several connectors share (sluiceway.application), tasks share processes until they use more than "
            "a quarter of a core; elsewhere as process.",
        ),
        ConfigKey(
            name=JAVA_OPTS,
            type=Type.STRING,
            default="",
            importance=Importance.LOW,
            doc="Options of the Java processes that run the connector's Java plugins, such as -Xmx1g. The default heap is "
            "256 MB.",
        ),
        ConfigKey(
            name=TRACE_HEADERS,
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.LOW,
            doc="Whether a source's records carry the trace of their batch in the header traceparent (W3C Trace Context), which "
            "sinks continue. Needs traces by OpenTelemetry.",
        ),
        ConfigKey(
            name=MOVED,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            doc="REST API of the cluster that the connector has moved to, as sluiceway migrate notes it. Until the key is "
            "removed, or the connector is moved back, it stays stopped here: requests to start or to change it are refused.",
        ),
        ConfigKey(
            name=MOVING,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            doc="State that the connector gets at the end of its move. sluiceway migrate sets it during a move, and removes it.",
        ),
        *INTERVALS,
        *LIVE_ASSETS,
        *RESTARTS,
        *UNKNOWN_KEYS,
    ]
)
"""Sluiceway's own keys besides ``spark.*``, which Spark reads. Validation returns only those that a config sets."""


def without_marks(config: Mapping[str, str]) -> dict[str, str]:
    """Return a config without the keys with which moves between clusters note how far they are. They change nothing that runs."""
    return {key: value for key, value in config.items() if key not in (MOVED, MOVING)}


def overrides(config: Mapping[str, str], client: str) -> dict[str, str]:
    """Return a connector's ``<client>.override.*`` settings without the prefix. ``client`` is producer, consumer or admin."""
    prefix = f"{client}.override."
    return {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}


def sink_topics(config: Mapping[str, str], seen: Iterable[str]) -> tuple[str, ...]:
    """Return the topics that a sink reads: those in ``topics``, or with ``topics.regex`` those it has used (``seen``).

    Topics that are unresolved references (``${provider:path:key}``) are left out.
    """
    return tuple(topic for topic in parse_list(config.get(TOPICS)) if not referring_keys({TOPICS: topic})) or tuple(seen)
