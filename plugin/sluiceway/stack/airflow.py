"""Airflow on this machine: its settings, its database, its four components as background processes."""

from __future__ import annotations

import importlib.metadata
import json
import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sluiceway.errors import ConnectError
from sluiceway.folders import file_lock, write_atomically
from sluiceway.java_runtime import find_java
from sluiceway.provider.settings import airflow_settings
from sluiceway.stack.process import BackgroundProcess

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
HOST = "127.0.0.1"
PREFERRED_PORT = 8080

MARKER_VARIABLE = "SLUICEWAY_STACK"
"""In the environment of every process of a stack, whatever became of its parent; its value is the state folder."""

_PREFIX = "AIRFLOW__"
_DATABASE = f"{_PREFIX}DATABASE__SQL_ALCHEMY_CONN"
_SECRET_BYTES = 64
_LEFTOVERS_SECONDS = 10.0
_DATABASE_LOCK_SECONDS = 60
_HEALTH_KEYS = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}


class LocalAirflow:
    """An Airflow whose database, logs and DAGs folder lie in ``home``.

    Args:
        home: the folder; also AIRFLOW_HOME.
        state_dir: the stack's folder, for pid files and logs of the components.
        worker_file: the worker's properties file that its connectors use.
        ports: of the API server, and of the two log servers (keys ``api``, ``worker-logs``, ``trigger-logs``).
        settings: Airflow's settings, as ``SECTION__OPTION``, that win over those chosen here, such as another database.
    """

    def __init__(
        self, home: Path, state_dir: Path, worker_file: Path, ports: Mapping[str, int], settings: Mapping[str, str] | None = None
    ) -> None:
        self.home = home
        self.ports = dict(ports)
        self._worker_file = worker_file
        self._state_dir = state_dir
        self.url = f"http://{HOST}:{self.ports['api']}"
        self._own_settings = {f"{_PREFIX}{key}": value for key, value in (settings or {}).items()}
        self._environment: dict[str, str] | None = None

    def environment(self) -> dict[str, str]:
        """Return the variables that all components share. Makes the token secret at the first call ever."""
        if self._environment is None:
            java = str(find_java().home)
            path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
            base = {"PATH": path, "JAVA_HOME": java, MARKER_VARIABLE: str(self._state_dir), "AIRFLOW_HOME": str(self.home)}
            local = _settings(self.home, self.ports, self._secret())
            self._environment = {**base, **local, **airflow_settings(self._worker_file), **self._own_settings}
        return self._environment

    def migrate(self) -> bool:
        """Make or upgrade the database, unless this version of Airflow has done so; whether it was done now. Some 10 s.

        Raises ConnectError with Airflow's own words if it fails.
        """
        (self.home / "dags").mkdir(parents=True, exist_ok=True)
        marker = self.home / "migrated"
        version = importlib.metadata.version("apache-airflow-core")
        with file_lock(self.home / "migrate.lock"):
            there = _DATABASE in self._own_settings or (self.home / "airflow.db").exists()
            if marker.exists() and marker.read_text() == version and there:
                return False
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            environment = {**os.environ, **self.environment()}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=self.home, check=False)
            if done.returncode != 0:
                tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
                raise ConnectError(f"'airflow db migrate' failed with exit code {done.returncode}:\n{tail}")
            write_atomically(marker, version)
            return True

    def process(self, component: str) -> BackgroundProcess:
        """Return a component as a background process, started or not."""
        return airflow_process(component, self._state_dir, self.environment())

    def start(self) -> float:
        """Start the components that do not run, all at once; return the time before that, in seconds since the epoch."""
        began = time.time()
        for component in COMPONENTS:
            process = self.process(component)
            if not process.is_running():
                process.stop(_LEFTOVERS_SECONDS)  # the children of one that was killed would get in the way
            process.start()
        return began

    def unhealthy(self, since: float) -> list[str]:
        """Return the components that have not reported to be well since that time (seconds since the epoch)."""
        mine = self.process("api-server").listens_on(self.ports["api"])
        health = self._health() if mine else None
        return ["api-server", *_HEALTH_KEYS] if health is None else unhealthy(health, since)

    def _health(self) -> dict[str, Any] | None:
        try:
            # Tasks ask this one. Its first answer takes the API server seconds, which the first task would have to wait for.
            self._ask("/execution/health")
            document = self._ask("/api/v2/monitor/health")
        except (OSError, ValueError, urllib.error.URLError):
            return None
        return document if isinstance(document, dict) else None

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:  # noqa: S310 (our own)
            return json.load(answer)

    def _secret(self) -> str:
        path = self.home / "jwt-secret"
        with file_lock(self.home / "jwt-secret.lock"):
            if not path.exists():
                write_atomically(path, secrets.token_urlsafe(_SECRET_BYTES), mode=0o600)
            return path.read_text()


def airflow_process(component: str, state_dir: Path, environment: Mapping[str, str] | None = None) -> BackgroundProcess:
    """Return a component's process; without an environment for watching and stopping only."""
    command = [sys.executable, "-m", "airflow", component]
    return BackgroundProcess(f"airflow-{component}", command, state_dir, env=environment)


def unhealthy(health: Mapping[str, Any], since: float) -> list[str]:
    """Return the components that the health report does not call healthy, or whose heartbeat is from before; pure."""
    ill = []
    for component, key in _HEALTH_KEYS.items():
        part = health.get(key) or {}
        beat = part.get(f"latest_{key}_heartbeat")
        beaten = datetime.fromisoformat(beat.replace("Z", "+00:00")).timestamp() if beat else 0.0
        # An earlier run that was killed moments ago still looks healthy; its heartbeat tells.
        if part.get("status") != "healthy" or beaten < since:
            ill.append(component)
    return ill


def _settings(home: Path, ports: Mapping[str, int], secret: str) -> dict[str, str]:
    url = f"http://{HOST}:{ports['api']}"
    settings = {
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "16",
        "CORE__DAGS_FOLDER": str(home / "dags"),
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # Everyone who reaches the port is an administrator, so it listens on this machine only.
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "5",
        # Writers queue at SQLite's one lock; on a busy machine the driver's own 5 s are too few, and a request fails with 500.
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout={_DATABASE_LOCK_SECONDS}",
        "API__HOST": HOST,
        "API__PORT": str(ports["api"]),
        "API__BASE_URL": url,
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": secret,
        "LOGGING__WORKER_LOG_SERVER_PORT": str(ports["worker-logs"]),
        "LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports["trigger-logs"]),
        "LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        # The default is in the system's temporary folder.
        "DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(home / "bundles"),
        # How soon a new file in the DAGs folder is seen; the default is 5 minutes.
        "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "1",
        # What a killed stack left behind is taken up again within seconds, not minutes.
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
        "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        # A task that is to end, or has ended, is noticed when its next heartbeat is due; the default is 5 s.
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return {f"{_PREFIX}{key}": value for key, value in settings.items()}
