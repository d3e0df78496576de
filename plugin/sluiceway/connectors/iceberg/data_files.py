"""Writes and reads an Iceberg table's Parquet files.

PyIceberg's own projection turns a null list of structs into an empty list, and a null map to structs into an empty map, when it
writes and when it reads. So rows are cast to the table's types by Arrow here; PyIceberg computes partitions and statistics.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    ArrowScan,
    ParquetFormatModel,
    _determine_partitions,
    _get_field_from_arrow_table,
    bin_pack_arrow_table,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record

from sluiceway.connectors.path_elements import shortened
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionKey
    from pyiceberg.table import FileScanTask, Table

_FILE_BYTES = 512 * 1024 * 1024


def check_partitions(table: Table, rows: pa.Table) -> None:
    """Raise DataError for NaN in a column whose values are partitions: PyIceberg finds the rows of a partition by equality."""
    schema = table.schema()
    for field in table.spec().fields:
        name = str(schema.find_column_name(field.source_id))
        column = _get_field_from_arrow_table(rows, name)
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            raise DataError(f"NaN of field {name} cannot be written: the table is partitioned by it. Partition by another field.")


def write(table: Table, rows: pa.Table, stem: str, properties: Mapping[str, str]) -> Iterator[DataFile]:
    """Write rows to files whose names start with ``stem``, by partition and by size; ``properties`` override the table's."""
    metadata = table.metadata
    spec, found = metadata.spec(), {**metadata.properties, **properties}
    parts: list[tuple[PartitionKey | None, pa.Table]] = [(None, rows)]
    if not spec.is_unpartitioned():
        by_partition = _determine_partitions(spec=spec, schema=metadata.schema(), arrow_table=rows)
        parts = [(each.partition_key, each.arrow_table_partition) for each in by_partition]
        if (found_rows := sum(len(part) for _, part in parts)) != len(rows):
            raise ConnectError(f"PyIceberg has found partitions for {found_rows} of {len(rows)} rows. This is a defect.")
    size = int(found.get("write.target-file-size-bytes", _FILE_BYTES))
    for key, part in parts:
        for batches in bin_pack_arrow_table(part, size) if len(part) else ():
            yield _written(table, pa.Table.from_batches(batches), key, f"{stem}-{uuid.uuid4().hex}.parquet", found)


def _written(table: Table, rows: pa.Table, key: PartitionKey | None, name: str, properties: Mapping[str, str]) -> DataFile:
    schema = table.schema()  # readers find columns by field ids, so names need not be sanitized
    arrow = schema.as_arrow()
    location = load_location_provider(table.location(), table.properties).new_data_location(name, key)
    location = "/".join(map(shortened, location.split("/")))
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
