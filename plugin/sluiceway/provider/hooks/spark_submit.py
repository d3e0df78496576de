"""Submits a driver with spark-submit: Airflow's hook, with local mode as the default if there is no Spark connection."""

from __future__ import annotations

import base64
import io
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from sluiceway.config.variables import HANDED_OVER
from sluiceway.provider.driver.cluster_conf import CORES, CORES_MAX, cluster_conf, uploads_spark_jars
from sluiceway.provider.driver.kubernetes import (
    IMAGE_APPLICATION,
    NAMESPACE,
    POD_NAME,
    SECRET_PREFIX,
    UPLOAD_PATH,
    DriverSecret,
    driver_pod_name,
)
from sluiceway.provider.driver.spark_defaults import read_spark_defaults
from sluiceway.provider.driver.submission import Submission
from sluiceway.spark.elastic import INSTANCES
from sluiceway.worker.start_gate import StartGate, StartSlot

_MASTER = "spark.master"
_UPLOADS_JARS = (
    "Spark uploads its jars, about 400 MB, at each submission, because neither spark.yarn.archive nor spark.yarn.jars is set. To "
    "upload them once: python -m zipfile -c spark-jars.zip $SPARK_HOME/jars/*; hdfs dfs -put spark-jars.zip /apps/; then set "
    "spark.yarn.archive=hdfs:///apps/spark-jars.zip in spark-defaults.conf"
)
_RUNS = " is run by "  # in the line that a driver logs once it has a connector's lease
_starts = StartGate("driver", hold=30.0, patience=120.0)

_UI_STARTED = re.compile(r"Successfully started service 'SparkUI' on port (\d+)")


