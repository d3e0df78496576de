"""Tests of the delays and messages of a driver's restarts."""

from __future__ import annotations

from sluiceway.exit_codes import APPLICATION_ENDED, DONE
from sluiceway.provider.driver.outcome import DriverRestarts, death_cause


def test_delays_double_from_a_second_to_a_minute() -> None:
    restarts = DriverRestarts()
    assert [restarts.next_delay(30.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    restarts.number = 10**6
    assert restarts.next_delay(30.0) == 60


def test_ten_minutes_without_a_death_reset_number_and_delay() -> None:
    restarts = DriverRestarts(7)
    assert restarts.next_delay(599.0) == 60
    assert restarts.next_delay(600.0) == 1
    assert restarts.number == 1


def test_the_notice_names_cause_number_and_delay() -> None:
    restarts = DriverRestarts(2)
    assert restarts.notice(-9, restarts.next_delay(0.0)) == (
        "The driver died with exit code -9; see its last lines in the log of its Airflow task, which starts it again in 4 s "
        "(restart 3 since it last ran for ten minutes)."
    )


def test_the_cause_distinguishes_the_end_of_the_application_and_a_normal_exit_code() -> None:
    assert death_cause(137) == "the driver died with exit code 137"
    assert death_cause(1, "E: no") == "the driver died with exit code 1 (E: no)"
    assert "the Spark application has ended" in death_cause(APPLICATION_ENDED)
    assert death_cause(DONE) == "the driver has ended although it must run"
