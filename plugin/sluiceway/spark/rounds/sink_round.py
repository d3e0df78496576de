"""A round of a sink: executors read and convert ranges of offsets, and the task writes them as one DataFrame."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sluiceway.api.data_frames import DataFrameSinkTask
from sluiceway.errors import ConnectError
from sluiceway.runtime.task import TaskSpec
from sluiceway.spark.rounds.ranges import OffsetRange
from sluiceway.spark.rounds.reading import CHUNK, DecodeChunks, ReadRanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The part of a range that was read: ``records`` up to ``end`` (exclusive). ``failure`` is the error that ended it."""

    range: OffsetRange
    end: int
    records: int
    failure: str | None

    def check(self) -> None:
        """Raise ConnectError if a record could not be read."""
        if self.failure is not None:
            raise ConnectError(self.failure)


class SinkRound:
    """One round. ``writing`` is True once the task's ``write`` has been called."""

    def __init__(self, task: DataFrameSinkTask, spec: TaskSpec, ranges: Sequence[OffsetRange]) -> None:
        self.ranges = tuple(ranges)
        self.writing = False
        self._task = task
        self._spec = spec

    def run(self) -> Sequence[RangeResult]:
        """Read, convert and write the ranges; return what was read of each. The caller then commits the offsets."""
        spark = self._task.spark
        task = self._task
        read = ReadRanges(self._spec, self.ranges, task.skip_nulls, task.flush_bytes, task.replace_nulls)
        numbers = spark.range(0, len(self.ranges), 1, len(self.ranges))
        chunks = numbers.mapInArrow(read, CHUNK).persist()
        try:
            found = chunks.select("range", "end", "records", "failure", "schema").collect()
            schemas = {bytes(row["schema"]) for row in found if row["schema"] is not None}
            if schemas:
                frame = self._frame(chunks, _common_schema(schemas))
                self.writing = True
                self._task.write(frame)
        finally:
            chunks.unpersist()
        ends = {row["range"]: row for row in found if row["end"] is not None}
        return [
            RangeResult(each, ends[number]["end"], ends[number]["records"], ends[number]["failure"])
            for number, each in enumerate(self.ranges)
        ]

    def _frame(self, chunks: DataFrame, schema: pa.Schema) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        rows = chunks.where("data is not null").select("data")
        return rows.mapInArrow(DecodeChunks(schema.serialize().to_pybytes()), from_arrow_schema(schema))


def _common_schema(serialized: Iterable[bytes]) -> pa.Schema:
    """Return the schema with the columns of all versions of the records' schemas. Raises ConnectError if they conflict."""
    schemas = [pa.ipc.read_schema(pa.py_buffer(each)) for each in sorted(serialized)]
    try:
        merged = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise ConnectError(
            f"The records of a round have schemas that cannot be written as one table: {error}. Convert the field with a "
            "transform such as Cast, or let a predicate route such records elsewhere."
        ) from error
    # A column that some of the records lack is null in them.
    everywhere = set.intersection(*({field.name for field in each} for each in schemas))
    return pa.schema([field if field.name in everywhere else field.with_nullable(True) for field in merged])
