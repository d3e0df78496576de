"""The versions beside which Sluiceway is tried: the cells of ``make test-matrix``, and the rows of docs/reference/versions.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

RESULTS = Path(__file__).with_name("matrix_results.json")
PINS = Path(__file__).with_name("airflow-pins")

STANDALONE = ("imports", "file", "jdbc", "parquet", "spark", "cdc")
ALL = (*STANDALONE, "airflow")


@dataclass(frozen=True)
class Cell:
    """One environment, built from the wheel with pip alone.

    Attributes:
        name: names it on the command line and in the table.
        python: the minor version.
        pins: requirements beside the wheel; what they leave open is the newest version, or with ``floors`` the oldest.
        extras: extras of the wheel.
        beside: the minor version of Airflow whose own constraints hold (``tools/airflow-pins``).
        floors: take the oldest version of each direct requirement that says one.
        resolves: install nothing; resolve each extra beside the constraints instead.
        checks: those of ``tools/version_checks.py``; names of extras with ``resolves``.
        refused: parts of the sentences with which checks are refused, by check; "install" for the installation itself.
    """

    name: str
    python: str
    pins: tuple[str, ...] = ()
    extras: tuple[str, ...] = ("airflow", "dataframes", "files", "jdbc")
    beside: str = ""
    floors: bool = False
    resolves: bool = False
    checks: tuple[str, ...] = ALL
    refused: Mapping[str, str] = field(default_factory=dict)


_NO_AIRFLOW = ("standalone", "dataframes", "files", "jdbc")
_NO_JDBC = ("airflow", "dataframes", "files")  # Airflow 3.0 needs SQLAlchemy 1.4
_WITHOUT_JDBC = ("imports", "file", "parquet", "spark", "airflow")

_EXTRAS = (
    *("airflow", "aws", "azure", "columns", "dataframes", "delta", "dlt", "files", "gcs", "hbase", "hdfs", "hive", "iceberg"),
    *("jdbc", "kubernetes", "mqtt", "nats", "otel", "otlp", "package", "rabbitmq", "redis", "s3", "schema-registry", "sftp"),
    "singer",
)
# Airflow's constraints for Python 3.10 to 3.12 hold old versions for Apache Beam and Flask-AppBuilder. Install these extras
# afterwards without the constraints, as Airflow's documentation says.
_OLD_ARROW = dict.fromkeys(("columns", "dataframes", "delta", "files", "iceberg"), "pyarrow")
_OLD_ALCHEMY = {"jdbc": "sqlalchemy", "iceberg": "sqlalchemy"}


def _constraints(minor: str, version: str, python: str, refused: Mapping[str, str] = MappingProxyType({})) -> Cell:
    pins = (f"apache-airflow=={version}",)
    return Cell(f"constraints-{minor}", python, pins, _EXTRAS, beside=minor, resolves=True, checks=_EXTRAS, refused=refused)


CELLS = (
    Cell("newest-3.10", "3.10"),
    Cell("newest-3.11", "3.11"),
    Cell("newest-3.12", "3.12"),
    Cell("newest-3.13", "3.13"),
    Cell("newest-3.14", "3.14"),
    Cell("floors-3.10", "3.10", extras=_NO_JDBC, beside="3.0", floors=True, checks=_WITHOUT_JDBC),
    Cell("floors-3.12", "3.12", extras=_NO_AIRFLOW, floors=True, checks=STANDALONE),
    Cell("standalone-3.13", "3.13", extras=_NO_AIRFLOW, checks=STANDALONE),
    Cell("spark-3.5", "3.11", ("pyspark==3.5.*", "pandas<3"), extras=_NO_AIRFLOW, checks=STANDALONE),
    Cell("spark-4.0", "3.12", ("pyspark==4.0.*",), extras=_NO_AIRFLOW, checks=STANDALONE),
    Cell("spark-4.1", "3.13", ("pyspark==4.1.*",), extras=_NO_AIRFLOW, checks=STANDALONE),
    Cell("spark-4.2", "3.14", ("pyspark==4.2.*",), extras=_NO_AIRFLOW, checks=STANDALONE),
    Cell("airflow-3.0", "3.12", ("apache-airflow==3.0.6", "pyspark==4.0.*"), _NO_JDBC, "3.0", checks=_WITHOUT_JDBC),
    Cell("airflow-3.1", "3.12", ("apache-airflow==3.1.*", "pyspark==4.1.*"), beside="3.1"),
    Cell("airflow-3.2", "3.13", ("apache-airflow==3.2.*", "pyspark==4.1.*"), beside="3.2"),
    Cell("kafka-client-floor", "3.11", ("confluent-kafka==2.10.0",), extras=_NO_AIRFLOW, checks=STANDALONE),
    _constraints("3.0", "3.0.6", "3.12", {**_OLD_ARROW, **_OLD_ALCHEMY, "hive": "pyiceberg"}),
    _constraints("3.1", "3.1.*", "3.12", {**_OLD_ARROW, **_OLD_ALCHEMY}),
    _constraints("3.2", "3.2.*", "3.13"),
    _constraints("3.3", "3.3.*", "3.12"),
    Cell("spark-3.5-new-python", "3.13", ("pyspark==3.5.*",), extras=_NO_AIRFLOW, refused={"install": "pyspark"}),
    Cell("airflow-2.11", "3.12", ("apache-airflow==2.11.*",), refused={"install": "apache-airflow>=3.0.6"}),
    Cell("python-3.9", "3.9", extras=_NO_AIRFLOW, refused={"install": "Python>=3.10"}),
)

PACKAGES = ("apache-airflow", "pyspark", "pyspark-client", "confluent-kafka", "fastapi")


def results() -> dict[str, Any]:
    """Return the recorded results by cell: versions, the answer of each check, and the day."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    return found


def describe(cell: Cell, result: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return a cell's row of the table: name, Python, versions of packages, and what its checks said."""
    asked = {pin.partition("=")[0]: pin.partition("==")[2] for pin in cell.pins}
    versions: Mapping[str, str] = (result or {}).get("versions", {})
    shown = tuple(versions.get(package) or asked.get(package, "") for package in PACKAGES)
    return (cell.name, cell.python, *shown, verdict(cell, result))


def verdict(cell: Cell, result: Mapping[str, Any] | None) -> str:
    """Return the words for a cell's answers: what passed, what was refused with a sentence, and what failed."""
    if result is None:
        return "not run"
    answers: Mapping[str, str] = result["answers"]
    passed = [name for name, problem in answers.items() if not problem]
    told = [f"{name} refused: {problem}" for name, problem in answers.items() if problem and is_refused(cell, name, problem)]
    failed = [f"{name} FAILED: {problem}" for name, problem in answers.items() if problem and not is_refused(cell, name, problem)]
    left_out = [name for name in cell.checks if name not in answers and "install" not in answers]
    words = [f"passed: {', '.join(passed)}"] if passed else []
    words += [f"not run: {', '.join(left_out)}"] if left_out else []
    return "; ".join((*words, *told, *failed))


def is_refused(cell: Cell, check: str, problem: str) -> bool:
    """Return whether a problem is the sentence that the cell expects of a check."""
    return check in cell.refused and cell.refused[check] in problem
