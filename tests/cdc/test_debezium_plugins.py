"""Debezium's recorded scenarios, run by Debezium's own Java connectors on our workers: every record must equal the recorded one.

JOBS scenarios run at a time. ONLY selects scenarios by a regular expression on their ids. The kit prints a line for each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.connect_cluster import ConnectCluster
from support.database import HOST, PASSWORD, USER
from support.eventually import LIMIT
from support.java_plugins import DEBEZIUM_MARIADB, DEBEZIUM_POSTGRES, fetch_runtime, plugin_folder
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer

KIT = Path(__file__).parent / "kit"

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "debezium-postgres", DEBEZIUM_POSTGRES)
    plugin_folder(folder, "debezium-mariadb", DEBEZIUM_MARIADB)
    return folder


def test_debezium_writes_the_recorded_records(
    kafka_bootstrap: str, unique: Callable[[str], str], postgresql_server: PostgresServer, tmp_path: Path, plugin_path: Path
) -> None:
    worker = {
        "plugin.path": str(plugin_path),
        "plugin.java": "prefer",
        "connector.client.config.override.policy": "All",
        "task.shutdown.graceful.timeout.ms": "30000",  # a busy machine needs more than 5 s to end a Java task in order
    }
    user = f"{USER}:{PASSWORD}@{HOST}"
    with MariaDbServer(binlog=True) as mariadb, ConnectCluster(kafka_bootstrap, unique("cdc"), tmp_path, worker) as cluster:
        servers = {
            "--rest": cluster.rest,
            "--bootstrap": kafka_bootstrap,
            "--pg": f"postgresql://{user}:{postgresql_server.port}/postgres",
            "--mariadb": f"mysql://{user}:{mariadb.port}/",
        }
        run = {
            "--jobs": os.environ.get("JOBS", "3"),
            "--only": os.environ.get("ONLY", "."),
            "--timeout": str(LIMIT),
            # The short life of these connectors does not repay the optimizing compiler.
            "--config": "sluiceway.java.opts=-XX:TieredStopAtLevel=1",
        }
        options = [part for option in {**servers, **run}.items() for part in option]
        done = subprocess.run([sys.executable, KIT / "compare.py", *options, KIT / "given"], check=False)
    assert done.returncode == 0, "scenarios differ, see above"
