"""The DAG bundle that holds a DAG for each connector in the config topic."""

from __future__ import annotations

import gc
import logging
import time
from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.base import BaseDagBundle

from sluiceway.errors import ConnectError
from sluiceway.folders import file_lock, write_atomically
from sluiceway.provider.dag_bundle.stubs import stubs, write_stubs
from sluiceway.provider.settings import read_settings

log = logging.getLogger(__name__)

_MARKER = "refreshed"
_FIRST_PATIENCE = 30.0  # a task has nothing else to do than wait for Kafka
_PATIENCE = 5.0  # a DAG processor has other bundles to see to, and asks again
_LONGEST_REST = 60.0


class ConnectorDagBundle(BaseDagBundle):
    """One file for each connector, written from the config topic. Used by the DAG processor and by every task's process.

    Without versions on purpose: a connector that is started again must see its newest config.

    Args:
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``.
        max_age: a folder that a DAG processor refreshed within so many seconds is used as it is, so that tasks on its machine
            start without asking Kafka; elsewhere each task asks. Default is three times ``refresh_interval``.
    """

    supports_versioning = False

    def __init__(self, *, worker_properties: str | None = None, max_age: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._worker_properties = worker_properties
        self._max_age = 3.0 * self.refresh_interval if max_age is None else max_age
        self._problem: str | None = None
        self._failures = 0
        self._rest_until = 0.0

    @property
    def path(self) -> Path:
        return self.base_dir / "dags"

    def initialize(self) -> None:
        """Make sure that the folder holds the present stubs; asks Kafka only where no DAG processor keeps it so."""
        if not self._is_kept_fresh():
            self._update(_FIRST_PATIENCE)
        super().initialize()

    def get_current_version(self) -> None:
        """Return None: connectors have no versions here."""

    def refresh(self) -> None:
        """Write the stubs of the connectors that there are now; the DAG processor calls this again and again.

        It waits for this, so Kafka is given little time, and after each failure is left alone for longer, up to a minute.
        """
        if time.monotonic() < self._rest_until:
            return
        if self._update(_PATIENCE):
            self._failures, self._rest_until = 0, 0.0
            write_atomically(self.base_dir / _MARKER, "")
        else:
            self._failures = min(self._failures + 1, 10)
            self._rest_until = time.monotonic() + min(_PATIENCE * 2**self._failures, _LONGEST_REST)

    def _update(self, patience: float) -> bool:
        try:
            return self._write(patience)
        finally:
            # The DAG processor forks next. A Kafka client that is garbage has to go before: collected in the new process, it
            # waits for threads that are not there, and the file's processor hangs until it is killed.
            gc.collect()

    def _write(self, patience: float) -> bool:
        """With Kafka out of reach, the stubs of before stay: running connectors must not lose their DAGs."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with file_lock(self.base_dir / "lock"):
                changed = write_stubs(self.path, self._read(patience))
        except ConnectError as error:
            problem = str(error)  # the error itself holds what it was raised in, clients and all
            if problem != self._problem:
                log.warning("The DAGs of bundle %s stay as they are until this is over: %s", self.name, problem)
            self._problem = problem
            return False
        if self._problem is not None:
            log.info("The DAGs of bundle %s follow the config topic again", self.name)
            self._problem = None
        if changed:
            log.info("Bundle %s: changed %s", self.name, ", ".join(changed))
        return True

    def _read(self, patience: float) -> dict[str, str]:
        from sluiceway.kafka.clients import admin_client
        from sluiceway.kafka.errors import mapped_errors
        from sluiceway.storage.config_backing_store import KafkaConfigBackingStore

        worker = read_settings().worker(self._worker_properties)
        with mapped_errors(f"reach Kafka at {worker.bootstrap_servers}"):
            admin_client(worker).list_topics(timeout=patience)
        # Opened for each refresh: a Kafka client does not live through a fork.
        store = KafkaConfigBackingStore(worker)
        store.start()
        try:
            return stubs(store.snapshot())
        finally:
            store.stop()

    def _is_kept_fresh(self) -> bool:
        try:
            age = time.time() - (self.base_dir / _MARKER).stat().st_mtime
        except OSError:
            return False
        return age < self._max_age
