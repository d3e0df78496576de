"""Chooses the mutants of a day: the same on every machine, others on the next day."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping

from mutants.catalog import ALL
from mutants.mutant import Mutant
from mutants.verdicts import NOTICED, Verdict

_COUNT = 10
_MOST_SECONDS = 6.0


def of_the_day(day: dt.date, known: Mapping[str, Verdict]) -> list[Mutant]:
    """Return ten mutants that a unit test notices within seconds, by the verdicts of the last full run."""
    quick = [mutant for mutant in ALL if mutant.id in known and _is_quick(known[mutant.id])]
    return random.Random(day.isoformat()).sample(quick, _COUNT)  # noqa: S311 (a choice, not a secret)


def _is_quick(verdict: Verdict) -> bool:
    return verdict.result == NOTICED and verdict.by.startswith("tests/unit/") and verdict.seconds <= _MOST_SECONDS
