"""Spark's temporary files on the machine of a driver whose JVM is killed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from sluiceway.provider.compat import AirflowException, AirflowNotFoundException
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook

pytestmark = [pytest.mark.spark, pytest.mark.long]

_KILLED = """
import json, os, signal, sys
from pathlib import Path
from pyspark import SparkContext
context = SparkContext()
context.parallelize([1, 2]).sum()
disk = context._jsc.sc().env().blockManager().diskBlockManager()
temporary = context._jvm.java.lang.System.getProperty("java.io.tmpdir")
folders = [temporary, context._temp_dir, *(str(each) for each in disk.localDirs())]
Path(sys.argv[0]).with_name("folders.json").write_text(json.dumps([folder for folder in folders if Path(folder).exists()]))
os.kill(os.getppid(), signal.SIGKILL)
"""


def test_a_killed_jvm_leaves_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def get_connection(conn_id: str) -> None:
        raise AirflowNotFoundException(conn_id)

    monkeypatch.setattr(ConnectorSubmitHook, "get_connection", staticmethod(get_connection))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("SPARK_LOCAL_DIRS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    application = tmp_path / "app.py"
    application.write_text(_KILLED)
    hook = ConnectorSubmitHook(Submission("c", tmp_path / "worker.properties", "long-running", {}))
    with pytest.raises(AirflowException, match="exit code -9"):
        hook.submit(str(application))
    folders = json.loads((tmp_path / "folders.json").read_text())
    assert len(folders) >= 3, "Spark has made its folders"
    assert {Path(os.path.commonpath([tmp_path, folder])) for folder in folders} == {tmp_path}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["app.py", "folders.json"]
