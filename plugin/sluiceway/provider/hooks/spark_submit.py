"""Submits a driver with spark-submit on Airflow's Spark connection, with local mode as the default if there is none.

Builds and runs the command itself, because what Airflow's own hook does is private, and differs between its versions.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sluiceway.config.environment import HANDED_OVER
from sluiceway.folders import scratch_folder_with_lock
from sluiceway.provider.compat import AirflowNotFoundException, BaseHook
from sluiceway.provider.driver.cluster_trackers import KubernetesTracker, StandaloneTracker, Tracker, YarnTracker, await_end
from sluiceway.provider.driver.kubernetes import SECRET_PREFIX, DriverSecret
from sluiceway.provider.driver.spark_connection import MASTER, SparkConnection
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.submit_file import Resolve, needs_settings_file, with_settings_file
from sluiceway.provider.driver.submit_options import SubmitOptions
from sluiceway.provider.driver.submit_plan import SubmitPlan, plan_submission
from sluiceway.provider.driver.submit_process import SubmitProcess, run_afterwards
from sluiceway.worker.start_gate import StartGate, StartSlot

_UPLOADS_JARS = (
    "Spark uploads its jars, about 400 MB, at each submission, because neither spark.yarn.archive nor spark.yarn.jars is set. To "
    "upload them once: python -m zipfile -c spark-jars.zip $SPARK_HOME/jars/*; hdfs dfs -put spark-jars.zip /apps/; then set "
    "spark.yarn.archive=hdfs:///apps/spark-jars.zip in spark-defaults.conf"
)
_RUNS = " is run by "  # in the line that a driver logs once it has a connector's lease
_starts = StartGate("driver", hold=30.0, patience=120.0)

_UI_STARTED = re.compile(r"Successfully started service 'SparkUI' on port (\d+)")
_APPLICATION = re.compile(r"application_[0-9]+_[0-9]+")  # YARN's
_DRIVER = re.compile(r"driver-[0-9]+-[0-9]+")  # a standalone master's
_EXIT_CODE = re.compile(r"exit code: (\d+)", re.IGNORECASE)  # of a pod


class ConnectorSubmitHook(BaseHook):
    """Submits a driver.

    The master is the first that is set of: ``spark.master`` in the conf, the Spark connection's, ``local[slots]``.

    Args:
        submission: the driver to submit.
        conf: the operator's Spark settings.
        conn_id: the Spark connection.
        options: the operator's other options.
        resolve: resolves references in Spark settings, just before they are written for spark-submit.

    ``ui_url`` is the address of the driver's Spark UI; None until the driver's log contains it, and always None in cluster mode.
    ``on_ui`` is called when it is known. ``on_interrupt`` is called when Airflow ends the task by an exception while spark-submit
    runs, with a function that waits for spark-submit's end.
    """

    def __init__(
        self,
        submission: Submission,
        *,
        conf: Mapping[Any, Any] | None = None,
        conn_id: str = "spark_default",
        options: SubmitOptions | None = None,
        resolve: Resolve = dict,
    ) -> None:
        super().__init__()
        self.ui_url: str | None = None
        self.on_ui: Callable[[], None] = lambda: None
        self.on_interrupt: Callable[[Callable[[], object]], None] = lambda await_end: None
        self.options = options or SubmitOptions()
        self._resolve = resolve
        connection = self._spark_connection(submission, conn_id, conf, self.options)
        self.plan = plan_submission(submission, connection, self.options, conf)
        self.driver_id: str | None = None
        """The cluster manager's id of the driver, from spark-submit's log; None in client mode."""
        self._killed = False
        self._detached = False
        self._process: SubmitProcess | None = None
        self._pod_exit_code: int | None = None
        self._secret: DriverSecret | None = None
        self._start_slot: StartSlot | None = None
        self._afterwards = tuple(self.options.post_submit_commands)
        self.tracker = self._chosen_tracker()
        """What is asked for the driver's state after spark-submit's end; None if spark-submit lasts as long as the driver."""
        if self.tracker is not None:
            self.detach_from_driver()

    @property
    def is_local(self) -> bool:
        """Return whether the whole Spark application runs on this machine."""
        return self.plan.connection.is_local

    @property
    def is_client_mode(self) -> bool:
        """Return whether the driver is a child of this process, so that it can be signalled."""
        return self.plan.connection.is_client_mode

    @property
    def submit_pid(self) -> int | None:
        """Return spark-submit's process id, in client mode also the driver's JVM; None before its start."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Return spark-submit's exit code, negative if a signal ended it; None before its start and while it runs."""
        return None if self._process is None else self._process.exit_code

    @property
    def last_error(self) -> str | None:
        """The last error in the output of spark-submit; None if there is none."""
        return None if self._process is None else self._process.error

    def detach_from_driver(self) -> None:
        """Make spark-submit end once the cluster has accepted the driver; raises AirflowFailException if settings forbid it."""
        if not self.is_client_mode:
            self.plan = self.plan.detached()
            self._detached = True

    def submit(self, application: str = "") -> str | None:
        """Run spark-submit and wait for its end; return ``driver_id``.

        In client mode it runs once it may start on this machine, and in a session of its own: Airflow signals a task's whole
        process group, and a JVM that received SIGTERM would end the tasks before they have drained.

        Raises:
            AirflowException: spark-submit has failed.
        """
        if self.plan.uploads_jars:
            self.log.warning(_UPLOADS_JARS)
        try:
            if self.is_client_mode:
                self._submit_here(application)
            elif self.plan.connection.is_kubernetes:
                self._submit_to_kubernetes(self.plan.image_application or application)
            else:
                self._run(application, self.plan)
        finally:
            if self.tracker is None:
                self._run_afterwards()
        return self.driver_id

    def await_end(self, driver_id: str) -> None:
        """Wait until a driver that ``tracker`` knows has ended; raises AirflowException if it has failed."""
        self.driver_id = driver_id
        try:
            if self.tracker is not None:
                await_end(self.tracker, driver_id)
        finally:
            self._run_afterwards()

    def on_kill(self) -> None:
        """End the driver, or keep it from starting."""
        self._killed = True
        runs = self._process is not None and self._process.exit_code is None
        if self._process is not None and runs:
            self.log.info("Ends spark-submit")
            self._process.kill()
        if self.driver_id is not None and (runs or self._detached):
            self._kill_in_cluster(self.driver_id)
        self._run_afterwards()

    def _spark_connection(
        self, submission: Submission, conn_id: str, conf: Mapping[Any, Any] | None, options: SubmitOptions
    ) -> SparkConnection:
        settings = submission.conf(conf)
        try:
            found = self.get_connection(conn_id)
        except AirflowNotFoundException:
            if MASTER not in settings:
                self.log.info("Airflow has no connection %s; Spark runs in local mode", conn_id)
                options = replace(options, deploy_mode=None)
                settings = {**settings, MASTER: f"local[{submission.local_slots}]"}
            found = None
        return SparkConnection.parse(conn_id, found, options, settings)

    def _chosen_tracker(self) -> Tracker | None:
        connection, options = self.plan.connection, self.plan.options
        if self.is_client_mode:
            return None
        if connection.is_standalone:  # there, spark-submit never waits for the driver
            return StandaloneTracker(connection, options.status_poll_interval)
        if connection.is_yarn and options.yarn_track_via_rm_api:
            return YarnTracker(connection, options)
        if connection.is_kubernetes and options.track_driver_via_k8s_api:
            return KubernetesTracker(options.status_poll_interval)
        return None

    def _submit_here(self, application: str) -> None:
        self._start_slot = _starts.enter(lambda: self._killed)
        if self._start_slot is None:
            return
        try:
            self._run(application, self.plan)
        finally:
            self._start_slot.release()

    def _submit_to_kubernetes(self, application: str) -> None:
        """Submit a driver that gets the values from Airflow by a Secret: a pod's description is no place for them."""
        plan = self.plan
        self.driver_id = f"{plan.namespace}:{plan.pod}"
        if plan.handed_over is None:
            self._run(application, plan)
            return
        self._secret = secret = DriverSecret.of_airflow(plan.namespace, plan.pod, plan.handed_over)
        secret.create()
        try:
            self._run(application, replace(plan, conf={**plan.conf, f"{SECRET_PREFIX}.{HANDED_OVER}": secret.reference}))
        finally:
            secret.close()

    def _run(self, application: str, plan: SubmitPlan) -> None:
        """Run spark-submit to its end; raises AirflowException if it or, where it waits for the driver, the driver has failed."""
        with scratch_folder_with_lock("submit") as (folder, lock):
            if needs_settings_file(plan):
                plan = with_settings_file(plan, folder / "spark.properties", self._resolve)
            if self.is_client_mode:
                plan = plan.with_folder(folder)
            self._await(application, plan, lock)

    def _await(self, application: str, plan: SubmitPlan, lock: int) -> None:
        self._process = process = SubmitProcess(
            plan.command(application), plan.environment, self._read_line, own_session=self.is_client_mode, keeps=(lock,)
        )
        try:
            code = process.wait()
        except BaseException as error:
            if not isinstance(error, Exception):  # Airflow's AirflowTaskTimeout, which it raises wherever the task is
                self.on_interrupt(process.wait)
            raise
        if code:
            raise process.failure(f"exit code {code}")
        if plan.connection.is_kubernetes and not self.is_client_mode and not self._detached and self._pod_exit_code != 0:
            raise process.failure(f"the driver pod's exit code is {self._pod_exit_code}")
        if self._detached and self.driver_id is None:
            raise process.failure("its output does not contain the driver's id")

    def _read_line(self, line: str) -> None:
        """Read the Spark UI's address, the driver's id and its end from a line of spark-submit's log."""
        if self._start_slot is not None and _RUNS in line:
            self._start_slot.release()
        connection = self.plan.connection
        if self.is_client_mode:
            found = _UI_STARTED.search(line) if self.ui_url is None else None
            if found:
                self.ui_url = f"http://{socket.gethostname()}:{found[1]}"
                self.on_ui()
        elif connection.is_kubernetes:
            if self._secret is not None and self.plan.pod in line:  # so the pod exists, and can own the Secret
                self._secret.give_to_pod()
            if found := _EXIT_CODE.search(line):
                self._pod_exit_code = int(found[1])
        elif self.driver_id is None and (found := (_APPLICATION if connection.is_yarn else _DRIVER).search(line)):
            self.driver_id = found[0]
            self.log.info("The cluster's id of the driver is %s", found[0])

    def _kill_in_cluster(self, driver_id: str) -> None:
        connection, options = self.plan.connection, self.plan.options
        if connection.is_kubernetes:
            KubernetesTracker(options.status_poll_interval).kill(driver_id)
        elif connection.is_standalone:
            StandaloneTracker(connection, options.status_poll_interval).kill(driver_id)
        elif connection.resource_manager is not None:
            YarnTracker(connection, options).kill(driver_id)
        else:
            self._kill_with_yarns_command(driver_id)

    def _kill_with_yarns_command(self, application: str) -> None:
        connection = self.plan.connection
        environment = {**os.environ, **self.plan.environment}
        if connection.keytab and connection.principal:
            from airflow.configuration import conf
            from airflow.security.kerberos import renew_from_kt

            renew_from_kt(connection.principal, connection.keytab, exit_on_fail=False)
            environment["KRB5CCNAME"] = conf.get_mandatory_value("kerberos", "ccache")
        try:
            ended = subprocess.run(
                ["yarn", "application", "-kill", application], env=environment, capture_output=True, text=True, check=False
            )
        except OSError as error:
            self.log.warning("YARN application %s cannot be ended: %s", application, error)
        else:
            self.log.info("Asked YARN to end application %s; exit code %d", application, ended.returncode)

    def _run_afterwards(self) -> None:
        commands, self._afterwards = self._afterwards, ()
        run_afterwards(commands)
