"""Completes the lineage of a connector's config by what its run and its topics tell. Runs in the Airflow task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sluiceway.config.connector import TRANSFORMS
from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.lineage.datasets import DataSet, Description, Lineage, kafka, lineage
from sluiceway.provider.lineage.shapes import TopicShape, read_shapes
from sluiceway.provider.progress.run_summary import MAX_CHANGES, RunSummary


class UsedTopics(Protocol):
    """Reads the topics that a connector has used (KIP-558)."""

    def topics(self, name: str) -> list[str]: ...


def observed_lineage(
    connector: str, config: Mapping[str, str], worker: WorkerConfig, used: UsedTopics, moved: RunSummary | None
) -> Lineage:
    """Return the data sets of a connector with their fields, rows, and bytes. Raises ConnectError.

    Args:
        used: asked for the topics of a source whose config names none.
        moved: by the run; None while it has not ended.
    """
    sink = is_sink_config(config)
    bootstrap = worker.bootstrap_servers
    found = lineage(config, bootstrap=bootstrap, sink=sink)
    if not sink and not found.outputs:
        found = found._replace(outputs=tuple(kafka(bootstrap, topic) for topic in sorted(used.topics(connector))))
    topics = [each.name for each in (found.inputs if sink else found.outputs)]
    return describe(found, config, sink=sink, shapes=read_shapes(config, worker, topics), moved=moved)


def describe(
    found: Lineage, config: Mapping[str, str], *, sink: bool, shapes: Mapping[str, TopicShape], moved: RunSummary | None
) -> Lineage:
    """Return a lineage with what is known of its data sets.

    A connector's transforms change fields between its two ends, so with transforms only those of the topics are known.

    Args:
        shapes: of the topics, by their names.
        moved: by the run; None while it has not ended.
    """
    topics, others = (found.inputs, found.outputs) if sink else (found.outputs, found.inputs)
    rows = _rows(moved, [each.name for each in topics])
    known: dict[DataSet, Description] = {}
    for topic in topics:
        shape, count = shapes.get(topic.name), rows.get(topic.name)
        size = None if shape is None or count is None or not shape.record_bytes else round(shape.record_bytes * count)
        known[topic] = Description(shape.fields if shape else (), count, size)
    for other, partner in _pairs(others, topics):
        same = Description(rows=_total(moved)) if partner is None else known[partner]
        known[other] = Description(() if config.get(TRANSFORMS, "").strip() else same.fields, same.rows)
    return found._replace(descriptions=known)


def _pairs(others: Sequence[DataSet], topics: Sequence[DataSet]) -> list[tuple[DataSet, DataSet | None]]:
    """Return each data set outside Kafka with the topic that it belongs to; None if all topics belong to a single one."""
    if len(others) == len(topics):
        return list(zip(others, topics, strict=True))
    return [(others[0], None)] if len(others) == 1 else []


def _total(moved: RunSummary | None) -> int | None:
    return None if moved is None else moved.records


def _rows(moved: RunSummary | None, topics: Sequence[str]) -> dict[str, int]:
    """Return how many records a run has moved from or to each topic, as far as that is known."""
    total = _total(moved)
    if moved is None or total is None:
        return {}
    if len(topics) == 1:
        return {topics[0]: total}
    if len(moved.changes) >= MAX_CHANGES:
        return {}
    counts: dict[str, int] = {}
    unknown = set()
    for partition, before, after in moved.changes:  # those of a sink name topics
        topic = str((partition or {}).get("kafka_topic", ""))
        start, end = (before or {}).get("kafka_offset"), (after or {}).get("kafka_offset")
        if isinstance(start, int) and isinstance(end, int):
            counts[topic] = counts.get(topic, 0) + max(0, end - start)
        else:
            unknown.add(topic)
    return {topic: counts[topic] for topic in topics if topic in counts and topic not in unknown}
