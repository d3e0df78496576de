"""The process of a spark-submit: it cannot be started, and the wait for its end is interrupted."""

from __future__ import annotations

import os
import signal
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


_TWO_LINES = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("one")
signal.sigwait({signal.SIGUSR1})
print("two")
"""


class _Interrupt(BaseException):
    """As Airflow's AirflowTaskTimeout, which is raised wherever the task's main thread is."""


def test_an_interrupted_wait_leaves_the_process_alone_and_can_go_on() -> None:
    seen: list[str] = []

    def on_line(line: str) -> None:
        seen.append(line)
        if line == "one":
            raise _Interrupt

    process = SubmitProcess([sys.executable, "-uc", _TWO_LINES], {}, on_line)
    with pytest.raises(_Interrupt):
        process.wait()
    assert process.exit_code is None
    os.kill(process.pid, signal.SIGUSR1)
    assert process.wait() == 0
    assert seen == ["one", "two"]


def test_a_reader_of_lines_that_fails_does_so_after_the_end_of_the_process() -> None:
    def on_line(_line: str) -> None:
        raise ValueError("a defect")

    process = SubmitProcess([sys.executable, "-uc", "print('one'); print('two')"], {}, on_line)
    with pytest.raises(ValueError, match="a defect"):
        process.wait()
    assert process.exit_code == 0
