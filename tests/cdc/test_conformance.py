"""Debezium's recorded scenarios, run against our connectors: ``make test-cdc`` runs all, ``make test`` eleven of PostgreSQL."""

from __future__ import annotations

import json
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
    "pg_(ops_(upsert|msg|pk_change_full)|types_(net|enum|time_adaptive)|ddl_same_tx|flt_truncate|toast_placeholder|"
    "tx_metadata|pk_update_meta)$"
)

DIFFERENT = {
    "my_sig_kafka_channel": "the source offset has the offset of the last signal, so that no request is lost or executed twice",
    "nmy_defaults_exprs": "rows have the day on which they are written (curdate()): equal on the day of the recording only",
    "npg_sig_surrogate_null": "rows whose surrogate key is null are read, too",
    "npg_types_odd": "the inner arrays of text[][] are null; Debezium's are addresses of Java objects",
}
"""The scenarios that differ from their recordings, with the reason."""


def _compare(arguments: list[str], only: str, jobs: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "compare.py", *arguments, "--only", only, "--jobs", str(jobs), "given", "given2", "given3"]
    return subprocess.run(command, cwd=_KIT, capture_output=True, text=True, check=False)


def test_records_of_eleven_postgresql_scenarios_are_debeziums(kafka_bootstrap: str) -> None:
    with PostgresServer() as postgres:
        rest = serve(kafka_bootstrap)
        try:
            url = f"postgresql://{USER}:{PASSWORD}@{HOST}:{postgres.port}/postgres"
            arguments = ["--rest", f"http://{HOST}:{rest.server_address[1]}", "--bootstrap", kafka_bootstrap, "--pg", url]
            result = _compare(arguments, _SLICE, 5)
        finally:
            rest.shutdown()
    assert result.returncode == 0, result.stdout + result.stderr
    assert "11/11 scenarios equal" in result.stdout


@pytest.mark.long
@pytest.mark.spark
def test_records_of_all_scenarios_are_debeziums(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    with Lab(tmp_path) as lab:
        result = _compare([*lab.arguments, "--report", str(report)], ".", 4)
    print(result.stdout)
    assert report.exists(), result.stderr
    differing = {each["id"] for each in json.loads(report.read_text()) if each["differences"]}
    assert differing <= set(DIFFERENT), result.stdout[-20_000:]
