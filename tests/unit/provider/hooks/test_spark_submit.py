"""Tests of the spark-submit hook with a script instead of spark-submit: no secret is on its command line."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.environment import HANDED_OVER
from sluiceway.config.properties import parse_properties
from sluiceway.config.variables import handed_over
from sluiceway.provider.compat import AirflowFailException
from sluiceway.provider.driver.kubernetes import DriverSecret
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.submit_options import SubmitOptions
from sluiceway.provider.driver.submit_process import SubmitProcess
from sluiceway.provider.hooks import spark_submit as hook_module
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.worker.start_gate import StartGate, StartSlot

# Quotes, backslashes and other alphabets, as a JAAS line may have them.
SECRET = json.dumps({"worker::sasl.jaas.config": 'Module required password="s3cr\\"et=ü $HOME `id`";'})

_STAND_IN = """\
import json, os, pathlib, sys
file = sys.argv[sys.argv.index("--properties-file") + 1] if "--properties-file" in sys.argv else None
seen = {"argv": sys.argv[1:], "env": dict(os.environ)}
if file:
    seen["file"], seen["mode"] = pathlib.Path(file).read_text(), pathlib.Path(file).stat().st_mode
pathlib.Path(os.path.dirname(os.path.abspath(__file__)), "seen.json").write_text(json.dumps(seen))
print("Deployed Spark application with submission ID spark:ns:c-0123456789abcdef-driver into Kubernetes", flush=True)
print("Submitted application_1700000000000_0001", flush=True)
"""


class _Seen:
    """A hook with a fake spark-submit, which writes its arguments and environment to a file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, master: str, deploy_mode: str, **kwargs: Any) -> None:
        class Connection:
            conn_type, port = "spark", None
            host, extra_dejson = master, {"deploy-mode": deploy_mode, "namespace": "ns"}

        monkeypatch.setattr(ConnectorSubmitHook, "get_connection", staticmethod(lambda conn_id: Connection()))
        monkeypatch.setenv("JAVA_HOME", "/a/java")
        monkeypatch.delenv(HANDED_OVER, raising=False)
        self._folder = folder
        stand_in = folder / "spark-submit"
        stand_in.write_text(f"#!{sys.executable}\n{_STAND_IN}")
        stand_in.chmod(0o755)
        submission = Submission("c", Path("/w.properties"), "long-running", kwargs.pop("config", {}))
        conf, resolve = kwargs.pop("conf", None), kwargs.pop("resolve", dict)
        variables = {} if kwargs.pop("no_variables", False) else {HANDED_OVER: SECRET, "MY": "own"}
        options = SubmitOptions(env_vars=variables, spark_binary=str(stand_in), **kwargs)
        self.hook = ConnectorSubmitHook(submission, conn_id="spark", conf=conf, options=options, resolve=resolve)

    def submit(self) -> dict[str, Any]:
        self.hook.submit("driver_app.py")
        seen: dict[str, Any] = json.loads((self._folder / "seen.json").read_text())
        assert "s3cr" not in " ".join(seen["argv"]), "other users of the machine can read a command line"
        return seen


def _after_yarns_launch_script(value: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what a driver reads after YARN's NodeManager has written the variable into its script, unescaped."""
    script = f'export {HANDED_OVER}="{value}"\nprintenv {HANDED_OVER}'
    seen = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.rstrip("\n")
    with monkeypatch.context() as patch:
        patch.setenv(HANDED_OVER, seen)
        return handed_over()


@pytest.mark.parametrize("master", ["local[2]", "spark://master:7077", "yarn", "k8s://https://api:6443"])
def test_in_client_mode_secrets_are_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str) -> None:
    seen = _Seen(monkeypatch, tmp_path, master, "client").submit()
    assert (seen["env"][HANDED_OVER], seen["env"]["MY"]) == (SECRET, "own")


def test_on_yarn_in_cluster_mode_secrets_are_in_a_file_that_is_deleted_afterwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prefix = "spark.yarn.appMasterEnv"
    seen = _Seen(monkeypatch, tmp_path, "yarn", "cluster").submit()
    found = parse_properties(seen["file"])
    assert set(found) == {f"{prefix}.{HANDED_OVER}", f"{prefix}.MY", "spark.redaction.regex"}
    assert _after_yarns_launch_script(found[f"{prefix}.{HANDED_OVER}"], monkeypatch) == json.loads(SECRET)
    assert stat.S_IMODE(seen["mode"]) == 0o600
    assert found[f"{prefix}.MY"] == "own"
    assert not Path(seen["argv"][seen["argv"].index("--properties-file") + 1]).exists()


