"""Completes the lineage of a connector's config by what its run and its topics tell. Runs in the Airflow task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.lineage.datasets import Lineage, kafka, lineage
from sluiceway.provider.lineage.descriptions import describe
from sluiceway.provider.lineage.shapes import read_shapes
from sluiceway.provider.progress.run_summary import RunSummary


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
