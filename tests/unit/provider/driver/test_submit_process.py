"""A spark-submit that cannot be started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sluiceway.config.environment import HANDED_OVER
from sluiceway.provider.compat import AirflowFailException
from sluiceway.provider.driver.submit_process import SubmitProcess


def _lines(_line: str) -> None:
    """Take a line of the output."""


@pytest.mark.parametrize("found", ["nothing", "no program", "a folder"])
def test_a_program_that_is_not_there_fails_at_once_with_what_to_do(tmp_path: Path, found: str) -> None:
    program = tmp_path / "spark-submit"
    if found == "no program":
        program.write_text("text")
    elif found == "a folder":
        program.mkdir()
    with pytest.raises(AirflowFailException, match="pip install pyspark") as raised:
        SubmitProcess([str(program), "--version"], {}, _lines)
    assert str(raised.value).startswith(f"Cannot start {program}: ")


def test_a_driver_starts_without_airflows_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW_CONN_DB", "AIRFLOW_VAR_CODE", "_AIRFLOW_WWW_USER_PASSWORD"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "orders")
    lines: list[str] = []
    script = "import os; print(sorted(name for name, value in os.environ.items() if value in ('hunter2', 'orders', '{}')))"
    assert SubmitProcess([sys.executable, "-c", script], {HANDED_OVER: "{}"}, lines.append).wait() == 0
    assert [line.strip() for line in lines] == [f"['AIRFLOW_CTX_DAG_ID', '{HANDED_OVER}']"]
