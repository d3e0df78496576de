"""What is to be asked of Kafka about each connector, from its config. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sluiceway.config.connector import DLQ_TOPIC, TOPICS, overrides, sink_group
from sluiceway.config.variables import referring_keys
from sluiceway.provider.dag_keys import is_sink_config
from sluiceway.storage.model import ClusterState, ConnectorEntry

_BOOTSTRAP = "bootstrap.servers"


@dataclass(frozen=True, slots=True)
class Subject:
    """A connector and where its progress shows.

    ``group`` is a sink's consumer group, None for a source. ``topics`` are those that a sink names, or that a source was
    seen to write to. ``dead_letters`` is the topic for those, if the connector has one.
    """

    name: str
    group: str | None = None
    topics: tuple[str, ...] = ()
    dead_letters: str | None = None


def subjects(state: ClusterState, topics_seen: Callable[[str], Iterable[str]]) -> list[Subject]:
    """Return what to ask about every connector; ``topics_seen`` tells the topics that a connector was seen to use."""
    return [subject(entry, topics_seen) for entry in state.connectors.values() if entry.config is not None]


def subject(entry: ConnectorEntry, topics_seen: Callable[[str], Iterable[str]]) -> Subject:
    """Return what to ask about one connector.

    Nothing of one that moves records on another cluster, or whose group is a reference to something: only its driver knows.
    """
    config = entry.config or {}
    dead_letters = _plain(config.get(DLQ_TOPIC, "").strip()) or None
    if is_sink_config(config):
        group = _plain(sink_group(entry.name, config))
        if group is None or _BOOTSTRAP in overrides(config, "consumer"):
            return Subject(entry.name, dead_letters=dead_letters)
        named = tuple(topic.strip() for topic in config.get(TOPICS, "").split(",") if _plain(topic.strip()))
        return Subject(entry.name, group, named, dead_letters)
    if _BOOTSTRAP in overrides(config, "producer"):
        return Subject(entry.name, dead_letters=dead_letters)
    # Dead letters of a source are no progress.
    return Subject(entry.name, None, tuple(each for each in topics_seen(entry.name) if each != dead_letters), dead_letters)


def _plain(text: str) -> str | None:
    return None if not text or referring_keys({"value": text}) else text
