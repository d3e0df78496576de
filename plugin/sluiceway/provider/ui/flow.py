"""Computes the graph of connectors and topics that the page draws. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sluiceway.config.connector import DLQ_TOPIC, overrides, sink_topics
from sluiceway.config.variables import referring_keys
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.lineage.datasets import first_server, lineage
from sluiceway.provider.progress.connector_progress import ConnectorProgress

Kind = Literal["writes", "reads", "dead_letters"]

_ALONE = 4  # topics of the same connectors that are drawn one by one; more share a node
_NAMED = 20  # topics of a node that are named
_BOOTSTRAP = "bootstrap.servers"


class Topic(NamedTuple):
    """A topic; ``cluster`` is the first server of the Kafka cluster that has it, empty for the worker's."""

    name: str
    cluster: str = ""


_ANY = Topic("")
_NOT_MEASURED = ConnectorProgress()


class Edge(NamedTuple):
    """What a connector does with a topic. ``planned``: its config says so, and it has not done it yet."""

    connector: str
    kind: Kind
    topic: Topic
    planned: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """A connector of the graph.

    Attributes:
        used: its active topics (KIP-558).
        rate: its records per second; None if that is not known.
        rates: the same for each of its topics, if it has several.
    """

    name: str
    config: Mapping[str, str]
    used: Sequence[str] = ()
    progress: ConnectorProgress = _NOT_MEASURED
    rate: float | None = None
    rates: Mapping[str, float | None] = field(default_factory=dict)


def edges(member: Member) -> list[Edge]:
    """Return the connections of a connector, each once, sorted.

    A source writes to the topics that it has used, and before its first record to those that its config names. A sink reads those
    in ``topics``, and with ``topics.regex`` those that it has used. References (``${provider:path:key}``) are left out.
    """
    config, sink = member.config, is_sink_config(member.config)
    cluster = first_server(overrides(config, "consumer" if sink else "producer").get(_BOOTSTRAP, ""))
    queue = config.get(DLQ_TOPIC, "").strip()
    if sink:
        found = [Edge(member.name, "reads", Topic(topic, cluster)) for topic in sink_topics(config, member.used)]
    else:
        used = [topic for topic in member.used if topic != queue]
        topics = used or [each.name for each in lineage(config, bootstrap="", sink=False).outputs]
        found = [Edge(member.name, "writes", Topic(topic, cluster), planned=not used) for topic in topics]
    if queue:
        found.append(Edge(member.name, "dead_letters", Topic(queue)))
    return sorted({each for each in found if not referring_keys({"topic": each.topic.name})})


def graph(members: Iterable[Member]) -> dict[str, Any]:
    """Return topics and edges as JSON, with null for an unknown number. Many topics of the same connectors are one node."""
    by_name = {member.name: member for member in sorted(members, key=lambda member: member.name)}
    of_connector = {member.name: edges(member) for member in by_name.values()}
    topics, drawn = [], []
    for names, cluster, uses in _nodes(each for found in of_connector.values() for each in found):
        node = f"{cluster}/{names[0]}"
        topics.append({"id": node, "names": names[:_NAMED], "count": len(names), "cluster": cluster})
        for edge in uses:
            all_names = {each.topic.name for each in of_connector[edge.connector] if each.kind == edge.kind}
            numbers = _numbers(by_name[edge.connector], edge.kind, names, is_all=all_names == {*names})
            drawn.append({"connector": edge.connector, "topic": node, "kind": edge.kind, "planned": edge.planned, **numbers})
    return {"topics": topics, "edges": drawn}


def _nodes(found: Iterable[Edge]) -> list[tuple[list[str], str, list[Edge]]]:
    """Return nodes, sorted by their first topic: the names of its topics, their cluster, and the edges of one of them."""
    uses: dict[Topic, list[Edge]] = {}
    for edge in found:
        uses.setdefault(edge.topic, []).append(edge)
    alike: dict[tuple[Edge, ...], list[Topic]] = {}  # a connector and a kind have one cluster
    for topic, own in sorted(uses.items()):
        alike.setdefault(tuple(edge._replace(topic=_ANY) for edge in own), []).append(topic)
    together = [part for each in alike.values() for part in ([each] if len(each) > _ALONE else [[topic] for topic in each])]
    return [([topic.name for topic in part], part[0].cluster, uses[part[0]]) for part in sorted(together)]


def _numbers(member: Member, kind: Kind, topics: Sequence[str], *, is_all: bool) -> dict[str, float | None]:
    """Return rate and lag of an edge, or the records of a dead letter queue. ``is_all``: the connector has no other topics."""
    if kind == "dead_letters":
        return {"rate": None, "lag": None, "records": member.progress.dead_letters}
    rate = member.rate if is_all else _sum(member.rates.get(topic) for topic in topics)
    lags = [each.lag for each in member.progress.partitions if each.partition.topic in topics]
    return {"rate": None if rate is None else round(rate, 2), "lag": sum(lags) if lags else None, "records": None}


def _sum(rates: Iterable[float | None]) -> float | None:
    known = list(rates)
    return None if None in known else sum(each for each in known if each is not None)
