"""The fault matrix's results: a table row for each injected fault, printed at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from sluiceway.connectors.verifiable.checker import Verdict

#: The required rows of the fault matrix.
REQUIRED = frozenset({*range(1, 6), *range(7, 17), *range(19, 23), 24, *range(28, 32), *range(33, 36), *range(38, 41)})

_HEADINGS = ("row", "fault", "expected", "seen", "lost", "duplicated", "s to recover")


@dataclass(slots=True)
class Row:
    """One fault with expected and actual results. ``numbers`` are the matrix rows that it covers.

    ``seconds`` is the longest time to recover, None if not measured.
    """

    numbers: tuple[int, ...]
    fault: str
    expected: str
    seen: str = "did not finish"
    lost: int | None = None
    duplicated: int | None = None
    seconds: float | None = None
    holds: bool = False

    def judge(self, verdict: Verdict) -> None:
        """Add the counts of a verdict."""
        self.lost, self.duplicated = verdict.lost, verdict.duplicated
        self.seen = f"{verdict.total} records"
        if verdict.duplicated:
            self.seen += f", at most {verdict.largest_repeat} repeated in a row"
        if verdict.reordered:
            self.seen += f", {verdict.reordered} reordered"

    def recovered(self, seconds: float) -> None:
        """Add a recovery time in seconds; the longest is kept."""
        self.seconds = max(seconds, self.seconds or 0.0)

    def cells(self) -> list[str]:
        """Return the row's cells; those of a failed test say so."""
        seen = self.seen if self.holds else f"FAILED: {self.seen}"
        return [ranges(self.numbers), self.fault, self.expected, seen, *map(_cell, (self.lost, self.duplicated, self.seconds))]


NewRow = Callable[[str, str], Row]
"""Opens a line of the table for a fault and what is expected."""


def table(rows: Iterable[Row]) -> list[str]:
    """Return the table with a header, in the order of the matrix."""
    lines = [list(_HEADINGS), *(row.cells() for row in sorted(rows, key=lambda row: row.numbers))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def without_a_test(tested: Iterable[Sequence[int]]) -> str:
    """Return the required rows without a test, "none" if there is no such row."""
    return ranges(REQUIRED.difference(*tested)) or "none"


def without_a_line(rows: Iterable[Row]) -> str:
    """Return the required rows that no table row has confirmed, "none" if there is no such row."""
    return without_a_test(row.numbers for row in rows if row.holds)


def ranges(numbers: Collection[int]) -> str:
    """Format numbers as ranges: ``1-3, 5``."""
    ordered = sorted(set(numbers))
    starts = [each for each in ordered if each - 1 not in ordered]
    ends = [each for each in ordered if each + 1 not in ordered]
    return ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
