"""Spark settings with secrets, submitted to a real Spark: the driver has them, other users of the machine see them nowhere."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from sluiceway.provider.compat import AirflowNotFoundException
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.spark.class_archive import spark_home

# Reads its settings, and the command lines and environments of all processes.
_APPLICATION = """\
import json, pathlib, sys
from pyspark import SparkConf, SparkContext

def seen(name):
    for file in pathlib.Path("/proc").glob(f"[0-9]*/{name}"):
        try:
            yield file.read_bytes().replace(b"\\0", b" ").decode("utf-8", "replace")
        except OSError:
            pass

context = SparkContext.getOrCreate(SparkConf().setAppName("secrets"))
jvm = context._jvm
settings = context.getConf()
secret = settings.get("spark.test.pwd").split()[0]
shown = [each for name in ("cmdline", "environ") for each in seen(name) if secret in each]
names = ("spark.test.access", "spark.test.pwd", "spark.driver.memory", "spark.test.admin")
pathlib.Path(sys.argv[0]).with_suffix(".json").write_text(json.dumps({
    "settings": {key: settings.get(key) for key in names},
    "heap": jvm.java.lang.Runtime.getRuntime().maxMemory(), "shown": shown}))
context.stop()
"""


def test_no_command_line_environment_or_event_has_a_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def no_connection(conn_id: str) -> None:
        raise AirflowNotFoundException(conn_id)

    monkeypatch.setattr(ConnectorSubmitHook, "get_connection", staticmethod(no_connection))
    monkeypatch.setenv("SPARK_HOME", str(spark_home()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.test.admin yes\nspark.driver.memory 2g\n")
    secret = f"s3cr{uuid.uuid4().hex}"
    (tmp_path / "events").mkdir()
    log = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.eventLog.compress": "false",
    }
    config = {"spark.test.access": "${p:key}", "spark.test.pwd": f"{secret} \\ ü", "spark.driver.memory": "600m"}
    hook = ConnectorSubmitHook(
        Submission("secrets", tmp_path / "w.properties", "long-running", {**log, **config}),
        resolve=lambda found: {key: value.replace("${p:key}", f"{secret}-resolved") for key, value in found.items()},
    )
    application = tmp_path / "application.py"
    application.write_text(_APPLICATION)
    caplog.set_level("DEBUG")
    hook.submit(str(application))
    found = json.loads(application.with_suffix(".json").read_text())
    assert found["settings"] == {**config, "spark.test.access": f"{secret}-resolved", "spark.test.admin": "yes"}
    assert found["heap"] < 700 * 2**20, "spark-submit's launcher reads the file, too"
    assert found["shown"] == []
    [events] = [
        path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file() and "application" in path.read_text()
    ]
    assert "spark.test.access" in events
    assert secret not in events
    assert secret not in caplog.text
