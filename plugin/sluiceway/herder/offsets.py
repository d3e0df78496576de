"""Reads and changes the offsets of a connector: a source's in the offset store, a sink's in its consumer group."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from sluiceway.api import OffsetTarget, OffsetTargetKind, SinkConnector, SourceConnector, TopicPartition
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION, TOPICS, TOPICS_REGEX, overrides
from sluiceway.config.consumer_group import GROUP, sink_group
from sluiceway.config.source_keys import OFFSETS_TOPIC
from sluiceway.config.variables import referring_keys, resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.errors import BadRequestError, ConflictError, ConnectError, NotFoundError
from sluiceway.herder import offset_edits, offset_targets
from sluiceway.herder.offset_edits import OffsetEdit
from sluiceway.herder.offset_targets import FoundOffset, PartitionChoice
from sluiceway.herder.references import References
from sluiceway.kafka.lag import PartitionBounds
from sluiceway.storage.interfaces import OffsetBackingStore, TransactionalOffsets
from sluiceway.storage.model import ConnectorEntry

log = logging.getLogger(__name__)

_STOPPING_SECONDS = 10.0
_POLL_SECONDS = 0.05


class Groups(Protocol):
    """Consumer groups of the cluster that a sink reads (``sluiceway.kafka.group_offsets.ConsumerGroups``)."""

    def offsets(self, group: str) -> dict[TopicPartition, int]: ...

    def missing(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]: ...

    def counts(self) -> dict[str, int]: ...

    def bounds(self, partitions: Sequence[TopicPartition], milliseconds: int | None) -> dict[TopicPartition, PartitionBounds]: ...

    def alter(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> None: ...

    def delete(self, group: str) -> None: ...


OpenGroups = Callable[[WorkerConfig, Mapping[str, str]], Groups]
"""Returns the consumer groups for a worker and a connector's ``admin.override.*`` settings."""


def kafka_groups(worker: WorkerConfig, admin_overrides: Mapping[str, str]) -> Groups:
    """Return the consumer groups of a Kafka cluster."""
    from sluiceway.kafka.group_offsets import ConsumerGroups

    return ConsumerGroups(worker, admin_overrides)


