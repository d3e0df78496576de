"""Reads local Parquet files by PyArrow instead of Spark, which spends more than half of a row's processor time in its JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from sluiceway.connectors.spark.arrow_schema import arrow_schema
from sluiceway.connectors.spark.ranges import ValueRange
from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_BATCH_ROWS = 10_000  # as spark.sql.execution.arrow.maxRecordsPerBatch
_SAME_IN_BOTH = frozenset(
    {
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "decimal",
        "date",
        "timestamp",
        "timestamp_ntz",
    }
)


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """A ``SplitReader`` of Parquet files. ``schema`` has the columns of the DataFrame that it replaces."""

    files: tuple[str, ...]
    schema: pa.Schema
    range: ValueRange | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            yield from self._rows(file)

    def _rows(self, file: str) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.dataset

        try:
            data: Any = pyarrow.dataset.dataset(_path(file), format="parquet")
            names = _names_in(data.schema.names, self.schema.names, file)
            yield from data.to_batches(
                columns={field.name: _column(names[field.name], field.type) for field in self.schema},
                filter=None if self.range is None else self._within(names, self.range),
                batch_size=_BATCH_ROWS,
                batch_readahead=2,
                fragment_readahead=1,
            )
        except (pa.ArrowException, OSError) as error:
            raise ConnectError(f"Cannot read {file}: {error}") from error

    def _within(self, names: dict[str, str | None], range_: ValueRange) -> Any:
        import pyarrow as pa

        kind = self.schema.field(range_.column).type
        column = _column(names[range_.column], kind)
        low, high = (pa.scalar(value, pa.int64()).cast(kind) for value in (range_.low, range_.high))
        return (column > low) & (column <= high)


def parquet_reader(
    frame: DataFrame, config: SourceConfig, files: Sequence[str], range_: ValueRange | None = None
) -> ParquetReader | None:
    """Return a reader of the rows of ``frame``, which are those of ``files``; None if PyArrow may read other rows than Spark.

    Options are Spark's, folders such as ``day=1`` hold a column's values, and other places than local paths need logins that
    Spark's configuration has.
    """
    if config.format.lower() != "parquet" or config.options or not files:
        return None
    folder = _path(config.path)
    if any(urlsplit(file).scheme != "file" or "=" in _path(file).removeprefix(folder) for file in files):
        return None
    kinds = {column.name: column.dataType.typeName().partition("(")[0] for column in frame.schema.fields}
    if not set(kinds.values()) <= _SAME_IN_BOTH or len({name.lower() for name in kinds}) < len(frame.columns):
        return None
    return ParquetReader(tuple(files), arrow_schema(frame.schema), range_)


def _path(file: str) -> str:
    return unquote(urlsplit(file).path)


def _names_in(there: Sequence[str], wanted: Sequence[str], file: str) -> dict[str, str | None]:
    """Return the name that each column has in a file, None without it. As in Spark, case makes no difference."""
    found: dict[str, str] = {}
    for name in there:
        if found.setdefault(name.lower(), name) != name:
            raise ConnectError(f"{file} has the columns {found[name.lower()]} and {name}, which Spark takes for one.")
    return {name: found.get(name.lower()) for name in wanted}


def _column(name: str | None, kind: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.scalar(pa.scalar(None, kind)) if name is None else pc.field(name).cast(kind, safe=False)
