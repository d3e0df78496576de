"""Configures and runs a local Airflow: its settings, its database, and its four components as background processes."""

from __future__ import annotations

import functools
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
from sluiceway.provider import local_component
from sluiceway.provider.settings import airflow_settings
from sluiceway.stack.process import PRIVATE_UMASK, BackgroundProcess

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
HOST = local_component.HOST
PREFERRED_PORT = 8080

MARKER_VARIABLE = "SLUICEWAY_STACK"
"""Environment variable of every process of a stack, inherited by its children. Its value is the stack's state folder."""

_PREFIX = "AIRFLOW__"
_DATABASE = f"{_PREFIX}DATABASE__SQL_ALCHEMY_CONN"
_SECRET_BYTES = 64
_LEFTOVERS_SECONDS = 10.0
_DATABASE_LOCK_SECONDS = 60
_HEALTH_KEYS = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}


class LocalAirflow:
    """An Airflow with its database, logs and DAGs folder in ``home``.

    Args:
        home: AIRFLOW_HOME.
        state_dir: the stack's state folder, for the components' pid files and logs.
        worker_file: the worker's properties file for the connectors' drivers.
        ports: ports of the API server and the two log servers (keys ``api``, ``worker-logs``, ``trigger-logs``).
        settings: Airflow settings as ``SECTION__OPTION`` that override the stack's own, such as another database.
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

    def environment(self) -> dict[str, str]:
        """Return the environment variables of all components. Creates the JWT secret if ``home`` has none."""
        return self._environment

    @functools.cached_property
    def _environment(self) -> dict[str, str]:
        java = str(find_java().home)
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        base = {"PATH": path, "JAVA_HOME": java, MARKER_VARIABLE: str(self._state_dir), "AIRFLOW_HOME": str(self.home)}
        local = _settings(self.home, self.ports, self._secret())
        return {**base, **local, **airflow_settings(self._worker_file), **self._own_settings}

    def migrate(self) -> bool:
        """Create or upgrade the database unless this version of Airflow has done so, and return True if it was done now.

        Takes about 10 s. Raises ConnectError with the end of Airflow's output if it fails.
        """
        (self.home / "dags").mkdir(parents=True, exist_ok=True)
        marker = self.home / "migrated"
        version = importlib.metadata.version("apache-airflow-core")
        with file_lock(self.home / "migrate.lock"):
            exists = _DATABASE in self._own_settings or (self.home / "airflow.db").exists()
            if marker.exists() and marker.read_text() == version and exists:
                return False
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            environment = {**os.environ, **self.environment()}
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                cwd=self.home,
                check=False,
                umask=PRIVATE_UMASK,
            )
            if done.returncode != 0:
                tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
                raise ConnectError(f"'airflow db migrate' failed with exit code {done.returncode}:\n{tail}")
            write_atomically(marker, version, mode=0o600)
            return True

    def process(self, component: str) -> BackgroundProcess:
        """Return a component's background process, which may or may not run."""
        return airflow_process(component, self._state_dir, self.environment())

    def start(self) -> float:
        """Start all components that do not run; return the time before the start, in seconds since the epoch."""
        before = time.time()
        for component in COMPONENTS:
            process = self.process(component)
            if not process.is_running():
                process.stop(_LEFTOVERS_SECONDS)  # kills children left by a killed component, which would hold its ports
            process.start()
        return before

    def unhealthy(self, since: float) -> list[str]:
        """Return the components that have not been reported healthy since that time (seconds since the epoch)."""
        mine = self.process("api-server").listens_on(self.ports["api"])
        health = self._health() if mine else None
        return ["api-server", *_HEALTH_KEYS] if health is None else unhealthy(health, since)

    def _health(self) -> dict[str, Any] | None:
        try:
            # Tasks use the execution API. Its first response takes seconds, so request it before the first task does.
            self._get("/execution/health")
            document = self._get("/api/v2/monitor/health")
        except (OSError, ValueError, urllib.error.URLError):
            return None
        return document if isinstance(document, dict) else None

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as response:  # noqa: S310 (a URL of ours)
            return json.load(response)

    def _secret(self) -> str:
        path = self.home / "jwt-secret"
        with file_lock(self.home / "jwt-secret.lock"):
            if not path.exists():
                write_atomically(path, secrets.token_urlsafe(_SECRET_BYTES), mode=0o600)
            return path.read_text()


def airflow_process(component: str, state_dir: Path, environment: Mapping[str, str] | None = None) -> BackgroundProcess:
    """Return a component's background process. Without ``environment`` it can be watched and stopped, but not started."""
    command = [sys.executable, "-m", local_component.__name__, component]
    # Below the scheduler, connectors write files for others, too.
    private = component != "scheduler"
    return BackgroundProcess(f"airflow-{component}", command, state_dir, env=environment, private=private)


def unhealthy(health: Mapping[str, Any], since: float) -> list[str]:
    """Return the components that are unhealthy by the health report or whose last heartbeat is older than ``since``. No I/O."""
    found = []
    for component, key in _HEALTH_KEYS.items():
        part = health.get(key) or {}
        text = part.get(f"latest_{key}_heartbeat")
        heartbeat = datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0.0
        # A component that was killed a moment ago still counts as healthy; only its heartbeat is too old.
        if part.get("status") != "healthy" or heartbeat < since:
            found.append(component)
    return found


def _settings(home: Path, ports: Mapping[str, int], secret: str) -> dict[str, str]:
    url = f"http://{HOST}:{ports['api']}"
    settings = {
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "16",
        "CORE__DAGS_FOLDER": str(home / "dags"),
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # Every client is an administrator, so the API server listens on the loopback interface only.
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "5",
        # SQLite has one lock for all writers. On a busy machine its default timeout of 5 s makes requests fail with status 500.
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout={_DATABASE_LOCK_SECONDS}",
        "API__HOST": HOST,
        "API__PORT": str(ports["api"]),
        "API__BASE_URL": url,
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": secret,
        "CORE__HOSTNAME_CALLABLE": f"{local_component.__name__}.{local_component.host.__name__}",
        "LOGGING__WORKER_LOG_SERVER_PORT": str(ports["worker-logs"]),
        "LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports["trigger-logs"]),
        "LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "LOGGING__FILE_TASK_HANDLER_NEW_FOLDER_PERMISSIONS": "0o700",
        "LOGGING__FILE_TASK_HANDLER_NEW_FILE_PERMISSIONS": "0o600",
        # Instead of the system's temporary folder.
        "DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(home / "bundles"),
        # Seconds until a new file in the DAGs folder is found; the default is 5 minutes.
        "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        # Resume tasks of a killed stack within about a minute, not five.
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        # A scheduler whose own heartbeat is older takes its running tasks for orphans, and starts them again. On a busy machine
        # it can be 30 s late, which is also the default.
        "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "60",
        # A task notices that it must end at its next heartbeat; the default is 5 s.
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return {f"{_PREFIX}{key}": value for key, value in settings.items()}