class ConnectorSubmitHook(SparkSubmitHook):
    """A SparkSubmitHook for a driver.

    The master is the first that is set of: ``spark.master`` in the conf, the Spark connection's, ``local[slots]``. Settings that
    depend on where the driver runs are filled in here, because only the hook resolves the connection.

    Args:
        submission: the driver to submit.
        kwargs: arguments of SparkSubmitHook.

    ``ui_url`` is the address of the driver's Spark UI; None until the driver's log contains it, and always None in cluster mode.
    ``on_ui`` is called when it is known.
    """

    _conf: dict[str, Any]
    _properties_file: str | None

    def __init__(self, submission: Submission, **kwargs: Any) -> None:
        self._submission = submission
        self._start_slot: StartSlot | None = None
        self._killed = False
        self.ui_url: str | None = None
        self.on_ui: Callable[[], None] = lambda: None
        self._load_spark_defaults = False  # with --properties-file, Spark ignores spark-defaults.conf by default
        explicit = kwargs.pop("env_vars", None)
        py_files = kwargs.pop("py_files", None)
        super().__init__(conf=submission.conf(kwargs.pop("conf", None)), **kwargs)
        given = self._given({**os.environ, **(explicit or {})})
        own_python = self.is_local and submission.runs_own_python(explicit, given)
        # On Kubernetes, a driver's pod has no access to files of this machine, unless spark-submit uploads them.
        self._in_image = self._is_kubernetes_cluster_mode and UPLOAD_PATH not in given
        self._py_files = py_files if own_python or self._in_image else submission.py_files(py_files, given)
        if self.is_local:
            self._conf = submission.local_conf(self._conf, own_python=own_python)
        else:
            defaults = cluster_conf(
                self._master,
                submission.tasks,
                given,
                client_mode=self.is_client_mode,
                data_frames=submission.data_frames,
                java_memory=submission.java_memory,
            )
            self._conf = {**(submission.client_conf(defaults) if self.is_client_mode else defaults), **self._conf}
        if self.is_client_mode:
            self._conf = {**submission.driver_python(explicit, given), **self._conf}
        self._env_vars = submission.environment(explicit, given) if self.is_client_mode else explicit
        ships_worker = self._is_yarn_cluster_mode
        if ships_worker:
            self._files = submission.files(self._files, given)
        self._application_args = submission.arguments(os.getpid() if self.is_client_mode else None, ships_worker=ships_worker)
        self._uploads_jars = uploads_spark_jars(self._master, given)
        self._secret: DriverSecret | None = None
        if self._is_kubernetes_cluster_mode:
            # Airflow's hook finds the pod in spark-submit's log only if its namespace is called "spark".
            self._kubernetes_driver_pod = given.get(POD_NAME) or driver_pod_name(submission.name)
            self._conf = {**self._conf, POD_NAME: self._kubernetes_driver_pod}
            self._namespace = self._connection["namespace"] or given.get(NAMESPACE) or "default"

    @property
    def is_local(self) -> bool:
        """Return whether the whole Spark application runs on this machine."""
        return self._master.startswith("local")

    @property
    def is_client_mode(self) -> bool:
        """Return whether the driver is a child of this process, so that it can be signalled."""
        return bool(self._connection["deploy_mode"] != "cluster")

    @property
    def submit_pid(self) -> int | None:
        """Return spark-submit's process id, in client mode also the driver's JVM; None before its start."""
        return None if self._submit_sp is None else self._submit_sp.pid

    @property
    def exit_code(self) -> int | None:
        """Return spark-submit's exit code, negative if a signal ended it; None before its start and while it runs."""
        return None if self._submit_sp is None else self._submit_sp.poll()

    def on_kill(self) -> None:
        """End the driver, or keep it from starting."""
        self._killed = True
        super().on_kill()

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Run spark-submit and wait for its end. In client mode it runs in its own session, once it may start on this machine.

        Airflow signals a task's whole process group. A JVM that received SIGTERM would end the tasks before they have drained.
        """
        if self._uploads_jars:
            self.log.warning(_UPLOADS_JARS)
        if self.is_client_mode:
            kwargs.setdefault("start_new_session", True)
            self._start_slot = _starts.enter(lambda: self._killed)
            if self._start_slot is None:
                return None
            try:
                return super().submit(application, **kwargs)
            finally:
                self._release_start_slot()
        if self._is_kubernetes:
            return self._submit_to_kubernetes(IMAGE_APPLICATION if self._in_image else application, kwargs)
        with tempfile.TemporaryDirectory(prefix="sluiceway-submit-") as folder:
            self._write_secrets_file(Path(folder) / "spark.properties")
            return super().submit(application, **kwargs)

    def _release_start_slot(self) -> None:
        if self._start_slot is not None:
            self._start_slot.release()

    def _submit_to_kubernetes(self, application: str, kwargs: dict[str, Any]) -> str | None:
        """Submit a driver that gets the values from Airflow by a Secret: a pod's description is no place for them."""
        variables = dict(self._env_vars or {})
        values = variables.pop(HANDED_OVER, None)
        if values is None:
            return super().submit(application, **kwargs)
        pod = self._conf[POD_NAME]
        self._secret = secret = DriverSecret.of_airflow(self._namespace, pod, str(values))
        self._env_vars = variables or None
        self._conf = {**self._conf, f"{SECRET_PREFIX}.{HANDED_OVER}": secret.reference}
        secret.create()
        try:
            return super().submit(application, **kwargs)
        finally:
            secret.close()

    def detach_from_driver(self) -> None:
        """Make spark-submit end once the cluster has accepted the driver, for a task that waits in the triggerer."""
        # Otherwise, on Kubernetes, the hook reports a failure if spark-submit ends before it has seen the pod's exit code.
        self._track_driver_via_k8s_api = self._is_kubernetes_cluster_mode

    @property
    def _is_kubernetes_cluster_mode(self) -> bool:
        return bool(self._is_kubernetes) and not self.is_client_mode

    @property
    def _master(self) -> str:
        return str(self._connection["master"])

    def _given(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return all settings that the administrator, the connector and the operator have given; the last wins."""
        file = read_spark_defaults(
            environment, properties_file=self._properties_file, binary=str(self._connection["spark_binary"] or "spark-submit")
        )
        arguments = {INSTANCES: self._num_executors, CORES: self._executor_cores, CORES_MAX: self._total_executor_cores}
        settings = {**file, **self._conf, **{key: value for key, value in arguments.items() if value is not None}}
        return {key: str(value) for key, value in settings.items()}

    def _build_spark_common_args(self) -> list[str]:
        """Leave environment variables out of the command line, which any user of the machine can read."""
        variables = self._env_vars
        if self.is_client_mode and variables:
            self._env = variables  # spark-submit's own environment; its child, the driver, inherits it
            self._env_vars = None
        try:
            arguments: list[str] = super()._build_spark_common_args()
        finally:
            self._env_vars = variables
        # Not in env_vars, which in cluster mode become variables of the driver.
        self._env = {**self._submission.jvm_variables(self._env, client_mode=self.is_client_mode), **(self._env or {})}
        return [*arguments, "--load-spark-defaults"] if self._load_spark_defaults else arguments

    def _write_secrets_file(self, file: Path) -> None:
        """Write the values from Airflow for a driver on YARN to a properties file, after the user's own properties."""
        variables = dict(self._env_vars or {})
        secrets = variables.pop(HANDED_OVER, None)
        if secrets is None:
            return
        if not self._is_yarn:
            raise AirflowException(
                f"Connector {self._submission.connector}: a standalone Spark master passes no environment to a driver in cluster "
                "mode, so kafka_conn_id and ${airflow:...} do not work there. Set deploy-mode=client in the Spark connection."
            )
        own = Path(self._properties_file).read_text(encoding="utf-8") if self._properties_file else ""
        file.touch(mode=0o600)
        file.write_text(f"{own}\nspark.yarn.appMasterEnv.{HANDED_OVER}={_escaped(str(secrets))}\n", encoding="utf-8")
        self._load_spark_defaults = not self._properties_file
        self._properties_file = str(file)
        self._env_vars = variables or None

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(map(self._read_line, _of_any_bytes(itr)))

    def _process_spark_status_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_status_log(_of_any_bytes(itr))

    def _read_line(self, line: Any) -> Any:
        """Set ``ui_url`` if the log line contains the Spark UI's port; return the line unchanged.

        A line with the driver pod's name shows that the pod exists, so that it can own the Secret.
        """
        if _RUNS in str(line):
            self._release_start_slot()
        if self._secret is not None and self._conf[POD_NAME] in str(line):
            self._secret.give_to_pod()
        found = _UI_STARTED.search(str(line)) if self.ui_url is None and self.is_client_mode else None
        if found:
            self.ui_url = f"http://{socket.gethostname()}:{found[1]}"
            self.on_ui()
        return line

    def _resolve_connection(self) -> dict[str, Any]:
        connection = super()._resolve_connection()
        if _MASTER in self._conf:
            connection["master"] = self._conf[_MASTER]
        elif not self._connection_exists():
            connection["master"] = f"local[{self._submission.local_slots}]"
            self.log.info("Airflow has no connection %s; Spark runs in local mode", self._conn_id)
        return connection

    def _connection_exists(self) -> bool:
        try:
            self.get_connection(self._conn_id)
        except AirflowNotFoundException:
            return False
        return True


def _of_any_bytes(lines: Iterator[Any]) -> Iterator[Any]:
    """Return a process's output such that bytes that are not UTF-8 do not end it: the driver would seem to have died."""
    if isinstance(lines, io.TextIOWrapper):
        lines.reconfigure(encoding="utf-8", errors="backslashreplace")
    return lines


def _escaped(text: str) -> str:
    """Escape a value for a Java properties file and for YARN, as Base64.

    YARN writes variables into a shell script in double quotes without escaping them: quotes end there, and ``$`` is expanded.
    """
    return base64.b64encode(text.encode()).decode()
