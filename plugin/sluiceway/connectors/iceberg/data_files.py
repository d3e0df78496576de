"""Writes and reads an Iceberg table's Parquet files.

PyIceberg's own projection turns a null list of structs into an empty list, and a null map to structs into an empty map, when it
writes and when it reads. So rows are cast to the table's types by Arrow here; PyIceberg computes partitions and statistics.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    ArrowScan,
    ParquetFormatModel,
    _determine_partitions,
    bin_pack_arrow_table,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionKey
    from pyiceberg.table import FileScanTask, Table

_FILE_BYTES = 512 * 1024 * 1024


def write(table: Table, rows: pa.Table, stem: str, properties: Mapping[str, str]) -> Iterator[DataFile]:
    """Write rows to files whose names start with ``stem``, by partition and by size; ``properties`` override the table's."""
    metadata = table.metadata
    spec, found = metadata.spec(), {**metadata.properties, **properties}
    parts: list[tuple[PartitionKey | None, pa.Table]] = [(None, rows)]
    if not spec.is_unpartitioned():
        by_partition = _determine_partitions(spec=spec, schema=metadata.schema(), arrow_table=rows)
        parts = [(each.partition_key, each.arrow_table_partition) for each in by_partition]
    size = int(found.get("write.target-file-size-bytes", _FILE_BYTES))
    for key, part in parts:
        for batches in bin_pack_arrow_table(part, size) if len(part) else ():
            yield _written(table, pa.Table.from_batches(batches), key, f"{stem}-{uuid.uuid4().hex}.parquet", found)


def _written(table: Table, rows: pa.Table, key: PartitionKey | None, name: str, properties: Mapping[str, str]) -> DataFile:
    schema = table.schema()  # readers find columns by field ids, so names need not be sanitized
    arrow = schema.as_arrow()
    location = load_location_provider(table.location(), table.properties).new_data_location(name, key)
    output = table.io.new_output(location)
    writer = ParquetFormatModel().create_writer(output, schema, dict(properties))
    with writer:
        writer.write(rows.cast(arrow))
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=key.partition if key is not None else Record(),
        file_size_in_bytes=len(output),
        sort_order_id=None,
        spec_id=table.metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **writer.result().to_serialized_dict(),
    )


def read(table: Table, task: FileScanTask) -> pa.Table:
    """Return the rows of a data file with the table's columns."""
    arrow = table.schema().as_arrow()
    if not task.delete_files:
        with table.io.new_input(task.file.file_path).open() as source:
            rows = pq.ParquetFile(source).read()  # type: ignore[arg-type]
        if _has_names_of(table, rows.schema):
            count = len(rows)
            names = set(rows.column_names)
            columns = [rows.column(each.name) if each.name in names else pa.nulls(count, each.type) for each in arrow]
            return pa.table(columns, names=arrow.names).cast(arrow)
    return ArrowScan(table.metadata, table.io, projected_schema=table.schema(), row_filter=AlwaysTrue()).to_table(tasks=[task])


def _has_names_of(table: Table, file: pa.Schema) -> bool:
    """Return whether the columns of a file have field ids, and the names that the table has for these."""
    try:
        schema = pyarrow_to_schema(file)
    except ValueError:  # no ids: the file was added by someone else
        return False
    names = table.schema()._lazy_id_to_name
    return all(names.get(number) == name for number, name in schema._lazy_id_to_name.items())