MODES = [
    ("local[2]", "client"),
    *((master, mode) for master in ("spark://master:7077", "yarn", "k8s://https://api:6443") for mode in ("client", "cluster")),
]
PLACES = {"spark.hadoop.fs.s3a.secret.key": "s3cr-literal ü\\", "spark.plain": "${p:a:b} s3cr-ets \n#=:"}


@pytest.mark.parametrize(("master", "mode"), MODES)
def test_settings_of_users_are_in_a_file_of_this_user_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture, master: str, mode: str
) -> None:
    def resolve(settings: Mapping[str, str]) -> dict[str, str]:
        return {key: value.replace("${p:a:b}", "s3cr-resolved") for key, value in settings.items()}

    caplog.set_level("DEBUG")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.administrator yes\nspark.operator no\n")
    more = {"spark.operator": "s3cr-operator"}
    staged = _Seen(monkeypatch, tmp_path, master, mode, config=PLACES, conf=more, resolve=resolve, no_variables=True)
    if not staged.hook.is_client_mode:
        staged.hook.detach_from_driver()
    if (master[:5], mode) == ("spark", "cluster"):
        monkeypatch.setattr(hook_module, "_DRIVER", hook_module._APPLICATION)  # the stand-in's output is YARN's
    seen = staged.submit()
    found = parse_properties(seen["file"])
    here = mode == "client" or master == "yarn"  # elsewhere, Spark shows a driver's settings to others
    resolved = "s3cr-resolved s3cr-ets \n#=:" if here else PLACES["spark.plain"]
    hidden = re.compile(found.pop("spark.redaction.regex").replace(r"\Q", "").replace(r"\E", ""))
    assert all(hidden.search(key) for key in PLACES)
    assert found == {**PLACES, **more, "spark.plain": resolved, "spark.administrator": "yes"}
    assert stat.S_IMODE(seen["mode"]) == 0o600
    assert not Path(seen["argv"][seen["argv"].index("--properties-file") + 1]).parent.exists()
    assert "s3cr" not in caplog.text


@pytest.mark.parametrize(("master", "mode"), MODES)
def test_a_jvm_on_this_machine_has_its_temporary_files_in_a_folder_that_goes_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str, mode: str
) -> None:
    for name in ("SPARK_LOCAL_DIRS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    staged = _Seen(monkeypatch, tmp_path, master, mode, no_variables=True)
    staged.hook.detach_from_driver()
    if (master[:5], mode) == ("spark", "cluster"):
        monkeypatch.setattr(hook_module, "_DRIVER", hook_module._APPLICATION)  # the stand-in's output is YARN's
    variables = staged.submit()["env"]
    folder = variables.get("SPARK_LOCAL_DIRS")
    assert (folder is not None) is (mode == "client")
    if folder is not None:
        assert Path(folder).name.startswith("sluiceway-submit-")
        assert f'"-Djava.io.tmpdir={folder}"' in variables["SPARK_SUBMIT_OPTS"]
        assert not Path(folder).exists()


def test_without_settings_of_users_spark_reads_its_own_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = _Seen(monkeypatch, tmp_path, "local[2]", "client", no_variables=True).submit()
    assert "file" not in seen


class _Secret:
    """A Kubernetes Secret that records what happens to it."""

    reference = "name:values"

    def __init__(self, *given: str) -> None:
        self.given = given
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> list[_Secret]:
    made: list[_Secret] = []

    def create(*given: str) -> _Secret:
        made.append(_Secret(*given))
        return made[-1]

    monkeypatch.setattr(DriverSecret, "of_airflow", create)
    return made


def test_on_kubernetes_in_cluster_mode_values_are_in_a_secret_that_the_pod_owns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secrets: list[_Secret]
) -> None:
    staged = _Seen(monkeypatch, tmp_path, "k8s://https://api:6443", "cluster")
    staged.hook.detach_from_driver()
    seen = staged.submit()
    [secret] = secrets
    pod = staged.hook.plan.pod
    assert secret.given == ("ns", pod, SECRET)
    assert f"spark.kubernetes.driver.pod.name={pod}" in seen["argv"]
    assert f"spark.kubernetes.driver.secretKeyRef.{HANDED_OVER}=name:values" in seen["argv"]
    assert parse_properties(seen["file"])["spark.kubernetes.driverEnv.MY"] == "own"
    assert "s3cr" not in seen["file"]
    assert (secret.calls[0], secret.calls[-1]) == ("create", "close")


