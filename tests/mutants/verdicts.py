"""Decides whether the tests notice a mutant."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mutants.mutant import Mutant, StaleError
from mutants.scratch import Outcome, Scratch

LIMIT = 300.0
"""The longest run of tests, in seconds. Tests that take longer on a mutant, and do not without it, notice it."""

NOTICED, SURVIVED, STALE, UNKNOWN = "noticed", "SURVIVED", "STALE", "UNKNOWN"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: noticed, by which test, after how many seconds; or why it was not."""

    id: str
    result: str
    by: str
    seconds: float


def judge(scratch: Scratch, mutant: Mutant, tests: Sequence[str], known: str | None) -> Verdict:
    """Run tests on a mutant until one fails: ``known``, which noticed it before, then the first of ``tests``, then all others."""
    began = time.monotonic()

    def verdict(result: str, by: str) -> Verdict:
        return Verdict(mutant.id, result, by, time.monotonic() - began)

    ran = False
    try:
        for group in _groups(tests, known):
            with scratch.broken(mutant):
                outcome = scratch.run(group, LIMIT)
            if outcome.failed or outcome.timed_out:
                noticing = list(outcome.failed[:1]) or group
                return verdict(_proven(scratch.run(noticing, LIMIT)), noticing[0])
            ran |= outcome.ran
    except StaleError as error:
        return verdict(STALE, str(error))
    if not ran:
        return verdict(UNKNOWN, "no test was run: `make mutants-map` finds those that reach the place")
    return verdict(SURVIVED, f"no test of {', '.join(tests)}")


def _proven(unbroken: Outcome) -> str:
    """Judge tests that failed, or took too long, on a mutant by their end without it."""
    return NOTICED if unbroken.ran and not unbroken.failed and not unbroken.timed_out else UNKNOWN


def _groups(tests: Sequence[str], known: str | None) -> list[list[str]]:
    groups = [[] if known is None else [known], list(tests[:1]), list(tests[1:])]
    return [group for group in groups if group]
