"""Completes the lineage of a connector's config by what its run and its topics tell. Runs in the Airflow task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.lineage.datasets import Lineage, kafka, lineage
from sluiceway.provider.lineage.descriptions import describe
from sluiceway.provider.lineage.shapes import read_shapes
from sluiceway.provider.progress.run_summary import RunSummary


def observed_lineage(
    config: Mapping[str, str],
    worker: WorkerConfig,
    *,
    sink: bool,
    used_topics: Callable[[], Collection[str]],
    moved: RunSummary | None,
) -> Lineage:
    """Return the data sets of a connector with their fields, rows, and bytes. Raises ConnectError.

    Args:
        used_topics: returns the topics that the connector has used (KIP-558), for a source whose config names none.
        moved: by the run; None while it has not ended.
    """
    bootstrap = worker.bootstrap_servers
    found = lineage(config, bootstrap=bootstrap, sink=sink)
    if not sink and not found.outputs:
        found = found._replace(outputs=tuple(kafka(bootstrap, topic) for topic in sorted(used_topics())))
    topics = [each.name for each in (found.inputs if sink else found.outputs)]
    return describe(found, config, sink=sink, shapes=read_shapes(config, worker, topics), moved=moved)
