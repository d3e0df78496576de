"""The DAG bundle that contains a DAG for each connector in the config topic."""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from airflow.configuration import AIRFLOW_HOME, conf
from airflow.dag_processing.bundles.base import BaseDagBundle

from sluiceway.backoff import Backoff
from sluiceway.errors import ConnectError
from sluiceway.folders import file_lock, write_atomically
from sluiceway.provider.dag_bundle.stubs import stubs, write_stubs
from sluiceway.provider.pause_sync.rules import generated
from sluiceway.provider.settings import read_settings
from sluiceway.storage.model import ClusterState

log = logging.getLogger(__name__)

_MARKER = "refreshed"
_TAKEN = "taken.json"
_TASK_TIMEOUT_SECONDS = 30.0  # a task cannot start without its DAG
_REFRESH_TIMEOUT_SECONDS = 5.0  # the DAG processor must refresh its other bundles too, and retries
_MAX_BACKOFF_SECONDS = 60.0

# What a stub imports, and what Airflow imports to serialize any DAG. Airflow forks the DAG processor for each file; a fork that
# finds them imported takes a tenth of the processor time. Airflow itself imports only modules of its own that a file names.
_PARSED_WITH = (
    "sluiceway.operators",
    "sluiceway.provider.dag_bundle.connector_dag",
    "airflow.providers.standard.operators.trigger_dagrun",
    "airflow.providers.standard.sensors.external_task",
)


class ConnectorDagBundle(BaseDagBundle):
    """One file for each connector, written from the config topic. Runs in the DAG processor and in every task's process.

    Unversioned, so that a restarted connector gets its newest config. In ``[dag_processor] dag_bundle_config_list`` it is
    ``sluiceway.provider.bundle.ConnectorDagBundle``.

    Args:
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``.
        max_age: seconds for which a task uses a folder that a DAG processor on its machine has refreshed, without reading Kafka.
            Default is three times ``refresh_interval``.
    """

    supports_versioning = False

    def __init__(self, *, worker_properties: str | None = None, max_age: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.base_dir = _own_folder(self.base_dir, self.name)
        self._worker_properties = worker_properties
        self._max_age = 3.0 * self.refresh_interval if max_age is None else max_age
        self._problem: str | None = None
        self._backoff = Backoff(2 * _REFRESH_TIMEOUT_SECONDS, _MAX_BACKOFF_SECONDS)
        self._retry_at = 0.0

    @property
    def path(self) -> Path:
        """Return the folder of the DAG files."""
        return self.base_dir / "dags"

    def initialize(self) -> None:
        """Update the DAG files, unless a DAG processor on this machine has refreshed them within ``max_age``."""
        if not self._is_fresh():
            self._update(_TASK_TIMEOUT_SECONDS, ask_airflow=False)
        super().initialize()

    def get_current_version(self) -> None:
        """Return None: the bundle is unversioned."""

    def refresh(self) -> None:
        """Update the DAG files. The DAG processor calls this at each ``refresh_interval``, and waits for it.

        Waits at most 5 s for Kafka. After a failure, returns at once until a back-off of up to 60 s has passed.
        """
        import_for_parsing()
        if time.monotonic() < self._retry_at:
            return
        if self._update(_REFRESH_TIMEOUT_SECONDS, ask_airflow=True):
            self._backoff.reset()
            self._retry_at = 0.0
            write_atomically(self.base_dir / _MARKER, "")
        else:
            self._retry_at = time.monotonic() + self._backoff.next()

    def _update(self, timeout: float, *, ask_airflow: bool) -> bool:
        try:
            return self._write(timeout, ask_airflow=ask_airflow)
        finally:
            # The DAG processor forks next. Collect Kafka clients before: collected in the child process, a client waits for
            # threads that do not exist there, and the child hangs until it is killed.
            gc.collect()

    def _write(self, timeout: float, *, ask_airflow: bool) -> bool:
        """Write the stubs; return False if Kafka does not answer. The old stubs stay: running connectors need their DAGs."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with file_lock(self.base_dir / "lock"):
                changed = write_stubs(self.path, self._read(timeout, ask_airflow=ask_airflow))
        except ConnectError as error:
            problem = str(error)  # the error itself refers to the frames that raised it, and so to Kafka clients
            if problem != self._problem:
                log.warning("Bundle %s keeps its present DAGs until Kafka answers: %s", self.name, problem)
            self._problem = problem
            return False
        if self._problem is not None:
            log.info("Bundle %s reads the config topic again", self.name)
            self._problem = None
        if changed:
            log.info("Bundle %s: changed %s", self.name, ", ".join(changed))
        return True

    def _read(self, timeout: float, *, ask_airflow: bool) -> dict[str, str]:
        """Return the stubs for the config topic; raises ConnectError, after ``timeout`` seconds if Kafka does not answer."""
        from sluiceway.kafka.clients import admin_client
        from sluiceway.kafka.errors import mapped_errors
        from sluiceway.storage.config_backing_store import KafkaConfigBackingStore

        worker = read_settings().worker(self._worker_properties)
        with mapped_errors(f"reach Kafka at {worker.bootstrap_servers}"):
            admin_client(worker).list_topics(timeout=timeout)
        # Opened for each refresh, because a Kafka client does not survive a fork.
        store = KafkaConfigBackingStore(worker, brief=True)
        store.start()
        try:
            state = store.snapshot()
            return stubs(state, self._taken(state, ask_airflow=ask_airflow))
        finally:
            store.stop()

    def _taken(self, state: ClusterState, *, ask_airflow: bool) -> dict[str, str]:
        """Return the other bundles that define DAGs of the connectors' ids, by DAG.

        Only the DAG processor has Airflow's database. A task's process, and a DAG processor whose database does not answer, use
        what was found last: otherwise a connector would replace somebody's DAG, or lose its own.
        """
        known = self.base_dir / _TAKEN
        if ask_airflow:
            from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase

            try:
                found = AirflowDatabase().other_bundles(list(generated(state)), self.name)
            except Exception as error:  # noqa: BLE001 (a database's driver raises any)
                log.warning("Bundle %s cannot read whether other bundles have DAGs of its connectors' ids: %s", self.name, error)
            else:
                write_atomically(known, json.dumps(found))
                return found
        try:
            return dict(json.loads(known.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}

    def _is_fresh(self) -> bool:
        try:
            age = time.time() - (self.base_dir / _MARKER).stat().st_mtime
        except OSError:
            return False
        return age < self._max_age


def _own_folder(airflows: Path, name: str) -> Path:
    """Return the bundle's folder: below Airflow's home, unless ``[dag_processor] dag_bundle_storage_path`` is set.

    Airflow's default is below the system's temporary folder. Two Airflows on one host would share it, and each would delete the
    DAGs of the other's connectors. It is used if the home cannot be written, as in a container with a read-only root.
    """
    home = Path(AIRFLOW_HOME)
    if conf.get("dag_processor", "dag_bundle_storage_path", fallback=None) or not os.access(home, os.W_OK):
        return airflows
    return home / "dag_bundles" / name


def import_for_parsing() -> None:
    """Import what the parse of a stub needs into this process, of which Airflow forks a child for each file."""
    for module in _PARSED_WITH:
        try:
            importlib.import_module(module)
        except ImportError as error:  # each parse reports it as an import error of its file, or does not need the module
            log.debug("Cannot import %s before parsing: %s", module, error)
