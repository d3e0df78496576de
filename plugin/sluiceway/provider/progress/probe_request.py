"""Derives from a connector's config where its progress is recorded in Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sluiceway.config.connector import DLQ_TOPIC, TOPICS, overrides, sink_topics
from sluiceway.config.consumer_group import sink_group
from sluiceway.config.variables import referring_keys, resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.references import References
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.storage.model import ClusterState

_BOOTSTRAP = "bootstrap.servers"


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """The places where the progress of one connector is recorded.

    Attributes:
        name: the connector's name.
        group: a sink's consumer group; None for a source, and for a sink whose group is not known.
        topics: the topics that a sink reads (``sink_topics``), or that a source has written to.
        dead_letter_topic: the dead letter queue topic, if the connector has one.
    """

    name: str
    group: str | None = None
    topics: tuple[str, ...] = ()
    dead_letter_topic: str | None = None


def probe_requests(state: ClusterState, worker: WorkerConfig, topics_of: Callable[[str], Iterable[str]]) -> list[ProbeRequest]:
    """Return the requests for every connector, to send with the worker's rights.

    Args:
        topics_of: returns the active topics of a connector (KIP-558).
    """
    entries = [(entry.name, entry.config) for entry in state.connectors.values()]
    return [probe_request(name, config, worker, topics_of(name)) for name, config in entries if config is not None]


def probe_request(
    name: str, config: Mapping[str, str], worker: WorkerConfig, active_topics: Iterable[str], *, own_admin: bool = False
) -> ProbeRequest:
    """Return the request for one connector.

    Without ``own_admin`` the request is sent with the worker's rights to the worker's cluster: it then has no group and no
    topics for a connector whose clients use another cluster, or whose group is a reference that only its driver resolves.

    Args:
        config: the connector's config; with ``own_admin`` from ``resolve_client_keys``.
        active_topics: the topics that the connector has used (KIP-558).
        own_admin: whether the request is sent with the connector's ``admin.override.*`` properties.
    """
    named = config.get(DLQ_TOPIC, "").strip()
    dead_letter_topic = named if named and not _is_reference(named) else None
    sink = is_sink_config(config)
    group = sink_group(worker, name, config) if sink else None
    elsewhere = _BOOTSTRAP in overrides(config, "consumer" if sink else "producer")
    if not own_admin and (elsewhere or (group is not None and _is_reference(group))):
        return ProbeRequest(name, dead_letter_topic=dead_letter_topic)
    if sink:
        return ProbeRequest(name, group, sink_topics(config, active_topics), dead_letter_topic)
    # DLQ records are not records that the source has delivered.
    topics = tuple(topic for topic in active_topics if topic != dead_letter_topic)
    return ProbeRequest(name, None, topics, dead_letter_topic)


def resolve_client_keys(worker: WorkerConfig, config: Mapping[str, str]) -> dict[str, str]:
    """Return the config with references replaced in ``topics`` and in the keys that override client properties.

    The other references remain: they may be secrets of the external system, which progress does not depend on. So do topics that
    cannot be resolved here, such as those of a DAG run's date.
    """
    read = {key: value for key, value in config.items() if ".override." in key}
    topics = References.of({TOPICS: config[TOPICS]} if TOPICS in config else {}, worker).config
    return {**config, **resolver(worker).resolve(read), **{key: str(value) for key, value in topics.items()}}


def _is_reference(text: str) -> bool:
    return bool(referring_keys({"value": text}))
