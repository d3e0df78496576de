"""Defines the result of transforming a batch, and the error of a record that could not be transformed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.runtime.interrupts import Interrupted

R = TypeVar("R", SourceRecord, SinkRecord)


class TransformationError(Exception):
    """A stage of a chain could not transform a record. ``__cause__`` is what its transform or predicate raised."""

    def __init__(self, stage: int, alias: str, text: str) -> None:
        super().__init__(stage, alias, text)
        self.stage = stage
        self.alias = alias
        self.text = text

    def __str__(self) -> str:
        return f"transformation {self.alias}: {self.text}"


@dataclass(frozen=True)
class TransformedBatch(Generic[R]):
    """The result of transforming a batch.

    ``origins`` has the index of each record's input, or is None if there is exactly one record for each input.
    ``failure`` is what ``on_failure`` raised, Interrupted included. The records are then the results of the first
    ``taken`` inputs.
    """

    records: Sequence[R]
    taken: int
    origins: Sequence[int] | None = None
    failure: Exception | Interrupted | None = None
