"""What is to be asked of Kafka about each connector, from its config. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sluiceway.config.connector import DLQ_TOPIC, overrides, sink_topics
from sluiceway.config.consumer_group import sink_group
from sluiceway.config.variables import referring_keys
from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.storage.model import ClusterState, ConnectorEntry

_BOOTSTRAP = "bootstrap.servers"


@dataclass(frozen=True, slots=True)
class Subject:
    """A connector and where its progress shows.

    ``group`` is a sink's consumer group, None for a source. ``topics`` are those that a sink reads (``sink_topics``), or that a
    source was seen to write to. ``dead_letters`` is the topic for those, if the connector has one.
    """

    name: str
    group: str | None = None
    topics: tuple[str, ...] = ()
    dead_letters: str | None = None


def subjects(state: ClusterState, worker: WorkerConfig, topics_seen: Callable[[str], Iterable[str]]) -> list[Subject]:
    """Return what to ask about every connector; ``topics_seen`` tells the topics that a connector was seen to use."""
    return [subject(entry, worker, topics_seen) for entry in state.connectors.values() if entry.config is not None]


def subject(entry: ConnectorEntry, worker: WorkerConfig, topics_seen: Callable[[str], Iterable[str]]) -> Subject:
    """Return what to ask about one connector.

    Nothing of one that moves records on another cluster, or whose group is a reference to something: only its driver knows.
    """
    config = entry.config or {}
    dead_letters = _plain(config.get(DLQ_TOPIC, "").strip()) or None
    if is_sink_config(config):
        group = _plain(sink_group(worker, entry.name, config))
        if group is None or _BOOTSTRAP in overrides(config, "consumer"):
            return Subject(entry.name, dead_letters=dead_letters)
        return Subject(entry.name, group, sink_topics(config, topics_seen(entry.name)), dead_letters)
    if _BOOTSTRAP in overrides(config, "producer"):
        return Subject(entry.name, dead_letters=dead_letters)
    # Dead letters of a source are no progress.
    return Subject(entry.name, None, tuple(each for each in topics_seen(entry.name) if each != dead_letters), dead_letters)


def _plain(text: str) -> str | None:
    return None if not text or referring_keys({"value": text}) else text
