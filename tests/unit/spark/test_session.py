"""The driver's Spark context: files that it ships to executors, and what differs between versions of Spark."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import MagicMock, call

import pytest

from sluiceway.spark import session
from sluiceway.spark.py_files import package_zip
from support.eventually import LIMIT


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


def test_the_driver_resolves_the_references_that_it_is_left_and_spark_hides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: Any = MagicMock()
    given = {"spark.a": "${p:x}", "spark.b": "1", "spark.redaction.regex": "mine"}
    settings.getAll.return_value = given.items()
    settings.get.side_effect = given.get
    monkeypatch.setattr("pyspark.SparkConf", lambda: settings)
    context: Any = MagicMock()
    context.getConf().get.side_effect = {}.get
    monkeypatch.setattr("pyspark.SparkContext.getOrCreate", lambda settings: context)
    monkeypatch.setattr(session, "check_jars", MagicMock())
    session.spark_context("test", resolve=lambda found: {key: value.replace("${p:x}", "s3cret") for key, value in found.items()})
    assert call("spark.a", "s3cret") in settings.set.mock_calls
    [hidden] = [each.args[1] for each in settings.set.mock_calls if each.args[0] == "spark.redaction.regex"]
    assert hidden.startswith("mine|")
    assert hidden.endswith(r"^\Qspark.a\E$")
    assert not any(each.args[0] == "spark.b" for each in settings.set.mock_calls)


@pytest.mark.parametrize("version", ["4.0.0", "4.3.0", "5.0.0"])
def test_spark_cancels_jobs_that_are_about_to_be_submitted(version: str) -> None:
    context: Any = MagicMock(version=version)
    session.cancel_jobs(context, "task")
    assert context._jsc.sc().mock_calls == [call.cancelJobGroupAndFutureJobs("task")]


def test_spark_3_is_asked_twice_because_it_cancels_running_jobs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    again = threading.Event()
    monkeypatch.setattr(session, "_SUBMISSION_SECONDS", 0.01)
    context: Any = MagicMock(version="3.5.6-amzn-1")
    spark = context._jsc.sc()
    spark.cancelJobGroup.side_effect = lambda _group: again.set() if spark.cancelJobGroup.call_count == 2 else None
    session.cancel_jobs(context, "task")
    assert again.wait(LIMIT)
    assert spark.mock_calls == [call.cancelJobGroup("task")] * 2


@pytest.mark.parametrize("name", ["org.apache.spark.sql.SparkSession", "org.apache.spark.sql.classic.SparkSession"])
def test_a_session_is_activated_by_its_own_class_which_spark_4_has_moved(name: str) -> None:
    made: Any = MagicMock()
    made._jsparkSession.getClass().getName.return_value = name
    session.activate(made)
    getattr(made._jvm, name).setActiveSession.assert_called_once_with(made._jsparkSession)
