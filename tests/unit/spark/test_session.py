"""Files that the driver's Spark context ships to executors."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from sluiceway.spark import session
from sluiceway.spark.py_files import package_zip


@pytest.mark.parametrize(
    ("submitted", "ships"),
    [
        ({}, True),
        ({"spark.submit.pyFiles": "/home/me/connectors.zip"}, True),
        ({"spark.submit.pyFiles": f"/home/me/connectors.zip,{package_zip()}"}, False),
        ({"spark.yarn.dist.pyFiles": f"file:{package_zip()}"}, False),
        ({"spark.python.daemon.module": "sluiceway.spark.local_daemon"}, False),
    ],
    ids=["nothing", "other files", "spark-submit", "YARN", "local mode"],
)
def test_the_package_is_shipped_once(monkeypatch: pytest.MonkeyPatch, submitted: dict[str, str], *, ships: bool) -> None:
    context: Any = MagicMock()
    context.getConf().get.side_effect = submitted.get
    monkeypatch.setattr("pyspark.SparkContext.getOrCreate", lambda settings: context)
    monkeypatch.setattr("pyspark.SparkConf", MagicMock())
    monkeypatch.setattr(session, "check_jars", MagicMock())
    session.spark_context("test")
    assert context.addPyFile.called is ships
