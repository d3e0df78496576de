"""Loads what a SparkSource reads as DataFrames. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_MERGE = "mergeSchema"


def load(spark: SparkSession, config: SourceConfig) -> DataFrame:
    """Return the whole table, query or folder."""
    reader = reader_of(spark, config)
    if config.path:
        with finding(config.path):
            return reader.load(config.path)
    if config.query:
        return reader.option("query", config.query).load()
    if not config.table:
        return reader.load()  # what the options name
    return reader.option("dbtable", config.table).load() if config.is_jdbc else reader.table(config.table)


@contextmanager
def finding(path: str) -> Iterator[None]:
    """Raise ConnectError if Spark says that the path does not exist."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        if "[PATH_NOT_FOUND]" not in str(error):
            raise
        raise ConnectError(
            f"The path {path} does not exist, as the driver sees it. Check 'path', or create the folder, which may be empty for "
            "files that are read as they arrive. Then restart the task."
        ) from error


def check_names(config: SourceConfig) -> None:
    """Raise ConnectError if Spark would read the names of columns instead of their values.

    Spark has no dialect for ``jdbc:mariadb``, so it quotes names as standard SQL does, which MariaDB takes for texts.
    """
    url = {name.lower(): value for name, value in config.options.items()}.get("url", "")
    if config.is_jdbc and url.lower().startswith("jdbc:mariadb:") and "ansi_quotes" not in url.lower():
        raise ConnectError(
            "Spark reads no values from a jdbc:mariadb URL, but the names of the columns. Write jdbc:mysql with the parameter "
            "permitMysqlScheme, or add the parameter sessionVariables=sql_mode=ANSI_QUOTES."
        )


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
