from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from sluiceway.provider.compat import AirflowException
from sluiceway.provider.driver.submit_process import SubmitProcess, driver_line
from sluiceway.worker.log_context import _PrefixFormatter, log_to_stderr


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        (
            "2026-11-27 03:10:33,123 INFO [c|worker] Started (sluiceway.driver)",
            logging.INFO,
            "[c|worker] Started (sluiceway.driver)",
        ),
        ("2026-11-27 03:10:33,123 WARNING [c|task-0] slow (x)", logging.WARNING, "[c|task-0] slow (x)"),
        ("2026-11-27 03:10:33,123 ERROR [c|task-0] ", logging.ERROR, "[c|task-0] "),
        ("26/11/27 03:10:33 WARN Utils: the host name", logging.WARNING, "Utils: the host name"),
        ("26/11/27 03:10:33 FATAL Main: x", logging.CRITICAL, "Main: x"),
        ("26/11/27 03:10:33 LOUD Main: x", logging.DEBUG, "26/11/27 03:10:33 LOUD Main: x"),
        ("Traceback (most recent call last):", logging.DEBUG, "Traceback (most recent call last):"),
        ("the value 2026-11-27 03:10:33,123 ERROR x", logging.DEBUG, "the value 2026-11-27 03:10:33,123 ERROR x"),
        ("", logging.DEBUG, ""),
    ],
)
def test_a_line_has_its_own_level_or_that_of_the_line_before(line: str, level: int, text: str) -> None:
    assert driver_line(line, logging.DEBUG) == (level, text)


_DRIVER = """
import logging
from sluiceway.worker.log_context import log_to_stderr
log_to_stderr("[c|worker] ")
logging.getLogger("x").info("100 % started")
logging.getLogger("py4j.clientserver").info("Closing down clientserver connection")
try:
    raise ValueError("no table")
except ValueError:
    logging.getLogger("x").exception("failed")
logging.getLogger("x").warning("ends")
raise SystemExit(1)
"""


def test_the_tasks_log_has_a_drivers_lines_with_their_levels_and_one_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "driver.py").write_text(_DRIVER)
    with caplog.at_level(logging.DEBUG, "sluiceway.provider.driver.submit_process"):
        process = SubmitProcess([sys.executable, str(tmp_path / "driver.py"), "--conf", "long=command"], {}, lambda _line: None)
        code = process.wait()
    lines = [(each.levelname, each.getMessage()) for each in caplog.records[1:]]
    assert lines[:2] == [("INFO", "[c|worker] 100 % started (x)"), ("ERROR", "[c|worker] failed (x)")]
    assert lines[-2:] == [("ERROR", "ValueError: no table"), ("WARNING", "[c|worker] ends (x)")]
    assert not any("clientserver" in text for _, text in lines)
    assert process.error == "ValueError: no table"
    failure = process.failure(f"exit code {code}")
    assert isinstance(failure, AirflowException)
    assert "long=command" not in str(failure)
    assert "ValueError: no table" in str(failure)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Started", "[c|worker] Started"),
        ("[c|worker] Started", "[c|worker] Started"),
        ("[d|task-3] Moves", "[d|task-3] Moves"),
        ("[1, 2] are left", "[c|worker] [1, 2] are left"),
        ("", "[c|worker] "),
    ],
)
def test_a_line_has_one_prefix(message: str, shown: str) -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, message, (), None)
    assert driver_line(_PrefixFormatter("[c|worker] ").format(record), logging.DEBUG) == (logging.INFO, f"{shown} (x)")


def test_lines_are_read_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        log_to_stderr("[c|worker] ")
        logging.getLogger("x").error("a\nb")
    finally:
        root.handlers[:], root.level = before
    first, second = capsys.readouterr().err.splitlines()
    assert driver_line(first, logging.DEBUG) == (logging.ERROR, "[c|worker] a")
    assert driver_line(second, logging.ERROR) == (logging.ERROR, "b (x)")
