"""The errors of a round's jobs."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from sluiceway.errors import ConnectError, RetriableError
from sluiceway.spark.rounds.jobs import RoundRetries, _explained


def test_an_error_that_is_not_sparks_stays_as_it_is() -> None:
    error = ValueError("x")
    assert _explained(error) is error


@pytest.mark.parametrize("reason", ["ExecutorLostFailure (executor 1 exited)", "Python worker exited unexpectedly (crashed)"])
def test_a_lost_executor_or_worker_is_retried(reason: str) -> None:
    text = f"An error occurred while calling o1.collect.\n: x\nLost task 0.0 in stage 3.0 (TID 3) (host executor 1): {reason}"
    assert isinstance(_explained(Py4JError(text)), RetriableError)


def test_other_errors_name_their_cause_in_one_line() -> None:
    text = "An error occurred while calling o1.save.\n: x.Failed: no table\n\tat a.b\nCaused by: java.io.IOException: disk full"
    explained = _explained(Py4JError(text))
    assert isinstance(explained, ConnectError)
    assert not isinstance(explained, RetriableError)
    assert str(explained) == "Spark: x.Failed: no table Caused by: java.io.IOException: disk full"


def test_a_round_is_retried_with_growing_pauses_until_the_task_fails() -> None:
    retries = RoundRetries()
    away = RetriableError("the database is away")
    pauses = [retries.failed(away) for _ in range(12)]
    assert pauses == sorted(pauses)
    with pytest.raises(ConnectError, match=r"13 times in a row\. The last reason: the database is away"):
        retries.failed(away)
    retries.succeeded()
    assert retries.failed(away) == pauses[0]
