"""Loads what a SparkSource reads as DataFrames. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluiceway.connectors.spark.source_config import SourceConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_MERGE = "mergeSchema"


def load(spark: SparkSession, config: SourceConfig) -> DataFrame:
    """Return the whole table, query or folder."""
    reader = reader_of(spark, config)
    if config.path:
        return reader.load(config.path)
    if config.query:
        return reader.option("query", config.query).load()
    return reader.option("dbtable", config.table).load() if config.is_jdbc else reader.table(config.table)


def load_files(spark: SparkSession, config: SourceConfig, files: Sequence[str], like: DataFrame | None = None) -> DataFrame:
    """Return the rows of files, with the columns of all of them, or with those of ``like`` if it is given."""
    reader = reader_of(spark, config)
    if like is not None:
        return reader.schema(like.schema).load(list(files))
    if not any(name.lower() == _MERGE.lower() for name in config.options):
        reader = reader.option(_MERGE, "true")  # by default, Spark drops columns that the file it looks at lacks
    return reader.load(list(files))


def reader_of(spark: SparkSession, config: SourceConfig) -> DataFrameReader:
    return spark.read.format(config.format).options(**config.options)
