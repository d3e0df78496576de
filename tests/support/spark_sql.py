"""Runs Spark SQL over Iceberg, Delta and Hive tables, in a process of its own: other tests' sessions have other jars."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.stack import maven
from support.eventually import LIMIT
from support.rest_catalog import ICEBERG_VERSION

if TYPE_CHECKING:
    from typing_extensions import Self

_JARS = (f"org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:{ICEBERG_VERSION}", "io.delta:delta-spark_2.13:4.0.0")
_EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)
_START_SECONDS = 400
_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # an adaptive plan hides the metrics of its scans
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
}


class SparkSql:
    """A session with these settings. Leaving the context stops it."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, {**_CONF, **conf}), daemon=True)

    def __call__(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement and return its rows."""
        return self._ask(sql)[0]

    def read(self, sql: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Run a query and return its rows and the metrics of its scan, such as the number of files it read."""
        return self._ask(sql)

    def _ask(self, sql: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
        self._pipe.send(sql)
        assert self._pipe.poll(_START_SECONDS), f"Spark does not answer: {sql}"
        found = self._pipe.recv()
        if isinstance(found, str):
            raise AssertionError(f"{sql}: {found}")
        rows, metrics = found
        return rows, metrics

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join(LIMIT)
        self._process.kill()


def lake_conf(folder: Path, uri: str) -> dict[str, str]:
    """Return settings for the catalogs ``spark_catalog`` for Delta and ``ice`` for Iceberg.

    ``folder``: for Spark's own files; ``uri``: the address of Iceberg's REST catalog.
    """
    jars = maven.resolve(_JARS, exclude=("org.apache.spark:*", "org.scala-lang:*"), title="Spark's Iceberg and Delta")
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.extraClassPath": maven.classpath(jars),
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "rest",
        "spark.sql.catalog.ice.uri": uri,
        "spark.sql.catalog.ice.cache-enabled": "false",  # a cached table lacks the sink's commits, so changes conflict
        "spark.sql.warehouse.dir": str(folder),
    }


def hive_conf(folder: Path, uri: str) -> dict[str, str]:
    """Return settings for the tables of a Hive metastore. ``folder``: for Spark's own files."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.sql.warehouse.dir": str(folder),
    }


def _serve(pipe: Connection, conf: Mapping[str, str]) -> None:
    """Answer statements with rows and metrics, or with the text of an error."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    while (sql := pipe.recv()) is not None:
        try:
            frame: Any = session.sql(sql)
            pipe.send(([row.asDict(recursive=True) for row in frame.collect()], _metrics(frame._jdf)))
        except Exception as error:  # noqa: BLE001 (the test reports it)
            pipe.send(str(error))
    session.stop()


def _metrics(frame: Any) -> dict[str, int]:
    """Return the metrics of the first leaf of an executed plan."""
    found = frame.queryExecution().executedPlan().collectLeaves().head().metrics().iterator()
    metrics = {}
    while found.hasNext():
        each = found.next()
        metrics[each._1()] = each._2().value()
    return metrics
