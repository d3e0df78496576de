"""MirrorSource: copies topics of another Kafka cluster."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, TopicPartition
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.mirror import config as mirror_config
from sluiceway.connectors.mirror.client_properties import reads_committed
from sluiceway.connectors.mirror.config import CONFIG, MirrorConfig
from sluiceway.connectors.mirror.task import MirrorSourceTask
from sluiceway.connectors.mirror.topic_partitions import ASSIGNED_PARTITIONS, TASK_INDEX, assignment_text, check_offset, dealt_out
from sluiceway.connectors.periodic import Job, Periodic

if TYPE_CHECKING:
    from sluiceway.connectors.mirror.replicator import Replicator

log = logging.getLogger(__name__)


class MirrorSourceConnector(SourceConnector):
    """Copies topics of another Kafka cluster byte for byte, as MirrorMaker 2 does: keys, values, headers and timestamps, to
    the same partitions of remote topics, which it makes and gives their sources' settings and readers (ACLs). It writes
    offset syncs, finds new topics and partitions at intervals, and does not copy back what came from the target.
    ``key.converter``, ``value.converter`` and ``header.converter`` have to be
    ``org.apache.kafka.connect.converters.ByteArrayConverter``. ``source.cluster.bootstrap.servers`` and
    ``target.cluster.bootstrap.servers`` are required; how to log in stands behind ``source.cluster.`` and
    ``target.cluster.``, other settings of clients behind ``source.consumer.``, ``target.admin.`` and their like, in
    librdkafka's words where those differ from Java's. The target has to be the cluster that the worker writes to.
    ``forwarding.admin.class``, ``metric.reporters`` and ``metric.names.formats`` change nothing.

    Runs its periodic jobs in a thread of its own. A stored offset is that of the last record copied.
    """

    task_class = MirrorSourceTask
    java_class = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    java_task_class = "org.apache.kafka.connect.mirror.MirrorSourceTask"

    _config: MirrorConfig
    _replicator: Replicator | None = None
    _jobs: Periodic | None = None
    _places: frozenset[TopicPartition] = frozenset()

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return mirror_config.validate(config)

    def start(self, config: Mapping[str, str]) -> None:
        from sluiceway.connectors.mirror.replicator import Replicator

        self._config = mirror = MirrorConfig(config)
        if not mirror.enabled:
            log.info("%s is disabled: it copies nothing", mirror.name)
            return
        self._replicator = replicator = Replicator(mirror)
        replicator.create_offset_syncs_topic()
        self._places = replicator.refresh()
        log.info("%s copies %s from %s to %s", mirror.name, _shown(self._places), mirror.source, mirror.target)
        self._jobs = Periodic(
            f"mirror-{mirror.name}",
            [
                Job("to copy ACLs of topics", replicator.sync_acls, mirror.acls_interval, at_once=True),
                Job("to copy settings of topics", replicator.sync_settings, mirror.configs_interval, at_once=True),
                Job("to look for new topics", self._refresh, mirror.refresh_interval),
            ],
        )
        self._jobs.start()

    def _refresh(self) -> None:
        """Called on the jobs' thread."""
        assert self._replicator is not None  # noqa: S101 (start made it)
        found = self._replicator.refresh(tolerant=True)
        if found != self._places:
            log.info("%s copies %s from now on", self._config.name, _shown(found))
            self._places = found
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Deal the partitions out in turn; no tasks while there is nothing to copy."""
        return [
            {**self._config.properties, ASSIGNED_PARTITIONS: assignment_text(places), TASK_INDEX: str(number)}
            for number, places in enumerate(dealt_out(self._places, max_tasks))
        ]

    def stop(self) -> None:
        if self._jobs is not None:
            self._jobs.stop()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED if reads_committed(config) else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True


def _shown(places: Collection[TopicPartition]) -> str:
    return f"{len(places)} partitions of {len({place.topic for place in places})} topics"
