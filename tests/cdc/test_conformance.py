"""Debezium's recorded scenarios, run against our connectors: ``make test-cdc`` runs all, ``make test`` ten of PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cdc.engine_rest import serve
from cdc.lab import Lab
from support.database import HOST, PASSWORD, USER
from support.postgres import PostgresServer

pytestmark = pytest.mark.kafka

_KIT = Path(__file__).parent / "kit"
_SLICE = (
    "pg_(ops_(upsert|msg|pk_change_full)|types_(net|enum|time_adaptive)|ddl_same_tx|flt_truncate|toast_placeholder|tx_metadata)$"
)


def _compare(arguments: list[str], only: str, jobs: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "compare.py", *arguments, "--only", only, "--jobs", str(jobs), "given"]
    return subprocess.run(command, cwd=_KIT, capture_output=True, text=True, check=False)


def test_records_of_ten_postgresql_scenarios_are_debeziums(kafka_bootstrap: str) -> None:
    with PostgresServer() as postgres:
        rest = serve(kafka_bootstrap)
        try:
            url = f"postgresql://{USER}:{PASSWORD}@{HOST}:{postgres.port}/postgres"
            arguments = ["--rest", f"http://{HOST}:{rest.server_address[1]}", "--bootstrap", kafka_bootstrap, "--pg", url]
            result = _compare(arguments, _SLICE, 5)
        finally:
            rest.shutdown()
    assert result.returncode == 0, result.stdout + result.stderr
    assert "10/10 scenarios equal" in result.stdout


@pytest.mark.long
@pytest.mark.spark
def test_records_of_all_scenarios_are_debeziums(tmp_path: Path) -> None:
    with Lab(tmp_path) as lab:
        result = _compare(lab.arguments, ".", 4)
    print(result.stdout)
    assert result.returncode == 0, result.stdout[-20_000:] + result.stderr
