"""The twelve checks of Java plugins beside Kafka Connect: measured figures, and the tests that show the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from support.toggles import table as table_of

__all__ = ["Case", "Figures", "Limit", "checks_of", "run_checks", "table_of"]


class Limit(NamedTuple):
    """The lowest ratio of records per second to the peer's, and the most CPU seconds for a million records, if there is one."""

    ratio: float
    cpu: float | None = None


class Case(NamedTuple):
    """A connector to measure: the bench's method that runs it, and further keys of its config."""

    name: str
    method: str
    options: Mapping[str, str]
    limit: Limit


class Figures(NamedTuple):
    """The median ratio of records per second, and the CPU seconds for a million records."""

    ratio: float
    own_cpu: float
    peer_cpu: float


def checks_of(figures: Mapping[str, Figures]) -> Sequence[tuple[str, str, str]]:
    return []


def run_checks(checks: Sequence[tuple[str, str, str]]) -> None:
    print(table_of(("check", "result", "shown by"), checks))
