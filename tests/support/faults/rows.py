"""The fault matrix's results: one row for each fault, printed as a table at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields

from sluiceway.connectors.verifiable.checker import Verdict


@dataclass(slots=True)
class Row:
    """One fault: what was expected and what was seen. ``seconds`` is the longest time to recover, None if not measured."""

    fault: str
    expected: str
    seen: str = "did not finish"
    lost: int | None = None
    duplicated: int | None = None
    seconds: float | None = None

    def judge(self, verdict: Verdict) -> None:
        """Take the counts of a verdict, and its repeats for what was seen."""
        self.lost, self.duplicated = verdict.lost, verdict.duplicated
        self.seen = f"{verdict.total} records"
        if verdict.duplicated:
            self.seen += f", at most {verdict.largest_repeat} repeated in a row"
        if verdict.reordered:
            self.seen += f", {verdict.reordered} reordered"

    def recovered(self, seconds: float) -> None:
        """Note a time to recover; the longest is kept."""
        self.seconds = max(seconds, self.seconds or 0.0)


NewRow = Callable[[str, str], Row]
"""Opens a row of the table for a fault and what is expected."""


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as the lines of a table with a header."""
    lines = [[_heading(field.name) for field in fields(Row)]]
    lines += [[_cell(value) for value in asdict(row).values()] for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _heading(name: str) -> str:
    return "s to recover" if name == "seconds" else name


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
