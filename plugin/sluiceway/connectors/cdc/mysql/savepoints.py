"""Finds the row events that a transaction takes back. No I/O.

Servers log rows behind a savepoint with the ROLLBACK TO that takes them back, and whole transactions with their ROLLBACK, if they
cannot drop them: for example, because the transaction has created a temporary table.
"""

from __future__ import annotations

import re
import unicodedata

Span = tuple[int, int]
"""The numbers of the first row event and of the one behind the last."""

_STATEMENT = re.compile(
    r"(?:(?P<set>SAVEPOINT)|(?P<back>ROLLBACK(?:\s+WORK)?\s+TO(?:\s+SAVEPOINT\b)?)|(?P<release>RELEASE\s+SAVEPOINT))"
    r"\s+(?P<name>`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|[^\s;`\"]+)\s*;?\s*",
    re.IGNORECASE,
)


class Savepoints:
    """The savepoints of a transaction, and which of its row events are taken back. Row events are numbered from 0."""

    def __init__(self) -> None:
        self.count = 0
        """The number of row events."""
        self._spans: list[Span] = []
        self._points: dict[str, int] = {}
        self.unknown: list[str] = []
        """The statements that name a savepoint which the log does not have."""

    @property
    def taken_back(self) -> tuple[Span, ...]:
        return tuple(self._spans)

    def add_row_event(self) -> None:
        self.count += 1

    def execute(self, sql: str) -> bool:
        """Follow a statement; return whether it is one about savepoints."""
        match = _STATEMENT.fullmatch(sql.strip())
        if match is None:
            return False
        name = _folded(match["name"])
        if match["set"]:
            self._points.pop(name, None)  # the new one stands behind the others
            self._points[name] = self.count
        elif name not in self._points:
            self.unknown.append(sql)
        else:
            self._forget_behind(name, itself=match["release"] is not None)
            if match["back"]:
                self._take_back(self._points[name])
        return True

    def roll_back(self) -> None:
        """Take all row events back."""
        self._take_back(0)

    def _take_back(self, first: int) -> None:
        self._spans = [span for span in self._spans if span[1] <= first]
        if first < self.count:
            self._spans.append((first, self.count))

    def _forget_behind(self, name: str, *, itself: bool) -> None:
        names = list(self._points)
        for each in names[names.index(name) + (not itself) :]:
            del self._points[each]


def is_taken_back(number: int, spans: tuple[Span, ...]) -> bool:
    """Return whether the row event of a number is in one of the spans."""
    return any(first <= number < end for first, end in spans)


def _folded(text: str) -> str:
    """Return the name in a statement in a form that is equal for names of one savepoint: servers ignore case and accents."""
    name = text[1:-1].replace(text[0] * 2, text[0]) if text[0] in '`"' else text
    return "".join(each for each in unicodedata.normalize("NFD", name.casefold()) if not unicodedata.combining(each)).rstrip(" ")
