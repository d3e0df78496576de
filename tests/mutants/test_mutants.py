"""The mutants fit the product, and the tests notice those of today. ``make mutants`` tries all."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import pytest

from mutants import results
from mutants.catalog import ALL, CATALOG
from mutants.day import of_the_day
from mutants.mutant import ROOT, Mutant, StaleError
from mutants.scratch import Outcome, Scratch
from mutants.verdicts import NOTICED, STALE, SURVIVED, UNKNOWN, judge

_FEWEST = 120
_FEWEST_OF_A_CATEGORY = 8
_FEWEST_PERCENT = 95


@pytest.mark.parametrize("category", CATALOG)
def test_each_mutant_fits_its_module(category: str) -> None:
    mutants = CATALOG[category]
    assert len(mutants) >= _FEWEST_OF_A_CATEGORY
    for mutant in mutants:
        compile(mutant.applied((ROOT / mutant.path).read_text(encoding="utf-8")), mutant.path, "exec")


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert len({mutant.id for mutant in ALL} | set(CATALOG)) == len(ALL) + len(CATALOG)


def test_nearly_all_mutants_are_noticed() -> None:
    """The table may lack mutants that were added since the last run of all."""
    known = results.read()
    assert known.keys() <= {mutant.id for mutant in ALL}, "The table has mutants that are gone: remove their lines"
    assert len(ALL) >= _FEWEST
    noticed = sum(verdict.result == NOTICED for verdict in known.values())
    assert 100 * noticed >= _FEWEST_PERCENT * len(known)


def test_text_that_is_not_there_exactly_once_is_stale() -> None:
    mutant = Mutant("id", "module.py", "x = 1", "x = 2", "Nothing.")
    assert mutant.applied("y = 0\nx = 1\n") == "y = 0\nx = 2\n"
    assert mutant.span("y = 0\nx = 1\n") == range(2, 3)
    for text in ("", "x = 1\nx = 1\n"):
        with pytest.raises(StaleError, match="id is stale"):
            mutant.applied(text)


class FakeScratch:
    """Answers runs in order: those on a mutant, then one without it."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)
        self.runs: list[Sequence[str]] = []

    def broken(self, mutant: Mutant) -> AbstractContextManager[None]:
        mutant.applied("x = 1")
        return nullcontext()

    def run(self, tests: Sequence[str], _limit: float) -> Outcome:
        self.runs.append(tests)
        return self._outcomes.pop(0)


_FAILED, _PASSED, _LATE, _NO_TEST = Outcome(["a::b"]), Outcome(), Outcome(timed_out=True), Outcome(ran=False)


@pytest.mark.parametrize(
    ("outcomes", "result", "by"),
    [
        ([_FAILED, _PASSED], NOTICED, "a::b"),
        ([_FAILED, _FAILED], UNKNOWN, "a::b"),  # a test that fails anyway
        ([_LATE, _PASSED], NOTICED, "known"),
        ([_LATE, _LATE], UNKNOWN, "known"),
        ([_NO_TEST, _PASSED, _FAILED, _PASSED], NOTICED, "a::b"),  # the known test has another name now
        ([_PASSED, _PASSED, _PASSED], SURVIVED, "no test of one, two, three"),
    ],
)
def test_a_mutant_is_noticed_by_a_test_that_passes_without_it(outcomes: list[Outcome], result: str, by: str) -> None:
    scratch = FakeScratch(*outcomes)
    verdict = judge(cast("Scratch", scratch), Mutant("id", "m", "1", "2", ""), ["one", "two", "three"], "known")
    assert (verdict.result, verdict.by) == (result, by)
    assert scratch.runs[0] == ["known"]


def test_nothing_is_known_of_a_mutant_without_tests_and_of_a_stale_one() -> None:
    assert judge(cast("Scratch", FakeScratch(_NO_TEST)), Mutant("id", "m", "1", "2", ""), ["gone"], None).result == UNKNOWN
    assert judge(cast("Scratch", FakeScratch()), Mutant("id", "m", "7", "2", ""), ["one"], None).result == STALE


@pytest.mark.timeout(1800)  # half a minute on an idle machine
def test_the_mutants_of_the_day_are_noticed() -> None:
    """In a process of its own, whose forks have nothing of what the tests here have imported."""
    today = dt.datetime.now(dt.timezone.utc).date()
    names = ",".join(mutant.id for mutant in of_the_day(today, results.read()))
    print(f"The mutants of {today}: make mutants ONLY={names}")
    command = [sys.executable, "-m", "mutants.run", "--only", names, "--jobs", "1", "--keep-table"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
