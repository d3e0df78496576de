"""The wait before a restart survives outages of Airflow, and says so once."""

from __future__ import annotations

import logging

import pytest

from sluiceway.errors import ConnectError
from sluiceway.provider.driver.waits import interruption


@pytest.mark.parametrize(
    ("error", "is_defect"), [(ConnectError("away"), False), (OSError("away"), False), (TypeError("away"), True)]
)
def test_an_outage_does_not_interrupt_and_is_logged_when_it_begins_and_ends(
    error: Exception, is_defect: bool, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[bool | Exception] = [error, error, error, False, error, True]

    def is_paused() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    interrupted = interruption(is_paused, lambda: False)
    with caplog.at_level(logging.INFO):
        assert [interrupted() for _ in range(6)] == [False, False, False, False, False, True]
    levels = [record.levelname for record in caplog.records]
    assert levels == ["WARNING", "INFO", "WARNING", "INFO"]
    assert [bool(record.exc_info) for record in caplog.records] == [is_defect, False, is_defect, False]
    assert "Cannot read whether the DAG is paused, trying again: away" in caplog.text


def test_a_task_that_airflow_ends_is_interrupted_without_asking() -> None:
    assert interruption(lambda: pytest.fail("asked"), lambda: True)()