def test_the_secret_is_given_to_the_pod_at_the_first_log_line_with_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secrets: list[_Secret]
) -> None:
    conf = {"spark.kubernetes.driver.pod.name": "c-0123456789abcdef-driver"}  # the one in the stand-in's output
    staged = _Seen(monkeypatch, tmp_path, "k8s://https://api:6443", "cluster", conf=conf)
    staged.hook.detach_from_driver()
    staged.submit()
    assert secrets[0].calls == ["create", "give_to_pod", "close"]


def test_on_kubernetes_the_driver_is_a_file_of_the_image_unless_files_are_uploaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secrets: list[_Secret]
) -> None:
    staged = _Seen(monkeypatch, tmp_path, "k8s://https://api:6443", "cluster")
    staged.hook.detach_from_driver()
    seen = staged.submit()
    assert "local:///opt/sluiceway/driver_app.py" in seen["argv"]
    assert "--py-files" not in seen["argv"]
    conf = {"spark.kubernetes.file.upload.path": "s3a://bucket/spark"}
    uploading = _Seen(monkeypatch, tmp_path, "k8s://https://api:6443", "cluster", conf=conf)
    uploading.hook.detach_from_driver()
    seen = uploading.submit()
    assert "driver_app.py" in seen["argv"]
    assert "--py-files" in seen["argv"]


def test_the_users_properties_file_is_included(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "own.properties"
    own.write_text("spark.executor.cores 4")
    seen = _Seen(monkeypatch, tmp_path, "yarn", "cluster", properties_file=str(own)).submit()
    found = parse_properties(seen["file"])
    assert found["spark.executor.cores"] == "4"
    assert _after_yarns_launch_script(found[f"spark.yarn.appMasterEnv.{HANDED_OVER}"], monkeypatch) == json.loads(SECRET)
    assert own.read_text() == "spark.executor.cores 4"


def test_a_standalone_master_in_cluster_mode_is_rejected_if_there_are_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(AirflowFailException, match="deploy-mode=client") as raised:
        _Seen(monkeypatch, tmp_path, "spark://master:7077", "cluster")
    assert "s3cr" not in str(raised.value)


def test_a_detached_spark_submit_on_kubernetes_succeeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secrets: list[_Secret]
) -> None:
    staged = _Seen(monkeypatch, tmp_path, "k8s://https://api:6443", "cluster")
    staged.hook.detach_from_driver()
    staged.submit()
    assert staged.hook.exit_code == 0


def test_a_submission_that_uploads_sparks_jars_says_how_to_avoid_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    _Seen(monkeypatch, tmp_path, "yarn", "client").submit()
    assert "spark.yarn.archive=hdfs:" in capsys.readouterr().out
    _Seen(monkeypatch, tmp_path, "yarn", "client", conf={"spark.yarn.jars": "local:/spark/jars/*"}).submit()
    (tmp_path / "spark-defaults.conf").write_text("spark.yarn.archive hdfs:///apps/spark-jars.zip")
    _Seen(monkeypatch, tmp_path, "yarn", "client").submit()
    _Seen(monkeypatch, tmp_path, "spark://master:7077", "client").submit()
    assert "spark.yarn.archive=hdfs:" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("master", "deploy_mode"),
    [("spark://master:7077", "client"), ("yarn", "client"), ("yarn", "cluster"), ("k8s://https://api:6443", "cluster")],
)
def test_spark_submits_own_jvms_start_soon_and_no_driver_inherits_their_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str, deploy_mode: str, secrets: list[_Secret]
) -> None:
    monkeypatch.setattr("sluiceway.spark.class_archive.archive_options", lambda: "-XX:SharedArchiveFile=/a.jsa")
    for name in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    staged = _Seen(monkeypatch, tmp_path, master, deploy_mode)
    staged.hook.detach_from_driver()
    seen = staged.submit()
    light = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    archived = f"{light} -XX:SharedArchiveFile=/a.jsa"
    assert seen["env"]["SPARK_LAUNCHER_OPTS"] == light
    assert (archived in seen["env"].get("SPARK_SUBMIT_OPTS", "")) is (deploy_mode == "cluster")
    assert not any("SPARK_LAUNCHER_OPTS" in each or "SPARK_SUBMIT_OPTS" in each for each in seen["argv"])
    assert f"spark.executor.defaultJavaOptions={light}" in seen["argv"]
    in_client_mode_on_yarn = (master, deploy_mode) == ("yarn", "client")
    assert (f"spark.yarn.am.extraJavaOptions={light}" in seen["argv"]) is in_client_mode_on_yarn, "Spark warns in cluster mode"
    assert f"spark.driver.defaultJavaOptions={light if deploy_mode == 'cluster' else archived}" in seen["argv"]


