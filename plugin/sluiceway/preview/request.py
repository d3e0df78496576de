"""Defines what the process of a preview, or of a call, is asked for, and what it tells. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.offset_edits import OffsetEdit

MOST_RECORDS = 100
MOST_SECONDS = 60.0

Event = dict[str, Any]
"""A JSON object with its kind in ``event``: ``ready``, ``phase``, ``record``, ``target``, ``warning``, ``invalid`` or ``end``."""

Tell = Callable[[Event], None]
"""Sends an event to the process that asked for the preview."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a preview: ``records`` records, in ``seconds`` seconds from the start of the connector's code."""

    records: int = 10
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """One preview. Picklable, because it is sent to a process.

    ``config`` is the connector's, with references resolved: it contains secrets. ``offsets`` are the stored ones from which the
    connector would continue; None for the beginning. ``isolated``: the process reaches nothing of the server that starts it; it
    resolves the references, and validates the config first with what needs a connection.
    """

    config: Mapping[str, str] = field(repr=False)
    worker: WorkerConfig = field(repr=False)
    offsets: Sequence[OffsetEdit] | None
    limits: Limits
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function with a connector's config and the worker's, in an isolated process. Picklable.

    ``config`` has the references as they are: the function resolves them. The result is JSON.
    """

    function: Callable[..., Any]
    config: Mapping[str, str] = field(repr=False)
    worker: WorkerConfig = field(repr=False)
    arguments: Sequence[Any]
    limits: Limits
    isolated: ClassVar[bool] = True
