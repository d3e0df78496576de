"""Tests of a submission: spark-submit's arguments, settings and environment."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sluiceway.provider.compat import AirflowNotFoundException
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.submit_options import SubmitOptions
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook


class _Connection:
    conn_type, host, extra_dejson = "spark", "spark://master", {"deploy-mode": "client"}
    port: int | None = 7077


def _hook(
    monkeypatch: pytest.MonkeyPatch, connection: Any = None, config: dict[str, str] | None = None, **kwargs: Any
) -> ConnectorSubmitHook:
    def get_connection(conn_id: str) -> Any:
        if connection is None:
            raise AirflowNotFoundException(conn_id)
        return connection

    monkeypatch.setattr(ConnectorSubmitHook, "get_connection", staticmethod(get_connection))
    monkeypatch.setenv("JAVA_HOME", "/a/java")
    submission = Submission("c", Path("/w.properties"), "long-running", config or {"tasks.max": "3"})
    conf = kwargs.pop("conf", None)
    return ConnectorSubmitHook(submission, conn_id="spark_default", conf=conf, options=SubmitOptions(**kwargs))


def _command(hook: ConnectorSubmitHook) -> list[str]:
    return hook.plan.command("driver_app.py")


def _after(command: list[str], option: str) -> list[str]:
    return [value for name, value in itertools.pairwise(command) if name == option]


def test_without_a_connection_spark_runs_in_local_mode_with_one_slot_more_than_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = _hook(monkeypatch)
    assert _after(_command(hook), "--master") == ["local[4]"]
    assert "spark.ui.enabled=false" in _after(_command(hook), "--conf")


@pytest.mark.parametrize(("tasks", "slots"), [({}, 2), ({"tasks.max": "1"}, 2), ({"tasks.max": "x"}, 2), ({"tasks.max": "7"}, 8)])
def test_local_slots_depend_on_tasks_max(tasks: dict[str, str], slots: int) -> None:
    assert Submission("c", Path("w"), "long-running", tasks).local_slots == slots


def test_the_connection_determines_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    command = _command(_hook(monkeypatch, _Connection()))
    assert _after(command, "--master") == ["spark://master:7077"]
    assert "spark.ui.enabled=false" not in _after(command, "--conf")


def test_the_operators_conf_overrides_the_connectors_spark_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"spark.executor.cores": "4", "spark.app.x": "config", "spark.master": "local[9]", "file": "/f"}
    hook = _hook(monkeypatch, _Connection(), config, conf={"spark.app.x": "operator"})
    given = {"spark.executor.cores": "4", "spark.app.x": "operator", "spark.master": "local[9]"}
    assert {key: hook.plan.conf[key] for key in hook.plan.private} == given
    assert not any("/f" in str(setting) for setting in hook.plan.conf.values())
    assert _after(_command(hook), "--master") == ["local[9]"]


def test_in_client_mode_the_driver_ends_with_its_parent_and_uses_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    hook = _hook(monkeypatch, env_vars={"MY": "own"})
    command = _command(hook)
    assert _after(command, "--parent-pid") == [str(os.getpid())]
    assert _after(command, "--connector") == ["c"]
    assert hook.plan.environment["PYSPARK_PYTHON"] == sys.executable
    assert hook.plan.environment["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
    assert hook.plan.environment["MY"] == "own"
    assert "JAVA_HOME" not in hook.plan.environment


def test_an_explicit_python_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/cluster/python")
    assert "PYSPARK_PYTHON" not in _hook(monkeypatch).plan.environment
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert "PYSPARK_PYTHON" not in _hook(monkeypatch, conf={"spark.pyspark.python": "/p"}).plan.environment


def test_without_java_home_a_java_runtime_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    variables = Submission("c", Path("w"), "long-running", {}).environment(None, {})
    assert Path(variables["JAVA_HOME"], "bin", "java").exists()


def test_in_cluster_mode_the_driver_has_no_parent_and_no_local_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    class InCluster(_Connection):
        extra_dejson = {"deploy-mode": "cluster"}

    hook = _hook(monkeypatch, InCluster())
    command = _command(hook)
    assert not hook.is_client_mode
    assert "--parent-pid" not in command
    assert "PYSPARK_PYTHON" not in hook.plan.environment
    assert not any(str(Path(sys.executable).parent) in value for value in hook.plan.environment.values())


def test_the_mode_is_passed_to_the_driver() -> None:
    assert Submission("c", Path("/w"), "micro-batch", {}).arguments(None)[-2:] == ["--mode", "micro-batch"]


def test_the_drivers_file_and_the_packages_zip_exist() -> None:
    submission = Submission("c", Path("/w"), "long-running", {})
    assert Path(submission.application).is_file()
    ours, more = submission.py_files("/more.zip", {}).split(",")
    assert Path(ours).is_file()
    assert more == "/more.zip"


def test_py_files_of_the_settings_are_kept() -> None:
    """spark-submit ignores the setting if there is an option --py-files."""
    submission = Submission("c", Path("/w"), "long-running", {})
    assert submission.py_files(None, {"spark.submit.pyFiles": "/own.py"}).endswith(".zip,/own.py")
    assert submission.py_files("/more.zip", {"spark.submit.pyFiles": "/own.py"}).endswith(".zip,/more.zip")


def test_yarn_in_cluster_mode_ships_the_worker_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnYarn(_Connection):
        host, extra_dejson = "yarn", {"deploy-mode": "cluster"}
        port = None

    command = _command(_hook(monkeypatch, OnYarn(), files="/truststore.jks"))
    assert _after(command, "--files") == ["file:///w.properties#sluiceway-worker.properties,/truststore.jks"]
    assert _after(command, "--worker") == ["sluiceway-worker.properties"]
    config = {"spark.files": "/a.txt"}
    assert _after(_command(_hook(monkeypatch, OnYarn(), config)), "--files")[0].endswith(".properties,/a.txt")


def test_in_client_mode_the_worker_file_is_read_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnYarn(_Connection):
        host = "yarn"
        port = None

    command = _command(_hook(monkeypatch, OnYarn()))
    assert _after(command, "--files") == []
    assert _after(command, "--worker") == ["/w.properties"]


def test_a_driver_on_this_machine_does_not_use_the_python_of_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    packed = {"spark.pyspark.python": "./environment/bin/python"}
    own = f"spark.pyspark.driver.python={sys.executable}"
    assert own in _after(_command(_hook(monkeypatch, _Connection(), packed)), "--conf")
    assert own in _after(_command(_hook(monkeypatch, _Connection(), env_vars={"PYSPARK_PYTHON": "./e/bin/python"})), "--conf")

    class InCluster(_Connection):
        host, extra_dejson = "yarn", {"deploy-mode": "cluster"}
        port = None

    absolute = {"spark.pyspark.python": "/opt/python"}
    for settings in (
        _after(_command(_hook(monkeypatch, InCluster(), packed)), "--conf"),
        _after(_command(_hook(monkeypatch, _Connection(), absolute)), "--conf"),
    ):
        assert not any("driver.python" in each for each in settings)


def test_a_cluster_gets_executors_for_the_tasks_unless_the_administrator_set_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    first = "spark.dynamicAllocation.initialExecutors="
    assert f"{first}3" in _after(_command(_hook(monkeypatch, _Connection())), "--conf")
    assert f"{first}2" in _after(_command(_hook(monkeypatch, _Connection(), executor_cores=2)), "--conf")
    assert not _given_by_conf(first, _hook(monkeypatch, _Connection(), num_executors=8))
    (tmp_path / "spark-defaults.conf").write_text("spark.dynamicAllocation.enabled false")
    assert not _given_by_conf(first, _hook(monkeypatch, _Connection()))
    assert _given_by_conf("spark.cores.max=", _hook(monkeypatch, _Connection())) == ["spark.cores.max=3"]
    assert not _given_by_conf("spark.cores.max=", _hook(monkeypatch, _Connection(), total_executor_cores=8))
    config = {"spark.cores.max": "5"}
    hook = _hook(monkeypatch, _Connection(), config)
    assert (hook.plan.conf["spark.cores.max"], _given_by_conf("spark.cores.max=", hook)) == ("5", [])


def _given_by_conf(start: str, hook: ConnectorSubmitHook) -> list[str]:
    return [each for each in _after(_command(hook), "--conf") if each.startswith(start)]


def test_local_mode_gets_no_cluster_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(each.startswith(("spark.cores", "spark.executor")) for each in _after(_command(_hook(monkeypatch)), "--conf"))


def test_the_packages_zip_is_passed_unless_the_driver_uses_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    own = _hook(monkeypatch, py_files="/more.zip")
    assert own.plan.options.py_files == "/more.zip"
    assert own.plan.conf["spark.python.daemon.module"] == "sluiceway.spark.local_daemon"
    for other in (
        _hook(monkeypatch, py_files="/more.zip", env_vars={"PYSPARK_PYTHON": "/other/python"}),
        _hook(monkeypatch, _Connection(), py_files="/more.zip"),
    ):
        assert str(other.plan.options.py_files).endswith(".zip,/more.zip")
        assert "spark.python.daemon.module" not in other.plan.conf


def test_spark_submit_runs_in_its_own_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in = tmp_path / "spark-submit"
    stand_in.write_text(f"#!{sys.executable}\nimport os\nprint('session', os.getsid(0) == os.getpid(), flush=True)\n")
    stand_in.chmod(0o755)
    hook = _hook(monkeypatch, env_vars={"PATH": "x"}, spark_binary=str(stand_in))
    lines: list[str] = []
    monkeypatch.setattr(hook, "_read_line", lines.append)
    assert hook.exit_code is None
    hook.submit("driver_app.py")
    assert lines == ["session True"]
    assert hook.exit_code == 0


@pytest.mark.parametrize(
    ("connector", "optimized"), [("SparkSink", True), ("FileStreamSink", False), ("not.installed.Here", False)]
)
def test_jvms_keep_their_optimizing_compiler_where_records_pass_through_them(
    monkeypatch: pytest.MonkeyPatch, connector: str, *, optimized: bool
) -> None:
    command = _command(_hook(monkeypatch, _Connection(), {"connector.class": connector}))
    assert any("spark.executor.defaultJavaOptions" in argument for argument in command) is not optimized
