"""Reads the rows of an Iceberg data file in batches, always in the same order. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.expressions.visitors import bind, extract_field_ids
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _read_all_delete_files,
    expression_to_pyarrow,
    pyarrow_to_schema,
    schema_to_pyarrow,
)
from pyiceberg.manifest import FileFormat

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table


class FileReader:
    """Reads files with the columns of a schema, and the rows that meet a condition.

    A Parquet file whose columns are named as in the schema is read by Arrow itself: PyIceberg's projection turns a null list of
    structs into an empty one. PyIceberg reads files with row-level deletes, renamed columns, or without field ids.
    """

    def __init__(self, table: Table, schema: Schema, row_filter: BooleanExpression) -> None:
        self._table = table
        self._schema = schema
        self._filter = row_filter
        self._arrow = schema_to_pyarrow(schema, include_field_ids=False)

    def read(self, task: FileScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file without those that later files delete."""
        if not task.delete_files and task.file.file_format is FileFormat.PARQUET:
            with self._table.io.new_input(task.file.file_path).open() as source:
                fragment = ds.ParquetFileFormat(pre_buffer=True).make_fragment(source)  # type: ignore[arg-type]
                columns = self._columns(fragment.physical_schema)
                if columns is not None:
                    yield from self._batches(fragment, columns)
                    return
        yield from self._projected(task)

    def _batches(self, fragment: ds.Fragment, columns: list[str]) -> Iterator[pa.RecordBatch]:
        condition = None
        if not isinstance(self._filter, AlwaysTrue):
            bound = bind(self._table.schema(), self._filter, case_sensitive=True)
            condition = expression_to_pyarrow(bound, self._table.schema())
        scanner = ds.Scanner.from_fragment(fragment, schema=fragment.physical_schema, columns=columns, filter=condition)
        for batch in scanner.to_batches():
            if len(batch):
                arrays = [
                    batch.column(field.name) if field.name in columns else pa.nulls(len(batch), field.type)
                    for field in self._arrow
                ]
                rows = pa.RecordBatch.from_arrays(arrays, names=self._arrow.names)
                yield rows.cast(self._arrow)

    def _projected(self, task: FileScanTask) -> Iterator[pa.RecordBatch]:
        scan = ArrowScan(self._table.metadata, self._table.io, projected_schema=self._schema, row_filter=self._filter)
        deletes = _read_all_delete_files(self._table.io, [task])
        for batch in scan._record_batches_from_scan_tasks_and_deletes([task], deletes):
            yield batch.select(self._arrow.names).cast(self._arrow)

    def _columns(self, file: pa.Schema) -> list[str] | None:
        """Return the columns to read; None if the file does not name them as the table does."""
        try:
            found = pyarrow_to_schema(file)
        except ValueError:  # no ids: someone else added the file
            return None
        names = {**self._table.schema()._lazy_id_to_name, **self._schema._lazy_id_to_name}
        in_file = found._lazy_id_to_name
        if any(names.get(number, name) != name for number, name in in_file.items()):
            return None
        wanted = self._table.schema()
        if not isinstance(self._filter, AlwaysTrue):
            ids = extract_field_ids(bind(wanted, self._filter, case_sensitive=True))
            if not ids <= in_file.keys():
                return None
        by_id = {field.field_id: field.name for field in found.fields}
        return [field.name for field in self._schema.fields if by_id.get(field.field_id) == field.name]
