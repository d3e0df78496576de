"""Pauses between attempts double up to a limit, and begin again after a success."""

from __future__ import annotations

import pytest

from sluiceway.backoff import Backoff, pause_after


def test_pauses_double_up_to_the_limit_and_begin_again_after_a_success() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.failures == 5
    backoff.reset()
    assert backoff.next() == 0.5


@pytest.mark.parametrize("failures", [41, 1_000, 10**9])
def test_any_number_of_failures_has_a_pause(failures: int) -> None:
    assert pause_after(failures, 0.1, 60.0) == 60.0
