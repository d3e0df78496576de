"""Describes the tables of a connector: their folders, partitions and columns. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from sluiceway.connectors.files.commit_log import TableFiles
from sluiceway.connectors.files.hive.columns import Column, columns, table_schema
from sluiceway.connectors.files.partitioners import FieldPartitioner, Partitioner, TimeBasedPartitioner
from sluiceway.data import Schema
from sluiceway.data.avro_schema import FILES, to_avro
from sluiceway.data.logical import DECIMAL

AVRO_SCHEMA = "avro.schema.literal"
_PRECISION = "connect.decimal.precision"
_QL = "org.apache.hadoop.hive.ql.io"
_SAME_SCHEMES = {"s3": "s3a", "s3n": "s3a", "abfs": "abfss"}


class Serde(NamedTuple):
    """Hive's classes for a format."""

    library: str
    input: str
    output: str


SERDES: Mapping[str, Serde] = {
    "ParquetFormat": Serde(
        f"{_QL}.parquet.serde.ParquetHiveSerDe",
        f"{_QL}.parquet.MapredParquetInputFormat",
        f"{_QL}.parquet.MapredParquetOutputFormat",
    ),
    "OrcFormat": Serde(f"{_QL}.orc.OrcSerde", f"{_QL}.orc.OrcInputFormat", f"{_QL}.orc.OrcOutputFormat"),
    "AvroFormat": Serde(
        "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
        f"{_QL}.avro.AvroContainerInputFormat",
        f"{_QL}.avro.AvroContainerOutputFormat",
    ),
}


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The common layout of a connector's tables.

    Attributes:
        format: the class of the files' format.
        partitions: the names of the partition columns, all of type string.
        oldest_schema: whether the oldest version of a schema reads all files, as with FORWARD compatibility; else the newest.
    """

    format: str
    partitions: tuple[str, ...]
    oldest_schema: bool = False

    @property
    def _avro(self) -> bool:
        return self.format == "AvroFormat"

    def files(self, topic: str, schema: Schema | None, folders: Sequence[str]) -> TableFiles:
        """Return what a commit adds to a topic's table. Raises DataError if Hive cannot have a table of this schema."""
        kept = table_schema(schema, self.partitions)
        text = _avro_text(kept) if self._avro else ""
        return TableFiles(topic, tuple(folders), columns(kept, avro=self._avro), text)

    def values(self, folder: str) -> list[str] | None:
        """Return the values of a partition, None for a folder that is none."""
        parts = [part.partition("=") for part in folder.split("/")]
        if [unquote(name).lower() for name, _, _ in parts] != list(self.partitions):
            return None
        return [unquote(value) for _, _, value in parts]

    def replaces(self, schema: str, current: str) -> bool:
        """Return whether an Avro schema replaces the table's current one."""
        version, before = _version(schema), _version(current)
        if before is None or version is None:
            return schema != current
        return version < before if self.oldest_schema else version > before


def partition_columns(partitioner: Partitioner) -> tuple[str, ...]:
    """Return the names of the columns in a partitioner's folders."""
    if isinstance(partitioner, FieldPartitioner):
        return tuple(name.lower() for name in partitioner.fields)
    if isinstance(partitioner, TimeBasedPartitioner):
        return tuple(part.partition("=")[0].lower() for part in partitioner.folder(0).split("/"))
    return ("partition",)


def same_location(first: str, second: str) -> bool:
    """Return whether two URLs are the same folder; one without a host has the metastore's default host."""
    one, other = urlsplit(first), urlsplit(second)
    schemes = {_SAME_SCHEMES.get(each.scheme, each.scheme) for each in (one, other)}
    hosts = {each.netloc for each in (one, other) if each.netloc}
    return len(schemes) == 1 and len(hosts) < 2 and one.path.rstrip("/") == other.path.rstrip("/")


def _avro_text(schema: Schema) -> str:
    return json.dumps(to_avro(_with_precision(schema), FILES), separators=(",", ":"))


def _with_precision(schema: Schema) -> Schema:
    """Return a schema whose decimals have at most the 38 digits that Hive allows; without a number, Avro files say 64."""
    changes: dict[str, object] = {}
    if schema.fields:
        changes["fields"] = [(field.name, _with_precision(field.schema)) for field in schema.fields]
    if schema.value_schema is not None:
        changes["value_schema"] = _with_precision(schema.value_schema)
    if schema.name == DECIMAL and _PRECISION not in schema.parameters:
        changes["parameters"] = {**schema.parameters, _PRECISION: "38"}
    return schema.replace(**changes) if changes else schema


def _version(schema: str) -> int | None:
    try:
        found = json.loads(schema).get("connect.version")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, int) else None


__all__ = ["AVRO_SCHEMA", "SERDES", "Column", "Serde", "TableLayout", "partition_columns", "same_location"]
