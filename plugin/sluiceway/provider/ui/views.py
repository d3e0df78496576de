"""Builds the JSON that the page shows. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sluiceway.config.connector import CONFIG_TASK, CONNECTOR_CLASS, MOVING
from sluiceway.config.masking import masked
from sluiceway.herder import ConnectorStatus
from sluiceway.herder.discretion import discreet_trace
from sluiceway.herder.moved import moved_to
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.ui.dag_facts import DagFacts, shown_state
from sluiceway.provider.ui.series import Series
from sluiceway.storage.model import ConnectorEntry, Status

if TYPE_CHECKING:
    from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter

_ERROR_LENGTH = 300
_TRACE_LENGTH = 20_000
_PARTITIONS = 500
_HEADERS = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "task": "task.id",
    "stage": "stage",
    "class": "class.name",
    "exception": "exception.class.name",
    "message": "exception.message",
    "trace": "exception.stacktrace",
}


def described(entry: ConnectorEntry, status: ConnectorStatus, dag: str | None) -> dict[str, Any]:
    """Return the part of a connector's row that its records on the internal topics determine."""
    return {
        "name": entry.name,
        "type": status.type,
        "class": (entry.config or {}).get(CONNECTOR_CLASS, ""),
        "dag": dag,
        "config_task": (entry.config or {}).get(CONFIG_TASK),
        "moved_to": moved_to(entry),
        "moving": bool((entry.config or {}).get(MOVING)),
        "state": status.connector.state.value,
        "target": entry.target_state.value,
        "tasks": dict(Counter(task.state.value for task in status.tasks.values())),
        "error": next((_first_line(trace) for trace in _traces(status)), None),
        "discreet_error": next((_first_line(discreet_trace(trace)) for trace in _traces(status)), None),
    }


def row(part: Mapping[str, Any], progress: ConnectorProgress, rate: float | None, *, may_edit: bool) -> dict[str, Any]:
    """Return a connector's row in the list, given the part of ``described``; null stands for a value that is not known.

    Without the right to edit it, the error has no message, which may quote a record.
    """
    shown = {key: value for key, value in part.items() if key != "discreet_error"}
    return {
        **shown,
        "error": part["error"] if may_edit else part["discreet_error"],
        "rate": None if rate is None else round(rate, 2),
        "lag": progress.lag,
        "dead_letters": progress.dead_letters,
        "may_edit": may_edit,
    }


def node(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a connector in the graph, given the part of ``described``."""
    return {key: part[key] for key in ("name", "type", "class", "dag", "state", "tasks")}


def scheduled(part: Mapping[str, Any], dag: DagFacts | None, now: float) -> dict[str, Any]:
    """Return what Airflow adds to a connector's row: the state to show, and its DAG, null if Airflow does not know it."""
    return {"shown": shown_state(part["state"], part["tasks"], dag, now), "schedule": None if dag is None else dag.to_json()}


def shown_drift(found: Mapping[str, tuple[str | None, str | None]], passwords: Container[str]) -> list[dict[str, Any]]:
    """Return the differences between the config that runs and that in the DAG's file, without secrets."""
    return [
        {
            "key": key,
            "before": None if here is None else masked({key: here}, passwords)[key],
            "after": None if there is None else masked({key: there}, passwords)[key],
        }
        for key, (here, there) in found.items()
    ]


def history(series: Series | None, now: float) -> dict[str, Any]:
    """Return the last hour of a connector: one number for each minute, the newest last."""
    if series is None:
        return {"rates": [], "lags": []}
    rates = [None if rate is None else round(rate, 2) for rate in series.rates(now)]
    return {"rates": rates, "lags": series.lags(now)}


def details(
    entry: ConnectorEntry, status: ConnectorStatus, progress: ConnectorProgress, topics: Iterable[str], passwords: Container[str]
) -> dict[str, Any]:
    """Return what the page of one connector shows beside its row.

    Args:
        topics: the connector's active topics.
        passwords: config keys of type password, to be masked.
    """
    known = progress.partitions[:_PARTITIONS]
    return {
        "worker_id": status.connector.worker_id,
        "version": status.connector.version,
        "trace": _shortened(status.connector.trace),
        "tasks_in_full": [
            {"id": number, "state": task.state.value, "worker_id": task.worker_id, "trace": _shortened(task.trace)}
            for number, task in sorted(status.tasks.items())
        ],
        "topics": list(topics),
        "partitions": [{**each.partition._asdict(), "offset": each.offset, "end": each.end, "lag": each.lag} for each in known],
        "more_partitions": len(progress.partitions) - len(known),
        "config": dict(sorted(masked(entry.config or {}, passwords).items())),
    }


def dead_letters(
    topic: str | None, count: int | None, newest: Iterable[ConsumedDeadLetter], *, may_edit: bool = False
) -> dict[str, Any]:
    """Return DLQ records without their keys and values: seeing a connector does not include seeing its data.

    Nor the messages of errors, which may quote it: only users who may edit the connector see these.
    """
    return {
        "topic": topic,
        "count": count,
        "records": [
            {
                "at": letter.timestamp,
                "position": f"{letter.partition}:{letter.offset}",
                "replayed": letter.replayed,
                **_context(letter, may_edit=may_edit),
            }
            for letter in newest
        ],
    }


def _context(letter: ConsumedDeadLetter, *, may_edit: bool) -> dict[str, str | None]:
    found = {name: letter.context(header) for name, header in _HEADERS.items()}
    if not may_edit:
        trace = found["trace"]
        found |= {"message": None, "trace": None if trace is None else discreet_trace(trace)}
    return {name: _shortened(text) for name, text in found.items()}


def _traces(status: ConnectorStatus) -> Iterable[str]:
    statuses: list[Status] = [status.connector, *(task for _, task in sorted(status.tasks.items()))]
    return (each.trace for each in statuses if each.trace)


def _first_line(trace: str) -> str:
    """Return the line of a trace that names the error: after the last stack frame in Python, the first line in Java."""
    lines = [line for line in trace.splitlines() if line.strip()]
    if not lines:
        return ""
    summary = lines[0]
    if summary.startswith("Traceback"):
        after_frames = [line for before, line in pairwise(lines) if before[0].isspace() and not line[0].isspace()]
        summary = after_frames[-1] if after_frames else lines[-1]
    return summary if len(summary) <= _ERROR_LENGTH else f"{summary[: _ERROR_LENGTH - 1]}…"


def _shortened(trace: str | None) -> str | None:
    if trace is None or len(trace) <= _TRACE_LENGTH:
        return trace
    half = _TRACE_LENGTH // 2
    return f"{trace[:half]}\n… {len(trace) - _TRACE_LENGTH} characters left out …\n{trace[-half:]}"
