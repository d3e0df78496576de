"""The JSON that the page shows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.masking import masked
from sluiceway.herder import ConnectorStatus
from sluiceway.provider.progress.measures import Measure
from sluiceway.provider.ui.series import Series
from sluiceway.storage.model import ConnectorEntry, Status

if TYPE_CHECKING:
    from sluiceway.kafka.dead_letter_headers import DeadLetterRecord

_ERROR_LENGTH = 300
_TRACE_LENGTH = 20_000
_PARTITIONS = 500
_LETTER = {
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


def row(
    entry: ConnectorEntry, status: ConnectorStatus, measure: Measure, series: Series | None, *, dag: str | None, may_edit: bool
) -> dict[str, Any]:
    """Return what the list shows of a connector; null is what nobody can tell."""
    rate = None if series is None else series.rate()
    return {
        "name": entry.name,
        "type": status.type,
        "class": (entry.config or {}).get(CONNECTOR_CLASS, ""),
        "dag": dag,
        "state": status.connector.state.value,
        "target": entry.target_state.value,
        "tasks": dict(Counter(task.state.value for task in status.tasks.values())),
        "error": next((_first_line(trace) for trace in _traces(status)), None),
        "rate": None if rate is None else round(rate, 2),
        "lag": measure.lag,
        "dead_letters": measure.dead_letters,
        "may_edit": may_edit,
    }


def history(series: Series | None, now: float) -> dict[str, Any]:
    """Return a connector's last hour, a number for each minute, the newest last."""
    if series is None:
        return {"rates": [], "lags": []}
    rates = [None if rate is None else round(rate, 2) for rate in series.rates(now)]
    return {"rates": rates, "lags": series.lags(now)}


def details(
    entry: ConnectorEntry, status: ConnectorStatus, measure: Measure, topics: Iterable[str], passwords: Container[str]
) -> dict[str, Any]:
    """Return what the page of one connector shows beside its row. ``passwords`` are config keys known to hold secrets."""
    known = measure.partitions[:_PARTITIONS]
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
        "more_partitions": len(measure.partitions) - len(known),
        "config": dict(sorted(masked(entry.config or {}, passwords).items())),
    }


def letters(topic: str | None, count: int | None, newest: Iterable[DeadLetterRecord]) -> dict[str, Any]:
    """Return dead letters without their keys and values: whoever may see a connector need not see its records."""
    return {
        "topic": topic,
        "count": count,
        "letters": [
            {
                "at": letter.timestamp,
                "place": f"{letter.partition}:{letter.offset}",
                "replayed": letter.replayed,
                **{name: _shortened(letter.context(header)) for name, header in _LETTER.items()},
            }
            for letter in newest
        ],
    }


def _traces(status: ConnectorStatus) -> Iterable[str]:
    statuses: list[Status] = [status.connector, *(task for _, task in sorted(status.tasks.items()))]
    return (each.trace for each in statuses if each.trace)


def _first_line(trace: str) -> str:
    """Return what says most: a Python trace names its error in the line after the last stack frame, a Java one in its first."""
    lines = [line for line in trace.splitlines() if line.strip()]
    if not lines:
        return ""
    said = lines[0]
    if said.startswith("Traceback"):
        after_frames = [line for before, line in pairwise(lines) if before[0].isspace() and not line[0].isspace()]
        said = after_frames[-1] if after_frames else lines[-1]
    return said if len(said) <= _ERROR_LENGTH else f"{said[: _ERROR_LENGTH - 1]}…"


def _shortened(trace: str | None) -> str | None:
    if trace is None or len(trace) <= _TRACE_LENGTH:
        return trace
    half = _TRACE_LENGTH // 2
    return f"{trace[:half]}\n… {len(trace) - _TRACE_LENGTH} characters left out …\n{trace[-half:]}"
