"""Creates the topics a source connector writes to, by its ``topic.creation.*`` keys (KIP-158)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluiceway.config.connector import overrides
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.source_keys import TOPIC_CREATION_GROUPS, TOPIC_CREATION_PREFIX
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.java.regex import RegexError, compile_java
from sluiceway.kafka.admin import create_topic, partition_count
from sluiceway.kafka.clients import AdminClient, admin_client
from sluiceway.storage.model import TaskId

log = logging.getLogger(__name__)

WORKER_ENABLE = "topic.creation.enable"
_DEFAULT = "default"
_BROKERS = -1

WORKER = ConfigDef(
    [
        ConfigKey(
            name=WORKER_ENABLE,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Allow source connectors to create topics by their topic.creation.* settings.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class TopicCreationGroup:
    """Settings of new topics whose names match ``include`` and not ``exclude`` (Java patterns, whole names).

    -1 partitions or replicas stand for the broker's default. ``settings`` are topic configs.
    """

    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def matches(self, topic: str) -> bool:
        return _matches(self.include, topic) and not _matches(self.exclude, topic)


def topic_groups(config: Mapping[str, str]) -> list[TopicCreationGroup]:
    """Return a connector's groups in order of precedence, the default group last, or none without ``topic.creation.*``.

    Raises ConfigError for missing ``topic.creation.default.*`` keys, a count that is neither -1 nor at least 1, and an
    invalid pattern.
    """
    given = {key: value for key, value in config.items() if key.startswith(TOPIC_CREATION_PREFIX)}
    if not given:
        return []
    names = ConfigDef([ConfigKey(name=TOPIC_CREATION_GROUPS, type=Type.LIST, default=[])]).parse(given)[TOPIC_CREATION_GROUPS]
    default = _group(_DEFAULT, given, None)
    return [*(_group(name, given, default) for name in _texts(names) if name != _DEFAULT), default]


def _group(name: str, config: Mapping[str, str], default: TopicCreationGroup | None) -> TopicCreationGroup:
    prefix = f"{TOPIC_CREATION_PREFIX}{name}."
    definition = ConfigDef([_count(f"{prefix}partitions", Type.INT), _count(f"{prefix}replication.factor", Type.SHORT)])
    if default is not None:
        inherited = {
            f"{prefix}partitions": str(default.partitions),
            f"{prefix}replication.factor": str(default.replication_factor),
        }
        config = {**inherited, **config}
        definition = definition.define(_patterns(f"{prefix}include"), _patterns(f"{prefix}exclude"))
    values = definition.parse(config)
    settings = {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix) and key not in definition}
    return TopicCreationGroup(
        name,
        int(str(values[f"{prefix}partitions"])),
        int(str(values[f"{prefix}replication.factor"])),
        settings,
        _texts(values.get(f"{prefix}include")),
        _texts(values.get(f"{prefix}exclude")),
    )


def _count(name: str, type_: Type) -> ConfigKey:
    return ConfigKey(name=name, type=type_, importance=Importance.LOW, validator=_at_least_one)


def _patterns(name: str) -> ConfigKey:
    return ConfigKey(name=name, type=Type.LIST, default=[], importance=Importance.LOW, validator=_all_patterns)


def _at_least_one(name: str, value: ConfigValue) -> None:
    if isinstance(value, int) and value < 1 and value != _BROKERS:
        raise ConfigError(name, value, "must be at least 1, or -1 for the broker's default")


def _all_patterns(name: str, value: ConfigValue) -> None:
    for pattern in _texts(value):
        try:
            compile_java(pattern)
        except RegexError as error:
            raise ConfigError(name, pattern, f"not a regular expression: {error}") from error


def _texts(value: ConfigValue) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _matches(patterns: tuple[str, ...], topic: str) -> bool:
    return any(compile_java(pattern).matches(topic) for pattern in patterns)


class TopicCreation:
    """Creates a topic before a task's first record to it. Runs on an executor. Not thread-safe."""

    def __init__(self, task: TaskId, config: Mapping[str, str], worker: WorkerConfig) -> None:
        """Raise ConfigError for invalid settings. Connects to the cluster only when ``ensure`` is first called."""
        enabled = bool(WORKER.parse(worker.raw)[WORKER_ENABLE])
        self._groups = topic_groups(config) if enabled else []
        self._task = task
        self._worker = worker
        self._overrides = overrides(config, "admin")
        self._admin: AdminClient | None = None

    def ensure(self, topic: str) -> None:
        """Create a topic if it does not exist and the connector has a group for it. Raises ConnectError."""
        group = next((group for group in self._groups if group.matches(topic)), self._groups[-1] if self._groups else None)
        if group is None:
            return
        if self._admin is None:
            self._admin = admin_client(self._worker, self._overrides, client_id=f"connector-adminclient-{self._task}")
        try:
            if partition_count(self._admin, topic) is None and create_topic(
                self._admin, topic, group.partitions, group.replication_factor, group.settings
            ):
                log.info("Task %s created topic %s with the settings of group %s", self._task, topic, group.name)
        except ConnectError as error:
            raise ConnectError(
                f"Task {self._task} could not create topic '{topic}' with the settings of group '{group.name}': {error} "
                f"Allow the task to create topics, correct {TOPIC_CREATION_PREFIX}{group.name}.*, or create the topic "
                "yourself; then restart the task."
            ) from error
