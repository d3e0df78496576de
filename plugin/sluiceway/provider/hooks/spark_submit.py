"""Submits a driver with spark-submit: Airflow's hook, with local mode where no Spark connection is configured."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from airflow.exceptions import AirflowException, AirflowNotFoundException
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from sluiceway.config.variables import HANDED_OVER
from sluiceway.provider.driver.submission import Submission

_MASTER = "spark.master"
_UI_STARTED = re.compile(r"Successfully started service 'SparkUI' on port (\d+)")


class ConnectorSubmitHook(SparkSubmitHook):
    """A SparkSubmitHook whose master is, in this order, ``spark.master`` of its conf, the connection's, ``local[slots]``.

    Where the driver is to run is only known here, so what depends on it is filled in here too.
    """

    _conf: dict[str, Any]
    _properties_file: str | None

    def __init__(self, submission: Submission, **kwargs: Any) -> None:
        self._submission = submission
        self.ui_url: str | None = None
        """Where the driver's Spark UI is; None until its log says so, and where no log line of it comes here."""
        self.on_ui: Callable[[], None] = lambda: None
        """Called once ``ui_url`` is known."""
        self._with_defaults = False  # whether spark-defaults.conf counts beside a properties file that is ours
        explicit = kwargs.pop("env_vars", None)
        py_files = kwargs.pop("py_files", None)
        super().__init__(conf=submission.conf(kwargs.pop("conf", None)), **kwargs)
        own_python = self.is_local and submission.runs_own_python(explicit, self._conf)
        self._py_files = py_files if own_python else submission.py_files(py_files)
        if self.is_local:
            self._conf = submission.local_conf(self._conf, own_python=own_python)
        self._env_vars = submission.environment(explicit, self._conf) if self.is_client_mode else explicit
        self._application_args = submission.arguments(os.getpid() if self.is_client_mode else None)

    @property
    def is_local(self) -> bool:
        """Whether the whole Spark application runs on this machine."""
        return str(self._connection["master"]).startswith("local")

    @property
    def is_client_mode(self) -> bool:
        """Whether the driver is a child of this process, so that signals reach it."""
        return self._connection["deploy_mode"] != "cluster"

    @property
    def submit_pid(self) -> int | None:
        """The process of spark-submit, which in client mode becomes the driver's JVM; None before it was started."""
        return None if self._submit_sp is None else self._submit_sp.pid

    @property
    def exit_code(self) -> int | None:
        """How spark-submit ended; None while it runs or if it never started. Negative: killed by that signal."""
        return None if self._submit_sp is None else self._submit_sp.poll()

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Run spark-submit to its end. In client mode it gets a session of its own.

        Airflow signals a task's whole process group; a JVM that got SIGTERM would take the tasks away before they drained.
        """
        if self.is_client_mode:
            kwargs.setdefault("start_new_session", True)
            return super().submit(application, **kwargs)
        with tempfile.TemporaryDirectory(prefix="sluiceway-submit-") as folder:
            self._hand_over_by_file(Path(folder) / "spark.properties")
            return super().submit(application, **kwargs)

    def leave_the_driver(self) -> None:
        """Have spark-submit end once the driver is on its way, for a task that waits elsewhere."""
        # Else the hook takes a spark-submit that does not stay to see the pod's exit code for a failed one.
        self._track_driver_via_k8s_api = self._is_kubernetes and not self.is_client_mode

    def _build_spark_common_args(self) -> list[str]:
        """Keep variables off the command line, which any user of the machine can read."""
        variables = self._env_vars
        if self.is_client_mode and variables:
            self._env = variables  # of spark-submit itself, whose child the driver is
            self._env_vars = None
        try:
            arguments: list[str] = super()._build_spark_common_args()
        finally:
            self._env_vars = variables
        return [*arguments, "--load-spark-defaults"] if self._with_defaults else arguments

    def _hand_over_by_file(self, file: Path) -> None:
        """Put what a driver in a cluster takes from Airflow into a properties file, beside those of the user's own."""
        variables = dict(self._env_vars or {})
        secrets = variables.pop(HANDED_OVER, None)
        if secrets is None:
            return
        if not (self._is_yarn or self._is_kubernetes):
            raise AirflowException(
                f"Connector {self._submission.connector}: a standalone Spark master hands nothing to a driver in cluster mode, "
                "so kafka_conn_id and ${airflow:...} cannot be used there; run the driver with deploy-mode=client."
            )
        prefix = "spark.yarn.appMasterEnv" if self._is_yarn else "spark.kubernetes.driverEnv"
        own = Path(self._properties_file).read_text(encoding="utf-8") if self._properties_file else ""
        file.touch(mode=0o600)
        file.write_text(f"{own}\n{prefix}.{HANDED_OVER}={_escaped(str(secrets))}\n", encoding="utf-8")
        self._with_defaults = not self._properties_file
        self._properties_file = str(file)
        self._env_vars = variables or None

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(map(self._look_for_ui, itr))

    def _look_for_ui(self, line: Any) -> Any:
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
            self.log.info("There is no Airflow connection %s; Spark runs in local mode", self._conn_id)
        return connection

    def _connection_exists(self) -> bool:
        try:
            self.get_connection(self._conn_id)
        except AirflowNotFoundException:
            return False
        return True


def _escaped(text: str) -> str:
    """Return a value as a Java properties file holds it; JSON has no line ends and, from Python, nothing but ASCII."""
    return text.replace("\\", "\\\\")