def test_the_administrators_options_of_spark_submits_jvms_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.setenv(name, "-Xmx1g")
    seen = _Seen(monkeypatch, tmp_path, "yarn", "cluster").submit()
    assert (seen["env"]["SPARK_LAUNCHER_OPTS"], seen["env"]["SPARK_SUBMIT_OPTS"]) == ("-Xmx1g", "-Xmx1g")


class _Gate(StartGate):
    """A gate that notes what happens to its slots."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def enter(self, gives_up: Callable[[], bool] = lambda: False) -> StartSlot | None:
        self.log.append("enter")
        return None if gives_up() else StartSlot(lambda: self.log.append("leave"), 600)


@pytest.mark.parametrize(
    ("line", "log"),
    [
        ("Connector c is run by host:1 as generation 1", ["enter", "leave", "line", "end"]),
        ("anything else", ["enter", "line", "leave", "end"]),
    ],
)
def test_a_driver_on_this_machine_counts_as_a_start_until_it_runs_its_connector_or_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, log: list[str]
) -> None:
    gate = _Gate()
    monkeypatch.setattr(hook_module, "_starts", gate)
    seen = _Seen(monkeypatch, tmp_path, "local[2]", "client")

    class Process(SubmitProcess):
        def wait(self) -> int:
            self._on_line(line)
            gate.log.append("line")
            return super().wait()

    monkeypatch.setattr(hook_module, "SubmitProcess", Process)
    seen.submit()
    assert [*gate.log, "end"] == log


class _Interrupt(BaseException):
    """As Airflow's AirflowTaskTimeout."""


def test_a_driver_whose_task_is_interrupted_keeps_its_files_to_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders: list[bool] = []

    class Process(SubmitProcess):
        interrupted = False

        def wait(self) -> int:
            if not self.interrupted:
                self.interrupted = True
                raise _Interrupt
            return super().wait()

    def on_interrupt(await_end: Callable[[], object]) -> None:
        assert await_end() == 0
        variables = json.loads((tmp_path / "seen.json").read_text())["env"]
        folders.append(Path(variables["SPARK_LOCAL_DIRS"]).exists())

    monkeypatch.setattr(hook_module, "SubmitProcess", Process)
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    seen = _Seen(monkeypatch, tmp_path, "local[2]", "client", post_submit_commands=(f"touch {tmp_path / 'afterwards'}",))
    seen.hook.on_interrupt = on_interrupt
    with pytest.raises(_Interrupt):
        seen.hook.submit("driver_app.py")
    assert folders == [True]
    assert (tmp_path / "afterwards").exists()


def test_a_driver_that_airflow_ends_before_its_start_is_not_submitted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hook_module, "_starts", _Gate())
    seen = _Seen(monkeypatch, tmp_path, "local[2]", "client")
    seen.hook.on_kill()
    assert seen.hook.submit("driver_app.py") is None
    assert not (tmp_path / "seen.json").exists()


def test_bytes_that_are_not_utf8_do_not_end_the_drivers_output() -> None:
    script = r"import os; os.write(1, b'one \xff\xfe\n' + b'x' * 9000 + b'\xe4\n' + 'last ü\n'.encode())"
    lines: list[str] = []
    assert SubmitProcess([sys.executable, "-c", script], {"LC_ALL": "C"}, lines.append).wait() == 0
    assert [len(line) for line in lines] == [6, 9001, 6]
    assert lines[-1] == "last ü"
