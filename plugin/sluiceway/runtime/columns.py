"""Decides when a task's batches are handled as columns instead of record by record, and counts them. Does not load Arrow."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from typing import Protocol

from sluiceway.api import ColumnBatch, Refusal, RowFormReason
from sluiceway.data import Schema
from sluiceway.storage.model import TaskId

log = logging.getLogger(__name__)

FEWEST_RECORDS = 200
"""Smaller batches are handled record by record, because each batch of columns has a fixed cost."""

FEW_RECORDS = Refusal(RowFormReason.FEW_RECORDS)
NO_ARROW = Refusal(RowFormReason.TASK, "PyArrow is not installed (the extra columns)")

_SINGLE = Refusal(RowFormReason.TASK, "the task returns single records")
_LONGEST_PAUSE = 256
_MOST_LINES = 1000  # in the log of a task; a connector that keeps making new schemas must not fill it


def columns_available() -> bool:
    """Return True if Arrow is installed (the extra ``columns``)."""
    return importlib.util.find_spec("pyarrow") is not None


def has_columnar_form(kind: type, columnar: str, row: str) -> bool:
    """Return True if a class's method ``columnar`` handles what ``row`` does: a subclass may override ``row`` alone."""
    for each in kind.__mro__:
        if columnar in vars(each):
            return True
        if row in vars(each):
            return False
    return False


class BatchCounts(Protocol):
    """Counts the batches of one task."""

    def columnar_batch(self) -> None: ...

    def row_form_batch(self, reason: str) -> None: ...


class BatchForms:
    """Decides in which form to handle the batches of one task, counts them, and logs why some are not columns. Not thread-safe.

    ``always`` is why no batch can be columns, None if that depends on the batch. Large batches are tried as columns fewer and
    fewer while every attempt fails, and all of them after a success.
    """

    def __init__(self, task: TaskId, counts: BatchCounts, always: Refusal | None = None) -> None:
        self.always = always
        self._task = task
        self._counts = counts
        self._pause = 0
        self._left = 0
        self._last = always or _SINGLE
        self._logged: set[tuple[object, ...]] = set()

    def next(self) -> bool:
        """Count a large batch; return True to try it as columns."""
        if self._left:
            self._left -= 1
            return False
        return self.always is None

    def columnar(self) -> None:
        """Count a batch that was handled as columns."""
        self._pause, self._last = 0, _SINGLE
        self._counts.columnar_batch()

    def failed(self) -> None:
        """Record that no part of a batch could be handled as columns."""
        self._pause = min(max(1, self._pause * 2), _LONGEST_PAUSE)
        self._left = self._pause

    def rows(self, refusal: Refusal | None, topic: str = "", batch: ColumnBatch | None = None) -> None:
        """Count a batch that is handled record by record, of the schemas of ``batch`` if they are known.

        Without a refusal it was not tried as columns: it counts for the reason of the last attempt that failed. Logs each
        refusal once for each topic, schema, reason, and field.
        """
        self._counts.row_form_batch((refusal or self._last).reason.value)
        if refusal is None or refusal is FEW_RECORDS:
            return
        self._last = refusal
        schemas = (None, None) if batch is None else (batch.key.schema, batch.value.schema)
        line = topic, schemas, refusal.schema, refusal.reason, refusal.field
        if line in self._logged or len(self._logged) >= _MOST_LINES:
            return
        self._logged.add(line)
        log.info(
            "Connector '%s', task %d: records of topic %s are handled one by one and not as columns (%s)%s. Further such batches "
            "are only counted, in row-form-batches-total",
            self._task.connector,
            self._task.task,
            topic,
            ", ".join((f"reason {refusal.reason.value}", *_details(refusal, schemas))),
            f": {refusal.text}" if refusal.text else "",
        )


def _details(refusal: Refusal, schemas: tuple[Schema | None, Schema | None]) -> Iterator[str]:
    if refusal.field:
        yield f"field {refusal.field}"
    for kind, schema in zip(("key", "value"), schemas, strict=True):
        if schema is not None:
            yield f"{kind} {schema}"
    if refusal.schema is not None:
        yield str(refusal.schema)
