"""The wheel in an existing Airflow: ``pip install`` and the settings that the command prints."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sluiceway
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.storage.factory import open_stores
from support.wheel import build_wheel

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1200)]


class Installed:
    """A virtual environment with this one's packages and the wheel instead of the project's sources."""

    def __init__(self, folder: Path) -> None:
        self._venv = folder / "venv"
        self.home = folder / "airflow"
        self.home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self._venv)], check=True)
        self._python = self._venv / "bin" / "python"
        self.site = next((self._venv / "lib").glob("python*")) / "site-packages"
        # A .pth file in a folder that a .pth file names is not read, so the editable install is out of the way.
        (self.site / "there-before.pth").write_text(sysconfig.get_path("purelib") + "\n")
        wheel = build_wheel(folder)
        pip = [sys.executable, "-m", "pip", "--python", str(self._python), "install", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--ignore-installed", str(wheel)], check=True)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "PYTHON"))},
            "PATH": os.pathsep.join((str(self._venv / "bin"), os.environ["PATH"])),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__API_AUTH__JWT_SECRET": "a secret for tests only, long enough for the algorithm that signs with it",
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(self.home / "bundles"),
        }

    def python(self, *arguments: str) -> str:
        """Run Python in the environment and return its output. A failure shows the output."""
        command = [str(self._python), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, cwd=self.home, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def airflow(self, *arguments: str) -> str:
        return self.python("-m", "airflow", *arguments)

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """Run an Airflow command that can print JSON."""
        # Some commands log to standard output before they print.
        rows: list[dict[str, Any]] = json.loads(self.airflow(*arguments, "--output", "json").splitlines()[-1])
        return rows


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


def test_the_wheel_is_what_is_imported(installed: Installed) -> None:
    for module in ("sluiceway", "sluiceway.operators", "sluiceway.sensors", "sluiceway.dags"):
        printed = installed.python("-c", f"import {module}; print({module}.__file__)")
        assert Path(printed.strip()).is_relative_to(installed.site)


def test_airflow_lists_provider_connection_type_and_options(installed: Installed) -> None:
    [provider] = [row for row in installed.rows("providers", "list") if row["package_name"] == "sluiceway"]
    assert provider["version"] == sluiceway.__version__
    [hook] = [row for row in installed.rows("providers", "hooks") if row["connection_type"] == "kafka_connect"]
    assert hook["class"] == "sluiceway.provider.hooks.kafka_connect.KafkaConnectHook"
    links = "".join(str(row) for row in installed.rows("providers", "links"))
    assert "sluiceway.provider.links.SparkUiLink" in links
    assert installed.airflow("config", "get-value", "sluiceway", "pause_poll_interval").strip().endswith("1.0")


def test_airflow_loads_the_plugin(installed: Installed) -> None:
    [plugin] = [row for row in installed.rows("plugins") if row["name"] == "sluiceway"]
    assert "/sluiceway" in str(plugin["fastapi_apps"])


def test_airflows_command_line_has_the_subcommands(installed: Installed) -> None:
    printed = installed.airflow("sluiceway", "--help")
    assert "restart connectors, their tasks, or only the failed ones" in printed
    assert "--only-failed" in installed.airflow("sluiceway", "restart", "--help")


def test_the_printed_settings_generate_a_dag_for_each_connector(
    installed: Installed, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    properties = {
        "bootstrap.servers": kafka_bootstrap,
        "group.id": unique("group"),
        **{f"{each}.storage.topic": unique(each) for each in ("config", "offset", "status")},
        **{f"{each}.storage.replication.factor": "1" for each in ("config", "offset", "status")},
    }
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    worker = WorkerConfig.of(properties)
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        herder.put_config("logs", {"connector.class": "FileStreamSource", "file": "/var/log/app.log", "topic": "logs"})
    (installed.home / "dags").mkdir()
    (installed.home / "dags" / "example.py").write_text("from sluiceway.dags.example_file_to_file import dag  # airflow\n")

    printed = installed.python("-m", "sluiceway.cli.main", "config", "airflow", str(file))
    installed.environment |= dict(line.split("=", 1) for line in shlex.split(printed))
    installed.airflow("db", "migrate")
    installed.airflow("dag-processor", "--num-runs", "1")
    found = {row["dag_id"]: row["bundle_name"] for row in installed.rows("dags", "list")}
    assert found == {"logs": "connectors", "example_file_to_file": "dags-folder"}
