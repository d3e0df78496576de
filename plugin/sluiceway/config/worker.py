"""The worker's configuration: the keys of connect-distributed.properties and connect-standalone.properties."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import Password
from sluiceway.config.restarts import RESTARTS
from sluiceway.config.validators import Range
from sluiceway.config.variables import PROVIDERS, Resolver, handed_over, referring_keys
from sluiceway.config.worker_keys import warn_of_unknown

_HIGH, _LOW = Importance.HIGH, Importance.LOW

_COMMON = ConfigDef(
    [
        ConfigKey(
            name="bootstrap.servers",
            type=Type.LIST,
            default="localhost:9092",
            importance=_HIGH,
            doc="Brokers to connect to first.",
        ),
        ConfigKey(
            name="key.converter",
            type=Type.CLASS,
            importance=_HIGH,
            default="org.apache.kafka.connect.json.JsonConverter",
            doc="Converter between Connect's data and the record key's bytes.",
        ),
        ConfigKey(
            name="value.converter",
            type=Type.CLASS,
            importance=_HIGH,
            default="org.apache.kafka.connect.json.JsonConverter",
            doc="Converter between Connect's data and the record value's bytes.",
        ),
        ConfigKey(
            name="header.converter",
            type=Type.CLASS,
            importance=_LOW,
            default="org.apache.kafka.connect.storage.SimpleHeaderConverter",
            doc="Converter between header values and their bytes.",
        ),
        ConfigKey(
            name="offset.flush.interval.ms",
            type=Type.LONG,
            default=60000,
            validator=Range(1),
            importance=_LOW,
            doc="How often offsets are committed, in milliseconds.",
        ),
        ConfigKey(
            name="offset.flush.timeout.ms",
            type=Type.LONG,
            default=5000,
            validator=Range(1),
            importance=_LOW,
            doc="How long a commit of offsets may take before it is given up and tried again later.",
        ),
        ConfigKey(
            name="task.shutdown.graceful.timeout.ms",
            type=Type.LONG,
            default=5000,
            importance=_LOW,
            doc="How long tasks may take to stop, all together.",
        ),
        ConfigKey(name="listeners", type=Type.LIST, default="http://:8083", importance=_LOW, doc="Where the REST API listens."),
        ConfigKey(
            name="topic.tracking.enable",
            type=Type.BOOLEAN,
            default=True,
            importance=_LOW,
            doc="Record which topics a connector uses.",
        ),
        ConfigKey(
            name="group.id",
            type=Type.STRING,
            default="connect-cluster",
            importance=_HIGH,
            doc="Identifies the Connect cluster; transactional ids and client ids are made from it.",
        ),
        ConfigKey(
            name="config.storage.topic",
            type=Type.STRING,
            default="connect-configs",
            importance=_HIGH,
            doc="Which topic keeps the configs of connectors and tasks.",
        ),
        ConfigKey(
            name="config.storage.replication.factor",
            type=Type.SHORT,
            default=3,
            importance=_LOW,
            doc="Replication factor when the config topic is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="offset.storage.topic",
            type=Type.STRING,
            default="connect-offsets",
            importance=_HIGH,
            doc="Topic of the source offsets.",
        ),
        ConfigKey(
            name="offset.storage.partitions",
            type=Type.INT,
            default=25,
            importance=_LOW,
            doc="Partitions when the offsets topic is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="offset.storage.replication.factor",
            type=Type.SHORT,
            default=3,
            importance=_LOW,
            doc="Replication factor when the offsets topic is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="status.storage.topic",
            type=Type.STRING,
            default="connect-status",
            importance=_HIGH,
            doc="Topic of the connectors' and tasks' states.",
        ),
        ConfigKey(
            name="status.storage.partitions",
            type=Type.INT,
            default=5,
            importance=_LOW,
            doc="Partitions when the status topic is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="status.storage.replication.factor",
            type=Type.SHORT,
            default=3,
            importance=_LOW,
            doc="Replication factor when the status topic is created; -1 is the broker's default.",
        ),
        ConfigKey(
            name="offset.storage.file.filename",
            type=Type.STRING,
            default=None,
            importance=_HIGH,
            doc="Standalone mode: the file of the source offsets.",
        ),
        ConfigKey(
            name="config.providers",
            type=Type.LIST,
            default=[],
            importance=_LOW,
            doc="Names of config providers; of each, config.providers.<name>.class is its class and "
            "config.providers.<name>.param.* its parameters. Configs refer to it as ${name:path:key}.",
        ),
        ConfigKey(
            name="sluiceway.heartbeat.interval.ms",
            type=Type.LONG,
            default=10000,
            validator=Range(100),
            importance=_LOW,
            doc="How often a driver says in the status topic that its connector is alive.",
        ),
        ConfigKey(
            name="sluiceway.heartbeat.timeout.ms",
            type=Type.LONG,
            default=25000,
            validator=Range(1000),
            importance=_LOW,
            doc="A RUNNING connector not heard of for longer is reported as UNASSIGNED.",
        ),
        ConfigKey(
            name="sluiceway.slots.timeout.ms",
            type=Type.LONG,
            default=60000,
            validator=Range(0),
            importance=_LOW,
            doc="How long a driver waits for enough Spark slots for its tasks before it says that there are too few.",
        ),
        *RESTARTS,
    ]
)


@dataclass(frozen=True)
class WorkerConfig:
    """A worker's configuration: ``raw`` as the user wrote it, the typed values as attributes. Picklable: it goes to executors."""

    raw: Mapping[str, str]
    values: Mapping[str, ConfigValue]

    secrets: Mapping[str, Password] = field(default_factory=dict)
    """What an Airflow task handed to this driver, for the config provider on executors, where there is no Airflow."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> WorkerConfig:
        """Parse worker properties; those not defined here are kept in ``raw`` (converters and clients read theirs by prefix),
        and of those that nobody knows the log warns.

        References to the worker's own config providers are replaced, so ``raw`` may hold secrets. Raises ConfigError.
        """
        secrets = {name: Password(value) for name, value in handed_over().items()}
        raw = dict(properties)
        warn_of_unknown(raw)
        if referring_keys(raw):
            providers = {key: value for key, value in raw.items() if key.startswith(PROVIDERS)}
            raw = {**Resolver.of(raw, secrets).resolve(raw), **providers}
        return cls(raw, _COMMON.parse(raw), secrets)

    def text(self, key: str) -> str:
        """Return a key's value as text; lists are joined by commas."""
        value = self.values[key]
        return ",".join(value) if isinstance(value, list) else str(value)

    def number(self, key: str) -> int:
        value = self.values[key]
        assert isinstance(value, int)  # noqa: S101 (the definition says so)
        return value

    def duration(self, key: str) -> timedelta:
        return timedelta(milliseconds=self.number(key))

    @property
    def bootstrap_servers(self) -> str:
        return self.text("bootstrap.servers")

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
        """Host and port under which this worker's REST API is known: ``rest.advertised.*``, else the first listener's."""
        listener = self.text("listeners").split(",")[0].rpartition("//")[2]
        host, _, port = listener.rpartition(":")
        host = self.raw.get("rest.advertised.host.name") or host or socket.gethostname()
        return f"{host}:{self.raw.get('rest.advertised.port') or port}"

    @property
    def admin_client_keys(self) -> dict[str, str]:
        """The raw ``admin.*`` keys, without the prefix, that are a Kafka client's: ``admin.listeners*`` are the REST server's."""
        return {key: value for key, value in self.with_prefix("admin.").items() if not key.startswith("listeners")}

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the raw keys that start with ``prefix``, without it: ``with_prefix("producer.")``."""
        return {key[len(prefix) :]: value for key, value in self.raw.items() if key.startswith(prefix)}
