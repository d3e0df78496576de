"""Submits a driver with spark-submit: Airflow's hook, with local mode where no Spark connection is configured."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

from airflow.exceptions import AirflowNotFoundException
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from sluiceway.provider.submission import Submission

_MASTER = "spark.master"
_UI_STARTED = re.compile(r"Successfully started service 'SparkUI' on port (\d+)")


class ConnectorSubmitHook(SparkSubmitHook):
    """A SparkSubmitHook whose master is, in this order, ``spark.master`` of its conf, the connection's, ``local[slots]``.

    Where the driver is to run is only known here, so what depends on it is filled in here too.
    """

    _conf: dict[str, Any]

    def __init__(self, submission: Submission, **kwargs: Any) -> None:
        self._submission = submission
        self.ui_url: str | None = None
        """Where the driver's Spark UI is; None until its log says so, and where no log line of it comes here."""
        self.on_ui: Callable[[], None] = lambda: None
        """Called once ``ui_url`` is known."""
        explicit = kwargs.pop("env_vars", None)
        super().__init__(conf=submission.conf(kwargs.pop("conf", None)), **kwargs)
        if self.is_local:
            self._conf = submission.local_conf(self._conf)
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
