"""Formats times by the patterns of Joda-Time, which Confluent's partitioners use. No I/O."""

from __future__ import annotations

import datetime as dt

from sluiceway.java.dates.simple_date_format import SimpleDateFormat

# Joda-Time's letters that mean the same in SimpleDateFormat.
_SAME = frozenset("GyMdEaHhKkmsDzZ")
_NAMES = frozenset("GEaz")
_ENGLISH = "en"


def path_formatter(pattern: str, zone: dt.tzinfo) -> SimpleDateFormat:
    """Return the formatter of a pattern. Raises ValueError for a letter that SimpleDateFormat lacks."""
    return SimpleDateFormat(_translated(pattern), zone)


def needs_locale(pattern: str) -> bool:
    """Return whether a pattern prints names, which depend on the locale."""
    return any(letter in _NAMES or (letter == "M" and count > 2) for letter, count in _runs(pattern) if count)


def is_english(locale: str) -> bool:
    return locale.replace("_", "-").lower().split("-")[0] == _ENGLISH


def _translated(pattern: str) -> str:
    return "".join(text if not count else _letter(text, count) for text, count in _runs(pattern))


def _letter(letter: str, count: int) -> str:
    if letter == "Y":  # Joda-Time's year of era
        return "y" * (count if count > 1 else 4)
    if letter in _SAME and not (letter == "Z" and count > 1):
        return letter * count
    if letter == "S" and count == 3:
        return letter * count
    raise ValueError(f"The pattern {letter * count} is not supported. Use letters of {''.join(sorted(_SAME | {'Y'}))} or SSS.")


def _runs(pattern: str) -> list[tuple[str, int]]:
    """Return letters with their counts, and other text, with its quotes, with 0."""
    runs: list[tuple[str, int]] = []
    quoted = False
    for char in pattern:
        if char == "'":
            quoted = not quoted
        if quoted or not (char.isascii() and char.isalpha()):
            runs.append((char, 0))
        elif runs and runs[-1][1] and runs[-1][0] == char:
            runs[-1] = (char, runs[-1][1] + 1)
        else:
            runs.append((char, 1))
    return runs
