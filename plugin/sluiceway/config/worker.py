"""Reads the worker's configuration: the keys of connect-distributed.properties and connect-standalone.properties."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from sluiceway.config.application import DEFAULT, MAX_TASKS, Applications
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import Password
from sluiceway.config.providers.env import ALLOWLIST, ANY
from sluiceway.config.restarts import RESTARTS
from sluiceway.config.unknown_keys import UNKNOWN_KEYS
from sluiceway.config.validators import OneOf, OrNull, Range
from sluiceway.config.variables import PROVIDERS, Resolver, handed_over, referring_keys
from sluiceway.config.worker_keys import warn_of_unknown

_HIGH, _LOW = Importance.HIGH, Importance.LOW

MIGRATE_WITH = "sluiceway.migrate.with"
VALIDATES_REFERENCES = "sluiceway.validate.references"
"""The key that says that connectors run on the machine which validates them."""

_COMMON = ConfigDef(
    [
        ConfigKey(
            name="bootstrap.servers",
            type=Type.LIST,
            default="localhost:9092",
            importance=_HIGH,
            doc="Brokers for the initial connection to the cluster.",
        ),
        ConfigKey(
            name="key.converter",
            type=Type.CLASS,
            importance=_HIGH,
            default="org.apache.kafka.connect.json.JsonConverter",
            doc="Converts record keys between Connect's data and the bytes in Kafka.",
        ),
        ConfigKey(
            name="value.converter",
            type=Type.CLASS,
            importance=_HIGH,
            default="org.apache.kafka.connect.json.JsonConverter",
            doc="Converts record values between Connect's data and the bytes in Kafka.",
        ),
        ConfigKey(
            name="header.converter",
            type=Type.CLASS,
            importance=_LOW,
            default="org.apache.kafka.connect.storage.SimpleHeaderConverter",
            doc="Converts header values between Connect's data and the bytes in Kafka.",
        ),
        ConfigKey(
            name="offset.flush.interval.ms",
            type=Type.LONG,
            default=60000,
            validator=Range(1),
            importance=_LOW,
            doc="Interval of offset commits, in milliseconds.",
        ),
        ConfigKey(
            name="offset.flush.timeout.ms",
            type=Type.LONG,
            default=5000,
            validator=Range(1),
            importance=_LOW,
            doc="Timeout of an offset commit, in milliseconds. A source's commit that times out is retried before its next poll.",
        ),
        ConfigKey(
            name="task.shutdown.graceful.timeout.ms",
            type=Type.LONG,
            default=5000,
            importance=_LOW,
            doc="Time in milliseconds that all tasks together have to stop.",
        ),
        ConfigKey(
            name="listeners",
            type=Type.LIST,
            default="http://:8083",
            importance=_LOW,
            doc="Addresses of the REST API.",
        ),
        ConfigKey(
            name="topic.tracking.enable",
            type=Type.BOOLEAN,
            default=True,
            importance=_LOW,
            doc="Whether to record the topics that connectors use.",
        ),
        ConfigKey(
            name="group.id",
            type=Type.STRING,
            default="connect-cluster",
            importance=_HIGH,
            doc="Id of the Connect cluster. Transactional ids and client ids are derived from it.",
        ),
        ConfigKey(
            name="config.storage.topic",
            type=Type.STRING,
            default="connect-configs",
            importance=_HIGH,
            doc="Topic for the configs of connectors and tasks.",
        ),
        ConfigKey(
            name="config.storage.replication.factor",
            type=Type.SHORT,
            default=3,
            importance=_LOW,
            doc="Replication factor of the config topic if it is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="offset.storage.topic",
            type=Type.STRING,
            default="connect-offsets",
            importance=_HIGH,
            doc="Topic for source offsets.",
        ),
        ConfigKey(
            name="offset.storage.partitions",
            type=Type.INT,
            default=25,
            importance=_LOW,
            doc="Number of partitions of the offsets topic if it is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="offset.storage.replication.factor",
            type=Type.SHORT,
            default=3,
            importance=_LOW,
            doc="Replication factor of the offsets topic if it is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="status.storage.topic",
            type=Type.STRING,
            default="connect-status",
            importance=_HIGH,
            doc="Topic for the statuses of connectors and tasks.",
        ),
        ConfigKey(
            name="status.storage.partitions",
            type=Type.INT,
            default=5,
            importance=_LOW,
            doc="Number of partitions of the status topic if it is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="status.storage.replication.factor",
            type=Type.SHORT,
            default=3,
            importance=_LOW,
            doc="Replication factor of the status topic if it is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="offset.storage.file.filename",
            type=Type.STRING,
            default=None,
            importance=_HIGH,
            doc="File for source offsets in standalone mode.",
        ),
        ConfigKey(
            name="config.providers",
            type=Type.LIST,
            default=[],
            importance=_LOW,
            doc="Names of config providers, separated by commas. For each, set config.providers.<name>.class and its parameters "
            "config.providers.<name>.param.*. Configs refer to its values as ${name:path:key}.",
        ),
        ConfigKey(
            name=VALIDATES_REFERENCES,
            type=Type.BOOLEAN,
            default=False,
            importance=_LOW,
            doc="Whether the validation of a connector refuses references to files, keys, and environment variables that do not "
            "exist here. Set it if connectors run on the machine of the REST API; 'sluiceway up' and standalone mode do so.",
        ),
        ConfigKey(
            name="plugin.discovery",
            type=Type.STRING,
            default="hybrid_warn",
            validator=OneOf(("only_scan", "hybrid_warn", "hybrid_fail", "service_load"), ignore_case=True),
            importance=_LOW,
            doc="How Java plugins are found (KIP-898). service_load finds those in ServiceLoader manifests, the other values "
            "also those without. hybrid_fail refuses to start if there are some without.",
        ),
        ConfigKey(
            name="plugin.java",
            type=Type.STRING,
            default="fallback",
            validator=OneOf(("prefer", "fallback", "off"), ignore_case=True),
            importance=_LOW,
            doc="Which class a name means that is both a Python plugin and a Java plugin in plugin.path: prefer for the Java "
            "class, fallback for the Python class. off uses no Java plugins.",
        ),
        ConfigKey(
            name="sluiceway.heartbeat.interval.ms",
            type=Type.LONG,
            default=10000,
            validator=Range(100),
            importance=_LOW,
            doc="Interval of the heartbeats that each driver, task host, and task with a process of its own writes to the status "
            "topic, in milliseconds.",
        ),
        ConfigKey(
            name="sluiceway.heartbeat.timeout.ms",
            type=Type.LONG,
            default=25000,
            validator=Range(1000),
            importance=_LOW,
            doc="Time in milliseconds without a heartbeat after which a RUNNING connector or task is reported as UNASSIGNED, and "
            "after which a driver starts the task again.",
        ),
        ConfigKey(
            name="sluiceway.slots.timeout.ms",
            type=Type.LONG,
            default=60000,
            validator=Range(0),
            importance=_LOW,
            doc="Time in milliseconds between two warnings about tasks that wait for a slot of the Spark application. A driver "
            "whose application on a standalone cluster has had no executors for this time, but had some before, ends, so that "
            "Airflow submits another.",
        ),
        ConfigKey(
            name=DEFAULT,
            type=Type.STRING,
            default=None,
            importance=_LOW,
            doc="Shared Spark application of each long-running connector without sluiceway.application, spark.* keys, and a "
            "hand-written DAG. Without it, each of them has an application of its own.",
        ),
        ConfigKey(
            name=MAX_TASKS,
            type=Type.INT,
            default=None,
            validator=OrNull(Range(1)),
            importance=_LOW,
            doc="Number of tasks in a shared application. Connectors beyond it go into further applications, NAME-2, NAME-3, "
            "and so on. Without it, there is no limit.",
        ),
        ConfigKey(
            name="sluiceway.metrics.listener",
            type=Type.STRING,
            default="http://:0",
            importance=_LOW,
            doc="Address on which each driver serves its metrics (GET /metrics) and receives those of its tasks. Port 0 is any "
            "free port; the REST API finds it. An empty value turns metrics off.",
        ),
        ConfigKey(
            name="sluiceway.history.topic",
            type=Type.STRING,
            default=None,
            importance=_LOW,
            doc="Topic that records who changed connectors, when, and what. The default is the name of the config topic with "
            "-history. It is created with the first change. An empty value turns the history off.",
        ),
        ConfigKey(
            name=MIGRATE_WITH,
            type=Type.STRING,
            default=None,
            importance=_LOW,
            doc="URL of the REST API of the Connect cluster that connectors move from or to ('sluiceway migrate'), or several, "
            "separated by commas. The page then shows both sides. The API server asks it; a login in the URL is sent only there.",
        ),
        *RESTARTS,
        *UNKNOWN_KEYS,
    ]
)


@dataclass(frozen=True)
class WorkerConfig:
    """A worker's configuration. ``raw`` are the properties as text, ``values`` the parsed values of the defined keys.

    Picklable, because it is sent to executors.
    """

    raw: Mapping[str, str]
    values: Mapping[str, ConfigValue]

    secrets: Mapping[str, Password] = field(default_factory=dict)
    """Values that an Airflow task passed to this driver, for config providers on executors, which cannot reach Airflow."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> WorkerConfig:
        """Parse worker properties and resolve references to the worker's own config providers. Raises ConfigError.

        Keys not defined here are kept in ``raw``, from which converters and clients read theirs by prefix. Unknown keys are
        logged. ``raw`` may contain secrets.
        """
        secrets = {name: Password(value) for name, value in handed_over().items()}
        raw = dict(properties)
        warn_of_unknown(raw)
        if referring_keys(raw):
            providers = {key: value for key, value in raw.items() if key.startswith(PROVIDERS)}
            # The administrator's own references: the default allow list is for connectors.
            raw = {**Resolver.of(raw, secrets, {ALLOWLIST: ANY}).resolve(raw), **providers}
        return cls(raw, _COMMON.parse(raw), secrets)

    def text(self, key: str) -> str:
        """Return the value of a key as text, lists joined by commas."""
        value = self.values[key]
        return ",".join(value) if isinstance(value, list) else str(value)

    def number(self, key: str) -> int:
        """Return the value of a key with an integer type."""
        value = self.values[key]
        assert isinstance(value, int)  # noqa: S101 (the key's type guarantees it)
        return value

    def duration(self, key: str) -> timedelta:
        """Return the value of a key in milliseconds."""
        return timedelta(milliseconds=self.number(key))

    @property
    def bootstrap_servers(self) -> str:
        return self.text("bootstrap.servers")

    @property
    def applications(self) -> Applications:
        return Applications.of(self.values)

    @property
    def group_id(self) -> str:
        return self.text("group.id")

    @property
    def config_topic(self) -> str:
        return self.text("config.storage.topic")

    @property
    def offset_topic(self) -> str:
        return self.text("offset.storage.topic")

    @property
    def status_topic(self) -> str:
        return self.text("status.storage.topic")

    @property
    def advertised_address(self) -> str:
        """Host and port of this worker's REST API: ``rest.advertised.*``, or those of the first listener."""
        listener = self.text("listeners").split(",")[0].rpartition("//")[2]
        host, _, port = listener.rpartition(":")
        host = self.raw.get("rest.advertised.host.name") or host or socket.gethostname()
        return f"{host}:{self.raw.get('rest.advertised.port') or port}"

    @property
    def metrics_listener(self) -> str:
        """The address on which drivers serve metrics; empty if they are off."""
        return str(self.values["sluiceway.metrics.listener"] or "").strip()

    @property
    def admin_client_keys(self) -> dict[str, str]:
        """The ``admin.*`` keys of Kafka clients without the prefix. ``admin.listeners*`` are keys of the REST server."""
        return {key: value for key, value in self.with_prefix("admin.").items() if not key.startswith("listeners")}

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the raw keys that start with ``prefix``, without the prefix, such as ``with_prefix("producer.")``."""
        return {key[len(prefix) :]: value for key, value in self.raw.items() if key.startswith(prefix)}