class ConnectorOffsets:
    """The offsets of one connector. Every method blocks on Kafka and raises KafkaClientError if it does not answer.

    Without ``resolves``, references remain as they are. Call then only what ``at_worker`` allows.
    """

    def __init__(
        self,
        entry: ConnectorEntry,
        worker: WorkerConfig,
        store: OffsetBackingStore | None,
        open_groups: OpenGroups,
        *,
        resolves: bool = True,
    ) -> None:
        self._entry = entry
        self._worker = worker
        self._store = store
        self._open_groups = open_groups
        given = dict(entry.config or {})
        self._config = _resolved(given, worker) if resolves else given
        self._connector = _made(self._config)

    @property
    def of_sink(self) -> bool:
        """Whether the connector is a sink, whose offsets are those of a consumer group."""
        return isinstance(self._connector, SinkConnector)

    @property
    def at_worker(self) -> bool:
        """Whether the worker's rights reach the offsets, and no reference says where they are."""
        keys = (GROUP, TOPICS, TOPICS_REGEX) if self.of_sink else (OFFSETS_TOPIC,)
        elsewhere = self.of_sink and overrides(self._config, "admin")
        return not elsewhere and not referring_keys({key: self._config.get(key) for key in keys})

    @property
    def elsewhere(self) -> str:
        """Where the position is instead, for users; empty if offsets are the position."""
        if isinstance(self._connector, SinkConnector):
            return ""
        return self._connector.position_elsewhere(self._config)

    def read(self) -> list[OffsetEdit]:
        """Return every partition with its offset."""
        if isinstance(self._connector, SinkConnector):
            return offset_edits.as_edits(self._groups().offsets(self._group))
        with self._source_store() as store:
            return list(store.all(self._entry.name))

    def find(self, target: OffsetTarget, choice: PartitionChoice) -> list[FoundOffset]:
        """Return the offsets of a target in the chosen partitions. Changes nothing.

        Raises BadRequestError for a target that the connector does not have, and NotFoundError for unknown partitions.
        """
        if isinstance(self._connector, SinkConnector):
            return self._find_in_topics(target, choice)
        if self.elsewhere:
            raise BadRequestError(f"The connector has no offsets to find. {self.elsewhere}")
        with self._source_store() as store:
            stored = store.all(self._entry.name)
        found = offset_targets.chosen_sources(self._connector.find_offsets(self._config, target, stored), choice)
        return [FoundOffset(*each) for each in offset_edits.with_stored(found, stored)]

    def _find_in_topics(self, target: OffsetTarget, choice: PartitionChoice) -> list[FoundOffset]:
        name, groups = self._entry.name, self._groups()
        partitions = offset_targets.chosen_partitions(name, self._config, choice, groups.counts())
        committed = groups.offsets(self._group)
        bounds = groups.bounds(partitions, target.number if target.kind is OffsetTargetKind.TIMESTAMP else None)
        found = {each: offset_targets.sink_offset(name, each, target, committed.get(each), bounds[each]) for each in partitions}
        before = offset_edits.as_edits({each: offset for each, offset in committed.items() if each in found})
        return [FoundOffset(*each) for each in offset_edits.with_stored(offset_edits.as_edits(found), before)]

    def alter(self, edits: Sequence[OffsetEdit]) -> str:
        """Set offsets and return the message for the user.

        Raises BadRequestError, or ConnectError if the connector rejects them.
        """
        if isinstance(self._connector, SinkConnector):
            return self._alter_sink(self._connector, edits)
        return self._alter_source(edits, reset=False)

    def reset(self) -> str:
        """Remove all offsets and return the message for the user. Raises as ``alter`` does."""
        if not isinstance(self._connector, SinkConnector):
            stored = self.read()
            if self.elsewhere and not stored:
                raise BadRequestError(f"There are no offsets to reset. {self.elsewhere}")
            return self._alter_source([(partition, None) for partition, _ in stored], reset=True)
        groups = self._groups()
        removed: dict[TopicPartition, int | None] = dict.fromkeys(groups.offsets(self._group))
        checked = self._connector.alter_offsets(self._config, removed)
        self._changing_group(lambda: groups.delete(self._group), reset=True)
        return offset_edits.success(reset=True, checked=checked)

    def _alter_source(self, edits: Sequence[OffsetEdit], *, reset: bool) -> str:
        assert isinstance(self._connector, SourceConnector)  # noqa: S101 (_made lets nothing else through)
        if self.elsewhere and any(offset is not None for _partition, offset in edits):
            raise BadRequestError(f"The connector has no offsets to set. {self.elsewhere}")
        offset_edits.refuse_nested(edits)
        checked = self._connector.alter_offsets(self._config, [(partition, offset) for partition, offset in edits])  # type: ignore[misc]
        if any(partition is None and offset is not None for partition, offset in edits):
            raise BadRequestError("The partition for a source connector offset cannot be null or missing")
        with self._source_store() as store:
            store.put(self._entry.name, [(partition, offset) for partition, offset in edits if partition is not None])
        return offset_edits.success(reset=reset, checked=checked)

    def _alter_sink(self, connector: SinkConnector, edits: Sequence[OffsetEdit]) -> str:
        offsets = offset_edits.sink_offsets(edits)
        checked = connector.alter_offsets(self._config, dict(offsets))
        if any(offset is not None and offset < 0 for offset in offsets.values()):
            raise ConnectError(f"Failed to modify offsets for sink connector {self._entry.name}")
        groups = self._groups()
        partitions = [partition for partition, offset in offsets.items() if offset is not None]
        missing = [partition for partition in partitions if not offset_edits.is_topic_name(partition.topic)]
        if partitions and not missing:
            missing = groups.missing(partitions)
        if missing:
            log.error("[%s|worker] Cannot set offsets of partitions that do not exist: %s", self._entry.name, missing)
            raise ConnectError(f"Failed to alter consumer group offsets for connector {self._entry.name}")
        self._changing_group(lambda: groups.alter(self._group, offsets), reset=False)
        return offset_edits.success(reset=False, checked=checked)

    def _changing_group(self, change: Callable[[], None], *, reset: bool) -> None:
        try:
            change()
        except ConflictError as error:
            log.warning("[%s|worker] %s", self._entry.name, error)
            raise ConnectError(offset_edits.group_busy(self._entry.name, reset=reset)) from error

    @property
    def _group(self) -> str:
        return sink_group(self._worker, self._entry.name, self._config)

    def _groups(self) -> Groups:
        return self._open_groups(self._worker, overrides(self._config, "admin"))

    @contextlib.contextmanager
    def _source_store(self) -> Iterator[OffsetBackingStore]:
        """Return the store with the connector's offsets. One with its own offsets topic is opened and closed here."""
        if self._store is None:
            raise ConnectError("Source offsets cannot be read: this process has no offset store.")
        topic = self._config.get(OFFSETS_TOPIC) or self._worker.offset_topic
        if topic == self._worker.offset_topic or not isinstance(self._store, TransactionalOffsets):  # a file has no topics
            yield self._store
            return
        from sluiceway.storage.factory import open_source_offsets

        own = open_source_offsets(self._worker, self._config)
        own.start()
        try:
            yield own
        finally:
            own.stop()


def await_driver_stop(is_alive: Callable[[], bool], name: str) -> None:
    """Wait until no driver runs the stopped connector any more. Raises ConnectError after 10 s."""
    deadline = time.monotonic() + _STOPPING_SECONDS
    never = threading.Event()
    while is_alive():
        if time.monotonic() > deadline:
            raise ConnectError(
                f"Connector {name} has not stopped completely yet, so its offsets cannot be modified. This can be safely "
                "retried. If it does not eventually succeed, end the connector's driver."
            )
        never.wait(_POLL_SECONDS)


def _resolved(config: Mapping[str, str], worker: WorkerConfig) -> dict[str, str]:
    """Return a config with the references that can be resolved here.

    The others remain: a DAG run's variables and a driver's files are read where the connector runs. Raises ConfigError for those
    that tell where the offsets are.
    """
    known = References.of(config, worker)
    found = {key: str(value) for key, value in known.config.items()}
    needed = {key: config[key] for key in known.unknown if ".override." in key or key == OFFSETS_TOPIC}
    if not needed:
        return found
    with contextlib.closing(resolver(worker)) as providers:
        return {**found, **providers.resolve(needed)}


def _made(config: Mapping[str, str]) -> SourceConnector | SinkConnector:
    try:
        made = connector_class(config.get(CONNECTOR_CLASS, ""), config.get(CONNECTOR_VERSION))()
    except NotFoundError as error:
        raise ConnectError(str(error)) from error
    assert isinstance(made, (SourceConnector, SinkConnector))  # noqa: S101 (a config of any other was refused)
    return made
