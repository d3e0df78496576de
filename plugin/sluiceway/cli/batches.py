"""Reads from a connector's metrics in which form its tasks handled batches: as columns, or record by record and why."""

from __future__ import annotations

from typing import TypedDict

from sluiceway.cli.output import Rows
from sluiceway.metrics.beans import OWN
from sluiceway.metrics.naming import metric_name


class TaskBatches(TypedDict):
    """The batches of a task since its start: those handled as columns, and by reason those handled record by record."""

    task: int
    columnar: int
    row_form: dict[str, int]


def batches_of(metrics: str, connector: str) -> list[TaskBatches]:
    """Return the batches of a connector's tasks in Prometheus text, ordered by task. Other connectors' metrics are ignored."""
    from prometheus_client.parser import text_string_to_metric_families

    columnar, row_form = (metric_name(OWN, "task-metrics", f"{form}-batches-total") for form in ("columnar", "row-form"))
    found: dict[int, TaskBatches] = {}
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name not in (columnar, row_form) or sample.labels.get("connector") != connector:
                continue
            task = int(sample.labels["task"])
            batches = found.setdefault(task, TaskBatches(task=task, columnar=0, row_form={}))
            if sample.name == columnar:
                batches["columnar"] = int(sample.value)
            else:
                batches["row_form"][sample.labels["reason"]] = int(sample.value)
    return [found[task] for task in sorted(found)]


def batch_rows(batches: list[TaskBatches]) -> Rows:
    """Return a table with a row for each task."""
    rows = [("TASK", "AS COLUMNS", "RECORD BY RECORD")]
    for each in batches:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(each["row_form"].items()))
        rows.append((str(each["task"]), str(each["columnar"]), reasons or "0"))
    return rows
